"""Elicitation: forms and pages, put to the user only as they may be."""

import json

import pytest
from msgspec import UNSET, Raw

from isthmus.client.client import Client
from isthmus.client.features.elicitation import concerns, fill_form
from isthmus.core.answers import Accepted, Declined
from isthmus.core.negotiation import states_facts
from isthmus.errors import Misbehaved, Refused, UsageError
from isthmus.wire import (
    ClientCapabilities,
    ElicitationCapability,
    ElicitParams,
    ElicitResult,
    InputRequest,
    InputRequiredResult,
)
from isthmus.wire.jsonrpc import encode
from support.client.small_server import LEGACY_NAME, MODERN_NAME, SmallServer, text_result

EITHER = pytest.mark.parametrize("revision", [LEGACY_NAME, MODERN_NAME])
FORM = {"type": "object", "properties": {}}


def make_asking_server(question, *, raw=None):
    """A server whose tool puts a question, and says what it heard: an answer or an error."""
    written = Raw(encode(question)) if raw is None else Raw(json.dumps(raw).encode())

    async def call(call, inbound):
        if not states_facts(inbound.caller.revision):
            try:
                found = await inbound.link.call(
                    "elicitation/create", question, ElicitResult, relates_to=inbound.id, timeout=5
                )
            except Refused as error:
                return text_result(f"{error.code} {error.message}")
            return text_result(encode(found).decode())
        if call.input_responses is UNSET:
            asked = InputRequest(method="elicitation/create", params=written)
            return InputRequiredResult(input_requests={"q": asked}, request_state="s")
        return text_result(bytes(call.input_responses["q"]).decode())

    return SmallServer({"tools/call": call})


async def ask_client(question, revision, **options):
    """What the server hears; or what the call ends with, where nobody can be told."""
    options.setdefault("elicit", lambda _: Accepted({}))
    async with Client(make_asking_server(question), revision=revision, **options) as client:
        try:
            return (await client.call_tool("ask")).text
        except Misbehaved as error:
            return f"misbehaved {error}"


def only(**modes):
    return ClientCapabilities(elicitation=ElicitationCapability(**modes))


@pytest.mark.covers("elicitation.mode.undeclared-refused")
@EITHER
@pytest.mark.parametrize(
    ("capabilities", "question", "mode"),
    [
        (only(form={}), ElicitParams(message="?", mode="url", url="https://x", elicitation_id="1"), "url"),
        (only(), ElicitParams(message="?", mode="url", url="https://x", elicitation_id="1"), "url"),
        (only(url={}), ElicitParams(message="?", requested_schema=FORM), "form"),
    ],
)  # fmt: skip
async def test_a_mode_that_was_not_declared_is_refused(revision, capabilities, question, mode):
    """Spec 2025-11-25 client/elicitation#error-handling: MUST be -32602."""
    found = await ask_client(question, revision, capabilities=capabilities)

    assert f"Invalid params: this client did not declare elicitation.{mode}" in found
    assert found.startswith("-32602" if revision == LEGACY_NAME else "misbehaved")


@pytest.mark.covers("elicitation.mode.undeclared-refused")
async def test_a_client_that_declared_nothing_of_it_refuses_every_form():
    """Spec 2025-11-25 client/elicitation#error-handling: a mode that was not declared is -32602."""
    question = ElicitParams(message="?", requested_schema=FORM)

    found = await ask_client(question, LEGACY_NAME, elicit=None)

    assert found.startswith("-32602")


@pytest.mark.covers("elicitation.schema.flat-only")
@EITHER
async def test_what_is_no_form_is_not_put_to_anybody(revision):
    """Spec 2026-07-28 client/elicitation#requested-schema: nested structures are not supported."""
    asked = []
    nested = {"type": "object", "properties": {"a": {"type": "object", "properties": {}}}}

    found = await ask_client(
        ElicitParams(message="?", requested_schema=nested), revision, elicit=asked.append
    )

    assert [] == asked
    assert "requestedSchema.properties.a has 'properties'" in found
    assert found.startswith("-32602" if revision == LEGACY_NAME else "misbehaved")


@pytest.mark.covers("elicitation.schema.required")
async def test_a_form_needs_its_schema():
    """Spec 2025-11-25 client/elicitation#form-mode-elicitation-requests: a MUST of servers."""
    small = make_asking_server(None, raw={"message": "?"})
    async with Client(small, elicit=lambda _: Accepted({})) as client:
        with pytest.raises(Misbehaved, match="requestedSchema is missing"):
            await client.call_tool("ask")


@pytest.mark.covers("elicitation.url.valid", "elicitation.url.not-fetched")
@EITHER
@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("javascript:alert(1)", "url is no URL"),
        ("file:///etc/passwd", "url is no URL"),
        ("ftp://x.example/y", "no page on the web but ftp:"),
        ("https://", "url is no URL"),
        ("https://[::1", "url is no URL"),
        ("https://x.example/a b", "blanks or control characters"),
        ("https://evil.example\\@bank.example/", "a backslash"),
        ("https://bank.example@evil.example/", "a user or a password before its host"),
        ("https://ada:secret@bank.example/", "a user or a password before its host"),
        ("https://@bank.example/", "a user or a password before its host"),
        ("https://bank.example\uff0fevil.example/", "url is no URL"),
        ("nowhere", "url is no URL"),
        (UNSET, "url is no URL"),
    ],
)
async def test_nobody_is_sent_to_what_is_no_page(revision, url, complaint):
    """Spec 2026-07-28 client/elicitation#url-mode-elicitation-requests: MUST be a valid URL."""
    asked = []
    question = ElicitParams(message="?", mode="url", url=url, elicitation_id="1")

    assert complaint in await ask_client(question, revision, elicit=asked.append)
    assert [] == asked


@pytest.mark.covers("elicitation.url.id-required")
async def test_a_page_has_an_id_where_the_revision_wants_one():
    """Spec 2025-11-25 client/elicitation#url-mode-elicitation-requests: elicitationId is a MUST."""

    async def call(_params, inbound):
        question = ElicitParams(message="?", mode="url", url="https://x.example", elicitation_id="")
        try:
            await inbound.link.call("elicitation/create", question, ElicitResult)
        except Refused as error:
            return text_result(error.message)

    async with Client(
        SmallServer({"tools/call": call}), revision=LEGACY_NAME, elicit=lambda _: Declined()
    ) as client:
        assert "elicitationId is missing" in (await client.call_tool("ask")).text


@pytest.mark.covers("elicitation.url.suspicious")
@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://login.example.com/x?y=1", []),
        ("http://localhost:8000/x", []),
        (
            "https://xn--pypl-53dc.example",
            ["look like others: it reads p\u0430yp\u0430l", "Cyrillic and Latin"],
        ),
        ("https://p\u0430ypal.example", ["look like others", "Cyrillic and Latin"]),
        ("https://\u0430\u0440\u0440\u04cf\u0435.example", ["look like others"]),
        ("https://b%61nk.example", ["behind percent signs: it is bank.example"]),
        ("https://bank.example%40evil.example", ["it is bank.example@evil.example"]),
        ("https://b%D0%B0nk.example", ["percent signs", "look like others", "Cyrillic and Latin"]),
        ("https://[::1", ["none that can be read"]),
        ("https://b\u00fccher.example", ["look like others"]),
        ("https://bank.example@evil.example/", ["stands before the @"]),
        ("http://bank.example", ["not encrypted"]),
        ("https://10.0.0.1/x", ["bare address"]),
        ("https://0x7f.1/x", ["bare address"]),
        ("https://10.0.0.0XA./x", ["bare address"]),
        ("http://[2001:db8::1]/x", ["not encrypted", "bare address"]),
    ],
)
def test_odd_pages_are_warned_of(url, expected):
    """Spec 2026-07-28 client/elicitation#safe-url-handling: SHOULD have warnings."""
    found = concerns(url)

    assert len(expected) == len(found)
    assert all(words in concern for words, concern in zip(expected, found, strict=True))


@pytest.mark.covers("elicitation.answer.validated")
@pytest.mark.parametrize(
    ("blank", "value", "complaint"),
    [
        ({"type": "integer", "minimum": 1}, 0, "'a' breaks 'minimum': 0 is less than"),
        ({"type": "integer"}, "x", "'a' breaks 'type'"),
        ({"type": "string", "format": "email"}, "x", "'a' breaks 'format'"),
        ({"type": "string", "format": "date"}, "2026-13-01", "'a' breaks 'format'"),
        ({"type": "string", "format": "date-time"}, "now", "'a' breaks 'format'"),
        ({"type": "string", "format": "uri"}, "not a uri", "'a' breaks 'format'"),
        ({"type": "string", "enum": ["x"]}, "y", "'a' breaks 'enum'"),
        ({"type": "string", "oneOf": [{"const": "x"}]}, "y", "'a' breaks 'oneOf'"),
        (
            {"type": "array", "items": {"type": "string", "enum": ["x"]}},
            ["x", "y"],
            "'a.1' breaks 'enum'",
        ),
        (
            {"type": "array", "items": {"anyOf": [{"const": "x"}]}, "minItems": 2},
            ["x"],
            "'a' breaks 'minItems'",
        ),
    ],
)
def test_an_answer_that_breaks_the_form_names_member_and_rule(blank, value, complaint):
    """Spec 2026-07-28 client/elicitation#form-mode-security: validated before it is sent."""
    schema = {"type": "object", "properties": {"a": blank}}
    with pytest.raises(UsageError) as wrong:
        fill_form({"a": value}, schema)

    assert complaint in str(wrong.value)


@pytest.mark.covers("elicitation.answer.validated")
def test_a_blank_that_must_be_filled_is_named():
    """Ours: which one was forgotten is what one wants to know."""
    schema = {"type": "object", "properties": {"row": {"type": "integer"}}, "required": ["row"]}
    with pytest.raises(UsageError, match="'row' breaks 'required'"):
        fill_form({}, schema)


@pytest.mark.covers("elicitation.schema.every-enum")
@pytest.mark.parametrize(
    ("blank", "value"),
    [
        ({"type": "string", "enum": ["a", "b"]}, "b"),
        ({"type": "string", "oneOf": [{"const": "a", "title": "A"}]}, "a"),
        ({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}, ["b"]),
        ({"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}}, ["a"]),
        ({"type": "string", "enum": ["a"], "enumNames": ["A"]}, "a"),
    ],
)
def test_every_kind_of_choice_can_be_made(blank, value):
    """SEP-1330: five shapes of choices."""
    schema = {"type": "object", "properties": {"a": blank}}

    assert {"a": value} == fill_form({"a": value}, schema)


@pytest.mark.covers("elicitation.capability.handlers-only")
@pytest.mark.parametrize("name", ["elicitation", "sampling", "roots"])
def test_nothing_is_declared_that_nothing_answers(name):
    """Ours: a server that believes it would wait for nobody."""
    shapes = {hint: ClientCapabilities.__annotations__[hint] for hint in (name,)}
    declared = ClientCapabilities(**{name: shapes[name].__args__[0]()})
    with pytest.raises(
        UsageError, match=f"capabilities declares {name}, and no handler answers it"
    ):
        Client(SmallServer(), capabilities=declared)


async def test_a_handler_that_raises_reaches_whoever_called():
    """Ours: since 2026-07-28 the handler runs on behalf of the call."""

    def elicit(_question):
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        await ask_client(
            ElicitParams(message="?", requested_schema=FORM), MODERN_NAME, elicit=elicit
        )
