"""Functions that return what cannot be a result: caller and author are told what it was."""

from typing import Any

import pytest

from isthmus import Image, Server
from support.server.both_eras import LEGACY, MODERN, EraClient, tool_text

BOTH = pytest.mark.parametrize("revision", [LEGACY, MODERN])


class Plain:
    """A class without a schema."""


async def fetch() -> str:
    return "never"


def return_coroutine() -> Any:
    return fetch()


async def forgotten_inside():
    return fetch()


def forgotten_typed() -> int:
    return fetch()


def without_schema() -> Any:
    return Plain()


def nothing() -> str: ...


def no_image() -> Image: ...


def nothing_in_a_list() -> list[Image]: ...


def generator() -> Any:
    return (number for number in range(3))


def async_generator() -> Any:
    async def numbers():
        yield 1

    return numbers()


def wrong_number() -> int:
    return "secret"


AWAIT = "it returned a coroutine: was `await` forgotten?"
CASES = [
    (return_coroutine, AWAIT),
    (forgotten_inside, AWAIT),
    (forgotten_typed, AWAIT),
    (without_schema, "it returned a value of type Plain, which has no JSON form"),
    (nothing, "it returned None, and is annotated to return str"),
    (no_image, "it returned None, and is annotated to return Image"),
    (nothing_in_a_list, "it returned None, and is annotated to return list"),
    (generator, "it returned a generator: return a list"),
    (async_generator, "it returned an async generator: collect its items and return a list"),
    (wrong_number, "it returned what its annotation does not allow"),
]


@BOTH
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("fn", "said"), CASES, ids=lambda case: getattr(case, "__name__", ""))
async def test_a_tool_that_returns_no_result_says_so(fn, said, revision, caplog):
    """The model reads what was wrong, the author also where, and values stay in the log."""
    server = Server("shop")
    server.add_tool(fn, name="f")
    result = await EraClient(server, revision).call("f")
    assert result["isError"]
    assert f"Tool 'f' failed: {said}" == tool_text(result)
    assert "test_wrong_returns.py:" in caplog.messages[0]
    assert said in caplog.messages[0]


@BOTH
async def test_prompts_and_resources_say_it_alike(revision, caplog):
    """As an error of the server's, since they have no result that says so."""
    server = Server("shop")
    server.prompt(name="p")(return_coroutine)
    server.prompt(name="n")(nothing)
    server.resource("a://b", name="r")(without_schema)
    client = EraClient(server, revision)
    asked = await client.send("prompts/get", {"name": "p"})
    empty = await client.send("prompts/get", {"name": "n"})
    read = await client.send("resources/read", {"uri": "a://b"})
    assert (-32603, f"Prompt 'p' failed: {AWAIT}") == (asked.code, asked.message)
    assert "Prompt 'n' failed: it returned None, and is annotated to return str" == empty.message
    assert "Resource 'r' failed: it returned a value of type Plain" in read.message
    assert 3 == len(caplog.messages)


@BOTH
async def test_none_is_a_result_where_nothing_or_none_was_promised(revision):
    """A function without an annotation, or with None among its types, may return nothing."""
    server = Server("shop")

    def bare(): ...

    def optional() -> str | None: ...

    def none() -> None: ...

    for fn in (bare, optional, none):
        server.add_tool(fn)
        result = await EraClient(server, revision).call(fn.__name__)
        assert [] == result["content"]
        assert not result.get("isError", False)
