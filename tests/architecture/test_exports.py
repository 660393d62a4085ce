"""The public surface, as a snapshot: a new public name, or a lost one, is a visible diff."""

from importlib import import_module
from pathlib import Path

import pytest

SNAPSHOT = Path(__file__).with_name("exports.txt")
MODULES = (
    "isthmus", "isthmus.auth", "isthmus.client", "isthmus.errors", "isthmus.host",
    "isthmus.host.providers", "isthmus.host.sampling", "isthmus.host.turns", "isthmus.linter",
    "isthmus.sampling", "isthmus.server", "isthmus.server.middleware", "isthmus.store", "isthmus.telemetry",
    "isthmus.testing", "isthmus.types",
)  # fmt: skip


def test_public_names_are_those_of_the_snapshot():
    """Ours: what `__all__` lists is a promise; change it here when you mean to."""
    listed = [f"{m}.{name}" for m in MODULES for name in sorted(import_module(m).__all__)]

    assert SNAPSHOT.read_text(encoding="utf-8").split() == listed


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_there(module):
    """Ours: a name that is promised can be imported."""
    found = import_module(module)

    assert [] == [name for name in found.__all__ if not hasattr(found, name)]
