"""Markers ``mcp_revisions`` and ``mcp_transports``: cases of a test, made when it is collected."""

from typing import Any

import pytest

from isthmus.errors import UsageError
from isthmus.testing.connections import TRANSPORTS, find_missing_transport
from isthmus.testing.matrix import revision_cases


def add_cases(metafunc: pytest.Metafunc) -> None:
    """Make a case of each revision and each transport that a test is marked with.

    Raises:
        pytest.UsageError: a marker names what there is not.
    """
    where = metafunc.definition.nodeid
    revisions = metafunc.definition.get_closest_marker("mcp_revisions")
    if revisions is not None:
        needs = revisions.kwargs.get("needs", ())
        listed = needs if isinstance(needs, tuple | list | set | frozenset) else [needs]
        _check_arguments(where, revisions, {"needs"})
        try:
            cases = revision_cases(revisions.args, tuple(listed))
        except UsageError as error:
            raise pytest.UsageError(f"{where}: {error}") from None
        _parametrize(metafunc, "mcp_revision", cases)
    transports = metafunc.definition.get_closest_marker("mcp_transports")
    if transports is not None:
        _check_arguments(where, transports, set())
        unknown = [name for name in transports.args if name not in TRANSPORTS]
        if unknown:
            raise pytest.UsageError(
                f"{where}: there is no transport {unknown[0]!r}: {', '.join(TRANSPORTS)}"
            )
        names = transports.args or TRANSPORTS
        _parametrize(metafunc, "mcp_transport", [_make_case(name) for name in names])


def _check_arguments(where: str, mark: pytest.Mark, known: set[str]) -> None:
    unknown = [name for name in mark.kwargs if name not in known]
    if unknown:
        raise pytest.UsageError(f"{where}: the marker {mark.name} has no argument {unknown[0]!r}")


def _make_case(transport: Any) -> Any:
    reason = find_missing_transport(None, transport)
    marks = () if reason is None else (pytest.mark.skip(reason=reason),)
    return pytest.param(transport, marks=marks, id=transport)


def _parametrize(metafunc: pytest.Metafunc, fixture: str, cases: list[Any]) -> None:
    if fixture not in metafunc.fixturenames:
        metafunc.fixturenames.append(fixture)
    metafunc.parametrize(fixture, cases, indirect=True)
