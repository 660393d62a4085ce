"""The waist: admit, read, run, write."""

import asyncio
import json
import logging

import pytest
from msgspec import UNSET, Raw

from isthmus.core.caller import Caller
from isthmus.errors import Refuse
from isthmus.revisions import BY_NAME, METHODS, REVISIONS, Method
from isthmus.runtime.inbound import Inbound
from isthmus.runtime.router import Router
from isthmus.wire import (
    CallToolResult,
    EmptyResult,
    Implementation,
    ListToolsResult,
    TextContent,
)
from isthmus.wire.jsonrpc import ErrorBody

ME = Implementation(name="me", version="1")


def inbound(method="tools/list", params=None, revision="2026-07-28"):
    raw = None if params is None else Raw(json.dumps(params).encode())
    return Inbound(1, method, raw, Caller(BY_NAME[revision]), link=None)


def make_router(result=None, error=None, **options):
    async def handler(params, inbound):
        if error is not None:
            raise error
        return result

    methods = ["tools/list", "tools/call", "ping", "resources/subscribe"]
    return Router(dict.fromkeys(methods, handler), **options)


@pytest.mark.covers("messages.result-type.stamped", "meta.server.named")
async def test_modern_results_say_type_server_and_cacheability():
    """Every 2026-07-28 result has resultType; cacheable ones their hints (spec: caching)."""
    data = await make_router(ListToolsResult(tools=[]), server=ME).serve(inbound())

    assert {
        "resultType": "complete",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "me", "version": "1"}},
        "ttlMs": 0,
        "cacheScope": "private",
        "tools": [],
    } == json.loads(data)


@pytest.mark.covers("messages.result-type.stamped")
async def test_legacy_results_carry_none_of_it():
    """Older revisions know no stamp (schemas)."""
    data = await make_router(ListToolsResult(tools=[]), server=ME).serve(
        inbound(revision="2025-11-25")
    )

    assert {"tools": []} == json.loads(data)


async def test_a_results_own_meta_and_hints_are_kept():
    """The stamp adds, it does not replace (our promise)."""
    result = ListToolsResult(tools=[], meta={"a": 1}, ttl_ms=5, cache_scope="public")
    answer = json.loads(await make_router(result, server=ME).serve(inbound()))

    assert 1 == answer["_meta"]["a"]
    assert "me" == answer["_meta"]["io.modelcontextprotocol/serverInfo"]["name"]
    assert (5, "public") == (answer["ttlMs"], answer["cacheScope"])


@pytest.mark.covers("messages.answers.object")
async def test_an_empty_result_is_an_object():
    """``{}`` in legacy, a stamped object in modern (spec: result responses)."""
    assert b"{}" == await make_router(EmptyResult()).serve(inbound("ping", revision="2025-03-26"))


async def test_a_raw_result_is_passed_through():
    """A handler that keeps finished bytes pays for no encoding (performance.md)."""
    assert b'{"tools":[1]}' == await make_router(Raw(b'{"tools":[1]}')).serve(inbound())


@pytest.mark.covers("errors.methods.not-found")
@pytest.mark.parametrize(
    ("method", "revision"),
    [
        ("no/such", "2026-07-28"),
        ("ping", "2026-07-28"),
        ("resources/subscribe", "2026-07-28"),
        ("server/discover", "2025-11-25"),
        ("prompts/list", "2025-11-25"),
    ],
)
async def test_what_a_revision_or_server_lacks_is_not_found(method, revision):
    """-32601 for unknown methods, and for known ones of other revisions (spec: JSON-RPC)."""
    error = await make_router(EmptyResult()).serve(inbound(method, revision=revision))

    assert -32601 == error.code
    assert method in error.message


@pytest.mark.covers("errors.params.where")
async def test_parameters_that_do_not_fit_are_refused_with_their_path():
    """-32602 says where (our promise)."""
    error = await make_router().serve(inbound("tools/call", {"name": 5}))

    assert -32602 == error.code
    assert "$.name" in error.message


async def test_missing_parameters_read_as_an_empty_object():
    """``params`` may be left out where nothing in it is required (JSON-RPC 2.0)."""
    assert b'{"tools":[]}' == await make_router(ListToolsResult(tools=[])).serve(
        inbound(revision="2024-11-05")
    )


@pytest.mark.parametrize("params", [UNSET, Raw(), Raw(b"{}")], ids=["none", "empty", "object"])
def test_what_a_request_takes_is_told_of_one_without_parameters_too(params):
    """Ours: whether they are absent, empty or an empty object, it takes the same."""
    router = make_router(needs={"tools/list": lambda read, who: frozenset({"list"})})

    assert {"list"} == router.needs("tools/list", params, None)


async def test_a_refusal_keeps_code_message_and_data():
    """Refuse is answered as it was raised (architecture 9.2)."""
    error = await make_router(error=Refuse(42, "no", {"why": 1})).serve(inbound())

    assert ErrorBody(code=42, message="no", data={"why": 1}) == error


@pytest.mark.covers("errors.internal.withheld")
async def test_the_text_of_an_unexpected_error_stays_inside(caplog):
    """-32603, never code 0; the text goes to the log only (conformance.md)."""
    with caplog.at_level(logging.ERROR, "isthmus"):
        error = await make_router(error=ValueError("secret")).serve(inbound())

    assert -32603 == error.code
    assert "secret" not in error.message
    assert "secret" in caplog.text


async def test_debug_lets_the_text_out():
    """``Server(debug=True)`` is for development (architecture 9.2)."""
    error = await make_router(error=ValueError("visible"), debug=True).serve(inbound())

    assert "visible" in error.message


@pytest.mark.covers("lifecycle.operation.agreed-revision")
async def test_results_are_cut_to_the_revision():
    """Handlers speak the newest shape; the router cuts (architecture 4.2)."""
    result = CallToolResult(
        content=[TextContent(text="x")], structured_content={"a": 1}, meta={"k": 1}
    )
    answer = json.loads(
        await make_router(result).serve(inbound("tools/call", {"name": "x"}, "2024-11-05"))
    )

    assert "structuredContent" not in answer
    assert [{"type": "text", "text": "x"}] == answer["content"]


async def test_middleware_wraps_in_order():
    """The first layer is the outermost (our promise)."""
    seen = []

    def layer(name):
        async def middleware(inbound, call_next):
            seen.append(f"{name} in")
            result = await call_next(inbound)
            seen.append(f"{name} out")
            return result

        return middleware

    router = make_router(EmptyResult(), middleware=[layer("a"), layer("b")])
    await router.serve(inbound("ping", revision="2025-11-25"))

    assert ["a in", "b in", "b out", "a out"] == seen


async def test_custom_methods_are_served_in_every_revision():
    """Extensions are not the table's business (architecture 7)."""

    async def handler(params, inbound):
        return EmptyResult()

    row = Method("acme/refund", ("client",), dict, EmptyResult)
    router = Router({"acme/refund": handler}, extra={"acme/refund": row})

    for revision in REVISIONS:
        assert isinstance(await router.serve(inbound("acme/refund", {}, revision.name)), bytes)


@pytest.mark.covers("messages.notifications.unanswered")
def test_notifications_reach_their_handler_and_bugs_stay_there(caplog):
    """A notification has no answer, so its failures are logged (JSON-RPC 2.0)."""
    seen = []

    def broken(params, inbound):
        seen.append(params)
        raise ValueError("in the handler")

    router = Router({}, {"notifications/roots/list_changed": broken})
    note = inbound("notifications/roots/list_changed", revision="2025-11-25")
    router.note("notifications/roots/list_changed", None, note)
    router.note("notifications/roots/list_changed", Raw(b"3"), note)
    router.note("notifications/unknown", None, note)

    assert 1 == len(seen)
    assert "in the handler" in caplog.text


def test_the_table_has_a_row_for_what_is_routed():
    """The routes above are real methods (our promise)."""
    assert "tools/list" in METHODS


@pytest.mark.parametrize("stray", [asyncio.CancelledError(), SystemExit("usage: …")])
async def test_what_is_no_exception_is_answered_like_one(stray, caplog):
    """Ours: neither something awaited that was cancelled nor an exit leaves a caller waiting."""
    answer = await make_router(error=stray).serve(inbound())

    assert ErrorBody(code=-32603, message="Internal error in tools/list") == answer
    assert "tools/list failed" in caplog.text


@pytest.mark.covers("cancellation.received.unanswered")
async def test_a_request_that_is_withdrawn_is_not_answered():
    """No response for a cancelled request (spec: cancellation)."""
    begun = asyncio.Event()

    async def handler(_params, _inbound):
        begun.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(Router({"tools/list": handler}).serve(inbound()))
    await begun.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.covers("errors.codes.never-zero")
async def test_no_error_has_the_code_0():
    """Users' pain: 0 says nothing, and may come from another server through an author's code."""
    answer = await make_router(error=Refuse(0, "went wrong")).serve(inbound())

    assert ErrorBody(code=-32603, message="went wrong") == answer


@pytest.mark.covers("errors.codes.of-the-specification")
@pytest.mark.parametrize(("code", "modern"), [(-32002, -32602), (-32042, -32603), (7, 7)])
async def test_codes_that_were_given_up_are_not_sent_any_more(code, modern):
    """Spec 2026-07-28 basic#error-codes: MUST NOT, whoever the error comes from."""
    router = make_router(error=Refuse(code, "no"))

    assert modern == (await router.serve(inbound())).code
    assert code == (await router.serve(inbound(revision="2025-11-25"))).code
