"""Transformed tools: names, hidden, renamed and described arguments, from wherever the tool comes."""

from typing import Annotated

import msgspec
import pytest

from isthmus import Accepted, Context, Server
from isthmus.errors import UsageError
from isthmus.server import mirrored
from isthmus.testing import connect, every_revision
from support.auth.protected_server import WRITE, make_guard


def search(q: str, key: str, limit: int = 10) -> str:
    """Search for something."""
    return f"{q} {key} {limit}"


OPTIONS = {
    "hide": {"key": "k1"},
    "rename": {"q": "query"},
    "describe": {"query": "What to look for."},
    "title": "Find",
    "tags": {"find"},
}


def own():
    """The tool is the server's own, and its place is taken."""
    server = Server("own")
    server.add_tool(search)
    server.include("search", **OPTIONS)
    return server


def function():
    """A function, never a tool by itself."""
    server = Server("function")
    server.include(search, **OPTIONS)
    return server


def of_another():
    """A tool of a server that is not mounted."""
    other, server = Server("other"), Server("server")
    other.add_tool(search)
    server.include("search", source=other, **OPTIONS)
    return server


def of_a_mount():
    """A tool of a mounted server, in its place."""
    other, server = Server("other"), Server("server")
    other.add_tool(search)
    server.mount(other)
    server.include("search", **OPTIONS)
    return server


def make_nested():
    """A tool of a server that is mounted in a mounted one."""
    middle, server = Server("middle"), Server("server")
    other = Server("other")
    other.add_tool(search)
    middle.mount(other, "b")
    server.mount(middle, "a")
    server.include("a_b_search", name="search", **OPTIONS)
    return server


@pytest.mark.parametrize("make", [own, function, of_another, of_a_mount, make_nested])
async def test_a_tool_is_listed_and_called_as_it_was_changed(make):
    """Ours: the same from every source; what is hidden is filled in."""
    async with connect(make()) as client:
        tools = {tool.name: tool for tool in await client.list_tools()}
        tool = tools["search"]
        result = await client.call_tool("search", {"query": "tea", "limit": 3})
        wrong = await client.call_tool("search", {"query": 5})
        lacking = await client.call_tool("search", {})
        unknown = await client.call_tool("search", {"query": "a", "other": 1})

    assert ({"search", "a_b_search"} if make is make_nested else {"search"}) == set(tools)
    assert "Find" == tool.title
    assert ["find"] == tool.meta["isthmus/tags"]
    assert ["query", "limit"] == [*tool.input_schema["properties"]]
    assert ["query"] == tool.input_schema["required"]
    assert "What to look for." == tool.input_schema["properties"]["query"]["description"]
    assert "tea k1 3" == result.text
    assert "Invalid arguments for search: query: expected a string, got 5" == wrong.text
    assert "Invalid arguments for search: query: missing, expected a string" == lacking.text
    assert "Invalid arguments for search: other: unknown; known are: query, limit" == unknown.text


@pytest.mark.parametrize("make", [own, function, of_another, of_a_mount, make_nested])
@pytest.mark.parametrize("argument", ["key", "q"])
async def test_hidden_arguments_and_former_names_are_refused(make, argument):
    """Ours: whoever guesses a hidden argument cannot set it."""
    async with connect(make()) as client:
        result = await client.call_tool("search", {"query": "a", argument: "mine"})

    assert result.is_error
    assert f"Invalid arguments for search: {argument}: unknown" == result.text


async def test_both_are_offered_under_two_names():
    """Ours: name= leaves the tool where it is."""
    server = Server("s")
    server.add_tool(search)
    server.include("search", name="find", hide={"key": "k"})
    async with connect(server) as client:
        names = [tool.name for tool in await client.list_tools()]
        said = (await client.call_tool("search", {"q": "a", "key": "b"})).text

    assert ["search", "find"] == names
    assert "a b 10" == said


@pytest.mark.usefixtures("secret_watch")
async def test_a_hidden_value_may_depend_on_who_calls():
    """Ours: a function gives it, with the principal."""
    server = Server("s", auth=make_guard())
    server.include(search, hide={"key": lambda who: who.subject, "limit": lambda: 7})
    async with connect(server, transport="http", token="token-of-ada") as client:
        result = await client.call_tool("search", {"q": "a"})

    assert "a ada 7" == result.text


@every_revision("elicitation/create")
async def test_a_transformed_tool_may_ask(revision):
    """Ours: rounds go through the same changes."""
    other, server = Server("other"), Server("server", secret=b"s" * 16)

    class Name(msgspec.Struct):
        name: str

    @other.tool
    async def greet(greeting: str, style: str, ctx: Context) -> str:
        answer = await ctx.elicit("Who?", dict_schema())
        return f"{greeting}{style} {answer.value['name']}"

    def dict_schema():
        return {"type": "object", "properties": {"name": {"type": "string"}}}

    server.include("greet", source=other, rename={"greeting": "word"}, hide={"style": "!"})
    answers = {"elicit": lambda asked: Accepted({"name": "Ada"})}
    async with connect(server, revision=revision, **answers) as client:
        result = await client.call_tool("greet", {"word": "Hi"})

    assert "Hi! Ada" == result.text


@pytest.mark.usefixtures("secret_watch")
async def test_scopes_are_those_of_the_tool():
    """Ours: another name is no way round them."""
    other, server = Server("other"), Server("server", auth=make_guard())
    other.add_tool(search, scopes={WRITE})
    server.include("search", name="find", source=other, hide={"key": "k"})

    from isthmus.wire import CallToolParams

    needs = server.router._needs["tools/call"]

    assert {WRITE} == needs(CallToolParams(name="find"), None)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"hide": {"nope": 1}}, "has no argument 'nope': it has q, key, limit"),
        ({"rename": {"nope": "x"}}, "has no argument 'nope'"),
        ({"describe": {"q2": "x"}}, "has no argument 'q2'"),
        ({"hide": {"key": 1}, "describe": {"key": "x"}}, "has no argument 'key': it has q, limit"),
        ({"rename": {"q": "key"}}, "has an argument 'key' already"),
        ({"rename": {"q": "x", "key": "x"}}, "one name to two arguments"),
        ({"rename": {"q": "x"}, "hide": {"q": 1}}, "'q' is hidden, and cannot be renamed"),
        ({"hide": {"key": object}}, None),
        ({"hide": {"key": {1j}}}, "has no JSON form"),
        ({"hide": {"key": lambda a, b: 1}}, "takes the principal, or nothing"),
        ({"tags": "admin"}, "tags are a set"),
        ({"nmae": "x"}, "there is no option 'nmae'"),
    ],
)
def test_changes_that_do_not_fit_are_refused_at_once(options, words):
    """Ours: the message has what there is."""
    server = Server("s")
    server.add_tool(search)
    if words is not None:
        with pytest.raises(UsageError, match=words):
            server.include("search", **options)


def test_what_is_not_there_cannot_be_included():
    """Ours: nor under a name that is taken."""
    server, other = Server("s"), Server("o")
    server.add_tool(search)
    with pytest.raises(UsageError, match="there is no tool 'nope' here"):
        server.include("nope")
    with pytest.raises(UsageError, match="server 'o' has no tool 'nope'"):
        server.include("nope", source=other)
    with pytest.raises(UsageError, match="there is a tool 'search' already"):
        server.include(search)
    with pytest.raises(UsageError, match="takes the name of a tool or a function"):
        server.include(5)


def test_an_argument_that_travels_in_a_header_stays():
    """Spec server/tools: the header and the argument must be the same, so it cannot be hidden."""

    def where(region: Annotated[str, mirrored("Region")]) -> str:
        return region

    with pytest.raises(UsageError, match="travels in a header"):
        Server("s").include(where, hide={"region": "eu"})
