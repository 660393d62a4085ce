"""Test tools for servers and clients: connections, scripts, transcripts, faults.

Everything runs in memory unless a test asks for a transport; see :func:`connect` first. The plugin
for pytest, :mod:`isthmus.testing.plugin`, offers the same as fixtures.

Names are imported when they are first used: pytest loads the plugin in every project.
"""

from typing import TYPE_CHECKING

from isthmus.lazy import lazy_getattr

if TYPE_CHECKING:
    from isthmus.testing.cassettes import Cassette as Cassette
    from isthmus.testing.cassettes import CassetteMismatch as CassetteMismatch
    from isthmus.testing.clock import VirtualLoop as VirtualLoop
    from isthmus.testing.connections import TRANSPORTS as TRANSPORTS
    from isthmus.testing.connections import connect as connect
    from isthmus.testing.connections import serving as serving
    from isthmus.testing.linting import LintFailed as LintFailed
    from isthmus.testing.linting import lint as lint
    from isthmus.testing.matrix import every_revision as every_revision
    from isthmus.testing.matrix import every_transport as every_transport
    from isthmus.testing.person import Person as Person
    from isthmus.testing.replay import QuestionsChanged as QuestionsChanged
    from isthmus.testing.scripts import script as script
    from isthmus.testing.surface import SurfaceChanged as SurfaceChanged
    from isthmus.testing.surface import compare_surfaces as compare_surfaces
    from isthmus.testing.surface import read_surface as read_surface
    from isthmus.testing.transcript import load as load
    from isthmus.testing.transcript import play as play

__all__ = [
    "TRANSPORTS",
    "Cassette",
    "CassetteMismatch",
    "LintFailed",
    "Person",
    "QuestionsChanged",
    "SurfaceChanged",
    "VirtualLoop",
    "compare_surfaces",
    "connect",
    "every_revision",
    "every_transport",
    "lint",
    "load",
    "play",
    "read_surface",
    "script",
    "serving",
]

_HOMES = {
    "TRANSPORTS": "isthmus.testing.connections",
    "Cassette": "isthmus.testing.cassettes",
    "CassetteMismatch": "isthmus.testing.cassettes",
    "LintFailed": "isthmus.testing.linting",
    "Person": "isthmus.testing.person",
    "QuestionsChanged": "isthmus.testing.replay",
    "SurfaceChanged": "isthmus.testing.surface",
    "VirtualLoop": "isthmus.testing.clock",
    "compare_surfaces": "isthmus.testing.surface",
    "connect": "isthmus.testing.connections",
    "every_revision": "isthmus.testing.matrix",
    "every_transport": "isthmus.testing.matrix",
    "lint": "isthmus.testing.linting",
    "load": "isthmus.testing.transcript",
    "play": "isthmus.testing.transcript",
    "read_surface": "isthmus.testing.surface",
    "script": "isthmus.testing.scripts",
    "serving": "isthmus.testing.connections",
}

__getattr__ = lazy_getattr(__name__, _HOMES)


def __dir__() -> list[str]:
    """The public names, whether they are imported yet or not."""
    return sorted(__all__)
