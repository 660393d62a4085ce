"""One test over every revision and every transport, as decorators for pytest.

What a test needs is looked up in the tables of the revisions; those that lack it are skipped, and
the skip says so::

    @every_revision
    async def test_add(revision):
        async with connect(server, revision=revision) as client: ...

    @every_revision("elicitation/create")
    async def test_asking(revision): ...
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

from isthmus import wire
from isthmus.errors import UsageError
from isthmus.revisions import BY_NAME, METHODS, Feature, Revision
from isthmus.testing.connections import TRANSPORTS

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
        return pytest.mark.parametrize("revision", revision_cases())(arguments[0])
    return pytest.mark.parametrize("revision", revision_cases(needs=arguments))


def revision_cases(names: Sequence[str] = (), needs: Sequence[Feature | str] = ()) -> list[Any]:
    """Revisions as cases for ``pytest.mark.parametrize``; those that lack a need are skipped.

    Args:
        names: the revisions; all by default.
        needs: features, or methods by name, that the test needs.

    Raises:
        UsageError: there is no such revision or method.
    """
    import pytest

    for name in names:
        if name not in BY_NAME:
            raise UsageError(f"there is no revision {name!r}: {', '.join(BY_NAME)}")
    cases = []
    for name in names or BY_NAME:
        missing = [need for need in needs if not has_need(BY_NAME[name], need)]
        reason = f"{name} has no {', '.join(map(str, missing))}"
        marks = [pytest.mark.skip(reason=reason)] if missing else []
        cases.append(pytest.param(name, marks=marks, id=name))
    return cases


def has_need(revision: Revision, need: Feature | str) -> bool:
    """Whether a revision has a feature, or a method in either direction.

    A question of a server counts wherever it travels: since 2026-07-28 ``elicitation/create``,
    ``sampling/createMessage`` and ``roots/list`` are not sent, but stand in the result of a call.

    Raises:
        UsageError: no revision has such a method.
    """
    if isinstance(need, Feature):
        return revision.has(need)
    if need not in METHODS:
        from difflib import get_close_matches  # only where a name is wrong

        close = "".join(f"; did you mean {name}?" for name in get_close_matches(need, METHODS, 1))
        raise UsageError(f"there is no method {need!r} in any revision{close}")
    return (
        revision.allows("client", need) or revision.allows("server", need) or _asks(revision, need)
    )


def _asks(revision: Revision, name: str) -> bool:
    """Whether a server asks this in the result of a call."""
    method = METHODS[name]
    question = method.senders == {"server"} and method.result is not None
    return question and revision.knows(wire.InputRequest) and revision.knows(method.params)


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

    Args:
        test: the test function; None for the mark.
    """
    import pytest

    mark = pytest.mark.parametrize("transport", TRANSPORTS)
    return mark if test is None else mark(test)
