"""Effects: what they are known by, and how what they came to is written down."""

import asyncio
from functools import partial

import pytest
from msgspec import Struct

from isthmus.errors import Refuse, ToolError, UsageError
from isthmus.server.asking.effects import describe_effect, perform_effect, recall_effect
from isthmus.server.serve.workers import Workers


class Hold(Struct):
    code: str


class Picky(Exception):
    def __init__(self, code, text):
        super().__init__(code)
        self.code = code
        self.text = text


class Ledger:
    def hold(self, date: str) -> Hold:
        return Hold(date)

    async def __call__(self, date: str) -> Hold:
        return Hold(date)


async def through(effect, *args):
    """What an effect gives once it was written down."""
    record, _ = await perform_effect(effect, args, Workers())
    return recall_effect(record, effect)


async def make(date: str) -> Hold:
    return Hold(date)


@pytest.mark.parametrize(
    "effect", [make, Ledger().hold, Ledger(), partial(Ledger().hold), partial(make)]
)
async def test_a_result_comes_back_as_the_type_it_is_annotated_with(effect):
    """Async, plain, bound, partial, callable objects (our promise)."""
    assert Hold("monday") == await through(effect, "monday")


async def test_without_an_annotation_it_is_plain_data():
    """The same in every round, so also in the first (ours)."""
    assert {"code": "x"} == await through(lambda: Hold("x"))
    assert [1, 2] == await through(lambda: (1, 2))


async def test_an_effect_that_breaks_its_annotation_is_refused():
    """It would not come back in the next round (ours)."""

    def wrong() -> int:
        return "one"

    with pytest.raises(UsageError, match="does not allow"):
        await through(wrong)


@pytest.mark.parametrize(
    "error",
    [
        ToolError("no"),
        Refuse(7, "no", {"a": 1}),
        KeyError("x"),
        OSError(2, "gone"),
        Picky(3, "text"),
        ValueError("a", 1, None),
    ],
)
async def test_an_exception_comes_back_as_itself(error):
    """Class, arguments and attributes (ours)."""

    def fail():
        raise error

    record, raised = await perform_effect(fail, (), Workers())
    assert raised is error
    with pytest.raises(type(error)) as caught:
        recall_effect(record, fail)

    assert error.args == caught.value.args
    assert vars(error) == vars(caught.value)


async def test_an_exception_of_a_lost_class_is_named():
    """A local class cannot be found again (ours)."""

    class LocalError(Exception):
        pass

    def fail():
        raise LocalError("x", object)

    record, _ = await perform_effect(fail, (), Workers())

    with pytest.raises(RuntimeError, match="LocalError"):
        recall_effect(record, fail)


def test_an_effect_is_known_by_name_and_arguments():
    """From one run, and one process, to the next (architecture 4.6)."""
    name, arguments = describe_effect(make, ("monday", Hold("x")))

    assert name.endswith("test_effects.make")
    assert b'["monday",{"code":"x"}]' == arguments
    assert describe_effect(partial(make, "a"), ()) == describe_effect(make, ("a",))
    assert describe_effect(make, (object(),)) == describe_effect(make, (object(),))
    assert describe_effect(make, (1,)) != describe_effect(make, (2,))
    assert describe_effect(lambda: 1, ()) != describe_effect(
        lambda: 2,
        (),
    )


async def test_a_cancelled_effect_has_not_happened():
    """Nothing is recorded for it (ours)."""
    with pytest.raises(asyncio.CancelledError):
        await perform_effect(_cancelled, (), Workers())


async def _cancelled():
    raise asyncio.CancelledError
