"""The façades in the place of ``mcp`` and ``fastmcp``, for the tests of this folder."""

import sys
from contextlib import suppress

import pytest

from isthmus.compat.imports import OWN_ROOTS, FacadeFinder, install_facades


def forget_modules():
    for name in [one for one in sys.modules if one.partition(".")[0] in OWN_ROOTS]:
        del sys.modules[name]


@pytest.fixture
def facades():
    """Imports of ``mcp`` and ``fastmcp`` get the façades; what was imported before comes back afterwards."""
    before = {
        name: sys.modules[name] for name in sys.modules if name.partition(".")[0] in OWN_ROOTS
    }
    forget_modules()
    install_facades()
    yield
    for finder in [one for one in sys.meta_path if isinstance(one, FacadeFinder)]:
        with suppress(ValueError):
            sys.meta_path.remove(finder)
    forget_modules()
    sys.modules.update(before)
