"""Tools: listed and called; what goes wrong, and who is told."""

import logging
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from isthmus.errors import Refuse, ToolError, UsageError
from isthmus.runtime.channel import Origin
from isthmus.server import Context, Server
from isthmus.wire import CallToolResult, Icon, TextContent
from support.server.both_eras import LEGACY, MODERN, EraClient, tool_text

BOTH = pytest.mark.parametrize("revision", [LEGACY, MODERN])


def sums(**options):
    server = Server("sums", version="1", **options)

    @server.tool(title="Add up", read_only=True, idempotent=True, meta={"acme/x": 1})
    async def add(a: int, b: int = 0) -> int:
        """Add two numbers.

        Args:
            a: the first.
            b: the second.
        """
        return a + b

    return server


# --- listed -----------------------------------------------------------------------------------


async def test_a_tool_is_listed_with_all_that_is_said_about_it():
    """Name, title, description, hints, schemas, meta (spec: tools, data types)."""
    listed = await EraClient(sums()).once("tools/list")

    assert [
        {
            "name": "add",
            "title": "Add up",
            "description": "Add two numbers.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "a": {"type": "integer", "description": "the first."},
                    "b": {"type": "integer", "description": "the second.", "default": 0},
                },
                "required": ["a"],
                "additionalProperties": False,
            },
            "outputSchema": {
                "type": "object",
                "properties": {"result": {"type": "integer"}},
                "required": ["result"],
            },
            "annotations": {"readOnlyHint": True, "idempotentHint": True},
            "_meta": {"acme/x": 1},
        }
    ] == listed["tools"]


@pytest.mark.covers("tools.annotations.absent-is-absent")
async def test_no_hint_is_no_annotation():
    """An absent hint is not a hint of False (spec: annotations)."""
    server = Server("plain")
    server.add_tool(lambda: None, name="x", icons=[Icon(src="https://a.example/i.png")])
    (tool,) = (await EraClient(server).once("tools/list"))["tools"]

    assert "annotations" not in tool
    assert [{"src": "https://a.example/i.png"}] == tool["icons"]


# --- called -----------------------------------------------------------------------------------


@BOTH
async def test_a_call_gives_text_and_structure(revision):
    """Structured content also travels as text (decision D23)."""
    result = await EraClient(sums(), revision).call("add", {"a": 1, "b": 2})

    assert {"result": 3} == result["structuredContent"]
    assert 3 == msgspec.json.decode(tool_text(result))
    assert "isError" not in result


@BOTH
async def test_text_can_be_left_out(revision):
    """``text=False`` sends a structure once (users.md, pain 8)."""
    server = Server("sums")
    server.add_tool(lambda: {"a": 1}, name="x", text=False)

    @server.tool(text=False)
    async def y() -> dict[str, int]:
        return {"a": 1}

    assert [] == (await EraClient(server, revision).call("y"))["content"]


@BOTH
async def test_a_text_can_be_structured_too(revision):
    """``structured=True`` sends a text as ``{"result": …}`` beside itself, and lists a schema for it."""
    server = Server("greetings")

    @server.tool(structured=True)
    async def greet(name: str) -> str:
        return f"Hello, {name}!"

    result = await EraClient(server, revision).call("greet", {"name": "Ann"})

    assert "Hello, Ann!" == tool_text(result)
    assert {"result": "Hello, Ann!"} == result["structuredContent"]


@pytest.mark.parametrize("returns", [None, bytes, list, "nothing"])
def test_what_is_no_text_cannot_be_structured(returns):
    """``structured=True`` on a tool without ``-> str`` is refused: it would have no effect."""

    def look():
        return "a"

    if returns != "nothing":
        look.__annotations__["return"] = returns
    with pytest.raises(UsageError, match="bytes are no result" if returns is bytes else "-> str"):
        Server("x").add_tool(look, structured=True)


@pytest.mark.covers("tools.call.unknown-refused")
async def test_an_unknown_tool_is_refused():
    """-32602 with its name (spec: tools, error handling)."""
    error = await EraClient(sums()).call("sub")

    assert (-32602, "Unknown tool: sub") == (error.code, error.message)


@pytest.mark.covers("tools.call.invalid-arguments-told")
@BOTH
@pytest.mark.parametrize(
    ("arguments", "where"), [({"a": "x"}, "a"), ({}, "a"), ({"a": 1, "c": 2}, "c")]
)
async def test_wrong_arguments_are_for_the_model_to_mend(revision, arguments, where):
    """A result with isError that names the place (spec: tools, error handling)."""
    result = await EraClient(sums(), revision).call("add", arguments)

    assert result["isError"]
    assert where in tool_text(result)


def make_failing_server(error, **options):
    server = Server("failing", **options)

    @server.tool
    async def fail() -> str:
        raise error

    @server.tool
    def fail_plainly(ctx: Context) -> str:
        raise error

    return server


@BOTH
@pytest.mark.parametrize("name", ["fail", "fail_plainly"])
async def test_a_tool_error_is_the_result(revision, name):
    """Its text is for the model (architecture 9.2)."""
    result = await EraClient(make_failing_server(ToolError("no such date")), revision).call(name)

    assert "no such date" == tool_text(result)
    assert result["isError"]


@BOTH
@pytest.mark.parametrize("name", ["fail", "fail_plainly"])
async def test_a_refusal_is_an_error(revision, name):
    """Code, message and data as raised (architecture 9.2)."""
    error = await EraClient(make_failing_server(Refuse(7, "not you", {"a": 1})), revision).call(
        name
    )

    assert (7, "not you", {"a": 1}) == (error.code, error.message, error.data)


@pytest.mark.covers("errors.internal.withheld")
@BOTH
@pytest.mark.parametrize("name", ["fail", "fail_plainly"])
async def test_any_other_exception_is_named_logged_and_withheld(revision, name, caplog):
    """What it says may be nobody's business (ADR 0008)."""
    with caplog.at_level(logging.ERROR, "isthmus"):
        result = await EraClient(make_failing_server(KeyError("pass word")), revision).call(name)

    assert f"Tool '{name}' failed: KeyError" == tool_text(result)
    assert result["isError"]
    assert "pass word" in caplog.text
    assert "Traceback" in caplog.text


@pytest.mark.parametrize("name", ["fail", "fail_plainly"])
async def test_a_tool_that_exits_does_not_end_the_server(name):
    """An argument parser inside a tool may call ``sys.exit`` (ours)."""
    result = await EraClient(make_failing_server(SystemExit(2))).call(name)

    assert f"Tool '{name}' failed: SystemExit" == tool_text(result)
    assert result["isError"]


async def test_debugging_lets_the_text_out():
    """``Server(debug=True)`` is for whoever writes the tool (architecture 9.2)."""
    result = await EraClient(make_failing_server(KeyError("pass word"), debug=True)).call("fail")

    assert "Tool 'fail' failed: KeyError: 'pass word'" == tool_text(result)


async def test_stop_iteration_out_of_a_thread_does_not_hang():
    """A future cannot carry it, so it is carried in another exception (asyncio)."""
    result = await EraClient(make_failing_server(StopIteration())).call("fail_plainly")

    assert "Tool 'fail_plainly' failed: RuntimeError" == tool_text(result)


@BOTH
async def test_a_whole_result_is_passed_on(revision):
    """An author may build the result himself (our promise)."""
    server = Server("whole")

    @server.tool
    async def x() -> CallToolResult:
        return CallToolResult(content=[TextContent(text="hi")], is_error=True, meta={"acme/a": 1})

    result = await EraClient(server, revision).call("x")

    assert ("hi", 1) == (tool_text(result), result["_meta"]["acme/a"])
    assert result["isError"]


# --- schemas by hand --------------------------------------------------------------------------

PERSON = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$defs": {"name": {"$anchor": "name", "type": "string", "minLength": 2}},
    "type": "object",
    "properties": {"name": {"$ref": "#/$defs/name"}, "age": {"type": "integer"}},
    "allOf": [{"anyOf": [{"required": ["name"]}, {"required": ["age"]}]}],
    "if": {"required": ["age"]},
    "then": {"required": ["name"]},
    "additionalProperties": False,
}


def by_hand():
    server = Server("by hand", debug=True)

    @server.tool(input_schema=PERSON)
    async def greet(name: str | None = None, age: int | None = None) -> str:
        return f"{name} {age}"

    return server


@pytest.mark.covers("tools.schema.kept")
async def test_a_schema_written_by_hand_is_kept_as_it_is():
    """Every keyword survives (conformance: json_schema_2020_12_tool)."""
    (tool,) = (await EraClient(by_hand()).once("tools/list"))["tools"]

    assert PERSON == tool["inputSchema"]


@pytest.mark.covers("tools.schema.kept", "tools.schema.2020-12")
async def test_arguments_are_held_against_a_schema_written_by_hand():
    """By the schema's own dialect, and with paths (spec: basic, schema validation)."""
    client = EraClient(by_hand())

    assert "ann None" == tool_text(await client.call("greet", {"name": "ann"}))
    assert "name" in tool_text(await client.call("greet", {"age": 7}))
    short = await client.call("greet", {"name": "a"})
    assert short["isError"]
    assert tool_text(short).startswith("Invalid arguments for greet: name:")


@BOTH
async def test_a_function_may_take_the_arguments_as_a_whole(revision):
    """For tools that are described elsewhere, as a gateway's are (ours)."""
    server = Server("gateway")

    @server.tool(name="far", input_schema={"type": "object", "properties": {"x": {}}})
    async def forward(arguments: Mapping[str, Any], ctx: Context) -> str:
        return repr(dict(arguments))

    client = EraClient(server, revision)

    assert "{'x': [1], 'y': 2}" == tool_text(await client.call("far", {"x": [1], "y": 2}))
    assert "{}" == tool_text(await client.once("tools/call", {"name": "far"}))
    assert "{}" == tool_text(await client.once("tools/call", {"name": "far", "arguments": None}))


@pytest.mark.covers("tools.output.conforms")
async def test_results_are_held_against_an_output_schema_written_by_hand():
    """MUST conform to it (spec: tools, output schema)."""
    server = Server("by hand", debug=True)
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}

    @server.tool(output_schema=schema)
    async def x(good: bool) -> Any:
        return {"a": 1 if good else "one"}

    @server.tool(output_schema=schema)
    async def whole(good: bool) -> CallToolResult:
        return CallToolResult(content=[], structured_content={"a": 1} if good else None)

    client = EraClient(server)

    assert {"a": 1} == (await client.call("x", {"good": True}))["structuredContent"]
    assert "output schema" in tool_text(await client.call("x", {"good": False}))
    assert {"a": 1} == (await client.call("whole", {"good": True}))["structuredContent"]
    assert "output schema" in tool_text(await client.call("whole", {"good": False}))


@pytest.mark.covers("tools.schema.of-an-object")
async def test_a_schema_that_is_none_is_found_out():
    """The model reads that the tool is broken; the author's log says why (ours)."""
    server = Server("by hand", debug=True)
    server.add_tool(lambda: None, name="x", input_schema={"type": "object", "properties": 5})

    assert "cannot be used" in tool_text(await EraClient(server).call("x"))


@pytest.mark.covers("tools.schema.of-an-object")
def test_arguments_are_an_object():
    """MUST be a schema of an object (spec: tools, data types)."""
    with pytest.raises(UsageError, match='"type": "object"'):
        Server("x").add_tool(lambda: None, name="x", input_schema={"type": "array"})


# --- mirrored headers -------------------------------------------------------------------------


def regional():
    server = Server("regional")
    schema = {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    }

    @server.tool(input_schema=schema)
    async def where(region: str = "") -> str:
        return region

    return server


def http(**headers):
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    return Origin("http", {"mcp-method": "tools/call", **named})


@pytest.mark.parametrize(
    ("arguments", "origin", "said"),
    [
        ({"region": "eu"}, http(mcp_param_region="eu"), "eu"),
        ({"region": "é"}, http(mcp_param_region="=?base64?w6k=?="), "é"),
        ({}, http(), ""),
        ({"region": "eu"}, Origin("stdio"), "eu"),
        ({"region": "eu"}, Origin("http", {"mcp-session-id": "1"}), "eu"),
    ],
)
async def test_mirrored_arguments_agree_with_their_headers(arguments, origin, said):
    """On HTTP since 2026-07-28, nowhere else (spec: streamable HTTP, custom headers)."""
    assert said == tool_text(await EraClient(regional()).call("where", arguments, origin=origin))


@pytest.mark.covers("tools.headers.compared")
@pytest.mark.parametrize(
    ("arguments", "origin"),
    [
        ({"region": "eu"}, http(mcp_param_region="us")),
        ({"region": "eu"}, http()),
        ({"region": "eu"}, http(mcp_param_region="=?base64?!?=")),
        ({}, http(mcp_param_region="eu")),
    ],
)
async def test_mirrored_arguments_that_differ_are_refused(arguments, origin):
    """-32020, a MUST (spec: streamable HTTP, server validation)."""
    error = await EraClient(regional()).call("where", arguments, origin=origin)

    assert -32020 == error.code


async def test_arguments_that_are_no_object_mirror_nothing():
    """They are wrong in another way, which is said instead (ours)."""
    error = await EraClient(regional()).once(
        "tools/call", {"name": "where", "arguments": [1]}, origin=http()
    )

    assert (-32602, "Invalid params: Expected `object` - at `$.arguments`") == (
        error.code,
        error.message,
    )


@pytest.mark.covers("tools.headers.marks-checked")
def test_a_mark_the_specification_forbids_is_refused_at_once():
    """A client would hide the tool (spec: tools, x-mcp-header)."""
    schema = {"type": "object", "properties": {"a": {"type": "number", "x-mcp-header": "A"}}}

    with pytest.raises(UsageError, match="tool 'x': x-mcp-header at a"):
        Server("x").add_tool(lambda a: None, name="x", input_schema=schema)


@BOTH
@pytest.mark.covers("tools.call.always-answered")
@pytest.mark.parametrize(
    "raised",
    [GeneratorExit, SystemExit, StopAsyncIteration, BaseExceptionGroup("x", [GeneratorExit()])],
)
async def test_any_exception_of_a_tool_is_answered(revision, raised):
    """Ours: an id that stays in flight for ever is a call that hangs."""
    server = Server("raising")

    @server.tool
    async def tool() -> None:
        raise raised

    @server.tool
    async def asking(ctx: Context) -> None:
        raise raised

    for name in ("tool", "asking"):
        assert (await EraClient(server, revision).call(name))["isError"]


@pytest.mark.covers("tools.call.always-answered")
async def test_a_refusal_that_no_json_can_carry_is_sent_without_what_cannot(caplog):
    """Ours: an author's mistake in an error is no silence."""
    caplog.set_level("CRITICAL", "isthmus")  # a log with half a character cannot be reported
    server = Server("refusing")

    @server.tool
    async def odd(what: str) -> None:
        raise Refuse(-1, "half \udcff", {"ok": "\udcff"} if what == "text" else {"no": object()})

    texts = await EraClient(server).call("odd", {"what": "text"})
    data = await EraClient(server).call("odd", {"what": "data"})
    assert ("half \ufffd", {"ok": "\ufffd"}) == (texts.message, texts.data)
    assert ("half \ufffd", UNSET) == (data.message, data.data)
