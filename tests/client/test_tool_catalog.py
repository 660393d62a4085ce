"""What a client keeps of tools: what travels in headers, and what results must look like."""

import http.server
import logging
import threading

import pytest

from isthmus.client.model.schema_validation import OutputValidator
from isthmus.client.tool_catalog import ToolCatalog
from isthmus.errors import Misbehaved, UsageError
from isthmus.wire import Tool
from support.client.small_server import text_result


def tool(name="t", properties=None, **more):
    schema = {"type": "object", "properties": properties or {}}
    return Tool(name=name, input_schema=schema, **more)


REGION = {"region": {"type": "string", "x-mcp-header": "Region"}}


def mirrored():
    catalog = ToolCatalog()
    catalog.mirrored = True
    return catalog


@pytest.mark.covers("clientcalls.headers.mirrored")
def test_marked_arguments_travel_in_headers():
    """Spec 2026-07-28 basic/transports/streamable-http: clients MUST mirror them."""
    catalog = mirrored()
    catalog.learn([tool(properties=REGION)])

    assert (("Mcp-Param-Region", "us-west1"),) == catalog.headers("t", {"region": "us-west1"})
    assert () == catalog.headers("t", {"region": None})
    assert () == catalog.headers("t", None)
    assert () == catalog.headers("unknown", {"region": "us-west1"})


@pytest.mark.covers("routing.marks.safe-integers")
def test_too_large_a_number_is_refused_before_it_is_sent():
    """Spec 2026-07-28 basic/transports/streamable-http: integers MUST be within the safe range."""
    catalog = mirrored()
    catalog.learn([tool(properties={"n": {"type": "integer", "x-mcp-header": "N"}})])

    with pytest.raises(UsageError, match="too large"):
        catalog.headers("t", {"n": 2**53})


@pytest.mark.covers("clientcalls.headers.mirrored")
def test_a_tool_with_a_forbidden_mark_is_left_out_and_logged(caplog):
    """Spec 2026-07-28 basic/transports/streamable-http: MUST exclude it, SHOULD log why."""
    bad = tool("bad", {"x": {"type": "number", "x-mcp-header": "X"}})

    with caplog.at_level(logging.WARNING, "isthmus"):
        usable = mirrored().learn([bad, tool("good")])

    assert ["good"] == [t.name for t in usable]
    assert "tool 'bad' is left out: x-mcp-header at x: its type must be" in caplog.text


def test_marks_mean_nothing_where_no_headers_travel():
    """Spec 2026-07-28 basic/transports/streamable-http: other transports MAY ignore them."""
    bad = tool("bad", {"x": {"type": "number", "x-mcp-header": "X"}})

    assert [bad] == ToolCatalog().learn([bad])


SUM = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}


def check(schema, result):
    OutputValidator(tool(output_schema=schema)).check(result)


def test_a_result_that_fits_passes():
    """Ours: checking says nothing about what is right."""
    check(SUM, text_result("", structured_content={"sum": 3}))
    check({"type": "array"}, text_result("", structured_content=[1]))
    OutputValidator(tool()).check(text_result(""))


def test_a_failed_tool_owes_no_structure():
    """Spec 2026-07-28 server/tools: an error result carries text."""
    check(SUM, text_result("it broke", is_error=True))


@pytest.mark.covers("tools.output.validated-by-client")
@pytest.mark.parametrize(
    ("schema", "result", "complaint"),
    [
        (
            SUM,
            text_result("", structured_content={"sum": "x"}),
            r"'t' breaks its schema.*at `\$\.sum`",
        ),
        (SUM, text_result(""), "has an output schema but gave no structured content"),
        (
            {"type": 7},
            text_result("", structured_content={}),
            "output schema of tool 't' cannot be used",
        ),
        (
            {"$schema": "urn:x", "type": "object"},
            text_result("", structured_content={}),
            "cannot be used",
        ),
    ],
)
def test_what_breaks_the_schema_is_the_servers_fault(schema, result, complaint):
    """Spec 2026-07-28 server/tools#output-schema: servers MUST conform."""
    with pytest.raises(Misbehaved, match=complaint):
        check(schema, result)


@pytest.mark.covers("clientlimits.schemas.bounded")
def test_a_reference_to_the_network_is_never_followed():
    """Spec 2026-07-28 basic#ref-resolution: MUST NOT; and the schema is rejected."""
    fetched = []

    class Server(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            fetched.append(self.path)

    server = http.server.HTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    schema = {"$ref": f"http://127.0.0.1:{server.server_port}/schema"}

    with pytest.raises(Misbehaved, match="cannot be used"):
        check(schema, text_result("", structured_content={}))
    server.shutdown()
    server.server_close()

    assert [] == fetched


FORBIDDEN = {
    "empty": {"a": {"type": "string", "x-mcp-header": ""}},
    "object": {"a": {"type": "object", "x-mcp-header": "A"}},
    "array": {"a": {"type": "array", "x-mcp-header": "A"}},
    "null": {"a": {"type": "null", "x-mcp-header": "A"}},
    "number": {"a": {"type": "number", "x-mcp-header": "A"}},
    "twice": {n: {"type": "string", "x-mcp-header": "A"} for n in "ab"},
    "twice in other case": {n: {"type": "string", "x-mcp-header": n} for n in "aA"},
    "space": {"a": {"type": "string", "x-mcp-header": "A B"}},
    "colon": {"a": {"type": "string", "x-mcp-header": "A:B"}},
    "beyond ASCII": {"a": {"type": "string", "x-mcp-header": "Ä"}},
    "control character": {"a": {"type": "string", "x-mcp-header": "A\n"}},
    "no string": {"a": {"type": "string", "x-mcp-header": 7}},
}


@pytest.mark.covers("clientcalls.headers.mirrored")
@pytest.mark.parametrize("flaw", FORBIDDEN)
def test_every_forbidden_mark_hides_its_tool_and_the_log_says_why(flaw, caplog):
    """Spec 2026-07-28 server/tools#x-mcp-header: MUST be excluded, SHOULD be logged with a reason."""
    catalog = ToolCatalog()
    catalog.mirrored = True
    tools = [
        Tool(name="bad", input_schema={"type": "object", "properties": FORBIDDEN[flaw]}),
        Tool(name="good", input_schema={"type": "object"}),
    ]
    with caplog.at_level(logging.WARNING, "isthmus"):
        assert ["good"] == [tool.name for tool in catalog.learn(tools)]

    assert "tool 'bad' is left out: x-mcp-header at" in caplog.text


@pytest.mark.covers("clientcalls.headers.mirrored")
@pytest.mark.parametrize(
    ("value", "header"),
    [
        ("eu", "eu"),
        ("", ""),
        ("a b", "a b"),
        (" a", "=?base64?IGE=?="),
        ("a ", "=?base64?YSA=?="),
        ("Grüße", "=?base64?R3LDvMOfZQ==?="),
        ("a\r\nb", "=?base64?YQ0KYg==?="),
        ("a\tb", "=?base64?YQli?="),
        ("\x01", "=?base64?AQ==?="),
        ("=?base64?x?=", "=?base64?PT9iYXNlNjQ/eD89?="),
        (None, None),
    ],
)
def test_every_kind_of_value_is_mirrored_as_it_must_be(value, header):
    """Spec 2026-07-28 basic/transports/streamable-http#value-encoding: plain, or wrapped."""
    catalog = ToolCatalog()
    catalog.mirrored = True
    marked = {"a": {"type": "string", "x-mcp-header": "Method"}, "b": {"type": "number"}}
    catalog.learn([Tool(name="t", input_schema={"type": "object", "properties": marked})])
    found = catalog.headers("t", {"a": value, "b": 1.5})

    assert (() if header is None else (("Mcp-Param-Method", header),)) == found
