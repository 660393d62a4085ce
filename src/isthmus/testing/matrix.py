"""One test over every revision, or every transport, or both: pytest decorators.

What a revision cannot do is skipped by looking into the tables, and the skip says so::

    @every_revision
    async def test_add(revision):
        async with connect(server, revision=revision) as client: ...

    @every_revision(Feature.ELICITATION_FORM)
    async def test_asking(revision): ...
"""

from collections.abc import Callable
from typing import Any, TypeVar, overload

from isthmus.revisions import REVISIONS, Feature, Revision
from isthmus.testing.connect import TRANSPORTS

__all__ = ["every_revision", "every_transport"]

Test = TypeVar("Test", bound=Callable[..., Any])


@overload
def every_revision(test: Test, /) -> Test: ...
@overload
def every_revision(*needs: Feature | str) -> Callable[[Test], Test]: ...
def every_revision(*arguments: Any) -> Any:  # the overloads above say it better
    """Run a test with ``revision`` set to the name of each revision in turn.

    Args:
        *arguments: features (:class:`~isthmus.revisions.Feature`), or methods by name, that the
            test needs; revisions that lack one are skipped. Without any, the test itself.
    """
    import pytest

    if len(arguments) == 1 and not isinstance(arguments[0], Feature | str):
        return pytest.mark.parametrize("revision", _cases(()))(arguments[0])
    return pytest.mark.parametrize("revision", _cases(arguments))


def _cases(needs: tuple[Feature | str, ...]) -> list[Any]:
    import pytest

    cases = []
    for revision in REVISIONS:
        missing = [need for need in needs if not _has(revision, need)]
        reason = f"{revision.name} has no {', '.join(map(str, missing))}"
        marks = [pytest.mark.skip(reason=reason)] if missing else []
        cases.append(pytest.param(revision.name, marks=marks, id=revision.name))
    return cases


def _has(revision: Revision, need: Feature | str) -> bool:
    if isinstance(need, Feature):
        return revision.has(need)
    return revision.allows("client", need) or revision.allows("server", need)


@overload
def every_transport(test: Test, /) -> Test: ...
@overload
def every_transport() -> Callable[[Test], Test]: ...
def every_transport(test: Any = None) -> Any:
    """Run a test with ``transport`` set to each transport of ``connect`` in turn.

    Where a test runs over every revision as well, ``connect`` skips what a revision does not have
    (2024-11-05 no Streamable HTTP), and says so.

    Called without a test it gives the mark itself, for a module's ``pytestmark``; the same is
    true of :func:`every_revision`.
    """
    import pytest

    mark = pytest.mark.parametrize("transport", TRANSPORTS)
    return mark if test is None else mark(test)
