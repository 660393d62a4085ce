"""Credentials: which are chosen, and the caller's own token."""

from types import SimpleNamespace

import pytest

from isthmus.auth.tokens.secret import Secret
from isthmus.client.client import Client
from isthmus.core.principal import Principal
from isthmus.errors import ToolError, UsageError
from isthmus.openapi.operation import Operation
from isthmus.openapi.request import PreparedRequest
from isthmus.openapi.sending import ApiResponse
from isthmus.openapi.tools.credentials import (
    ApiCredentials,
    SecurityScheme,
    hide_secrets,
    inbound_token,
    upstream,
)
from isthmus.server.asking.context import Context
from isthmus.transports.http.request import RequestHeaders
from support.openapi.stand_in_api import (
    StandInSender,
    answer_json,
    make_document,
    serve_document,
)

SCHEMES = {
    "bearer": SecurityScheme("bearer", "header", "Authorization", "Bearer"),
    "key": SecurityScheme("key", "query", "key"),
    "cookie": SecurityScheme("cookie", "cookie", "sid"),
}
REQUEST = PreparedRequest("GET", "https://api.example/x")


def operation(*needs) -> Operation:
    return Operation(method="GET", path="/x", pointer="#", security=tuple(needs))


def caller(**principal) -> SimpleNamespace:
    who = Principal(issuer="https://i", subject="ada", **principal)
    headers = RequestHeaders([(b"authorization", b"Bearer secret-token")], bare=True)
    return SimpleNamespace(principal=who, headers=headers)


async def apply(given, *needs, context=None, headers=None):
    request, _ = await ApiCredentials(SCHEMES, given, headers).apply(
        operation(*needs), REQUEST, context
    )
    return request.url, request.all_headers()


async def test_the_first_alternative_that_has_credentials_counts():
    """OpenAPI 3.1 4.8.30: alternatives, each of schemes that go together."""
    needs = {"bearer": ()}, {"key": (), "cookie": ()}, {}

    assert ("https://api.example/x", {"Authorization": "Bearer t"}) == await apply(
        {"bearer": "t"}, *needs
    )
    assert ("https://api.example/x?key=a%26b", {"Cookie": "sid=c"}) == await apply(
        {"key": Secret("a&b"), "cookie": "c"}, *needs
    )
    assert ("https://api.example/x", {}) == await apply({"key": "a"}, *needs)


async def test_a_credential_cannot_inject_a_header():
    """Ours: what a function gives may come from anywhere; the refusal does not repeat it."""
    with pytest.raises(
        UsageError, match="has characters that are not allowed in a header"
    ) as refused:
        await apply({"bearer": lambda ctx: "t\r\nX-Evil: 1"}, {"bearer": ()})
    with pytest.raises(UsageError, match="'Host' is no header"):
        await apply({}, headers=lambda ctx: {"Host": "evil"})

    assert "Evil" not in str(refused.value)


async def test_the_callers_token_is_passed_on_where_it_is_for_the_api():
    """Ours: a bearer token, with the API among its audiences; handlers cannot read it elsewhere."""
    given = {"bearer": inbound_token("https://api.example")}
    good = caller(claims={"aud": ["https://api.example", "x"]})

    assert (
        "Bearer secret-token"
        == (await apply(given, {"bearer": ()}, context=good))[1]["Authorization"]
    )
    assert "authorization" not in good.headers
    for bad in (
        caller(claims={"aud": "https://other.example"}),
        caller(claims={"aud": "https://api.example"}, jkt="bound"),
        caller(claims={}),
        caller(claims={"aud": []}),
        caller(claims={"aud": "https://api.example.evil"}),
        SimpleNamespace(principal=None, headers={}),
    ):
        with pytest.raises(ToolError, match="access token"):
            await apply(given, {"bearer": ()}, context=bad)


async def test_a_token_of_a_provider_is_asked_for_by_the_url_it_goes_to():
    """Ours: the provider's own list of origins decides."""
    asked = []

    class Api:
        async def access_token(self, url):
            asked.append(url)
            return Secret("theirs")

    async def find(name):
        return Api()

    context = SimpleNamespace(upstream=find)
    _, headers = await apply({"bearer": upstream("github")}, {"bearer": ()}, context=context)

    assert ("Bearer theirs", ["https://api.example/x"]) == (headers["Authorization"], asked)


async def test_a_refused_token_of_a_provider_is_renewed_once():
    """Ours: as ``ctx.upstream`` does; what the API refuses twice, it refuses."""
    kept = ["old"]

    class Api:
        async def access_token(self, url, *, refused=None):
            if refused is not None:
                assert refused == kept[-1]
                kept.append("new" if len(kept) == 1 else "newer")
            return Secret(kept[-1])

    class Picky(StandInSender):
        async def send(self, request, **options):
            await super().send(request, **options)
            good = request.headers["Authorization"] == f"Bearer {self.good}"
            return answer_json({"ok": good}, 200 if good else 401)

    async def find(self, name):
        return Api()

    post = {"operationId": "post", "security": [{"o": []}]}
    schemes = {"securitySchemes": {"o": {"type": "oauth2", "flows": {}}}}
    sender = Picky()
    server = serve_document(
        make_document({"/": {"post": post}}, components=schemes),
        sender,
        credentials={"o": upstream("github")},
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Context, "upstream", find)
        async with Client(server) as client:
            sender.good = "new"
            first = await client.call_tool("post", {})
            sender.good = "none"
            second = await client.call_tool("post", {})
    await server.close()

    assert {"ok": True} == first.structured
    assert "HTTP 401" in second.text
    assert ["old", "new", "new", "newer"] == [
        one.headers["Authorization"].removeprefix("Bearer ") for one in sender.sent
    ]


@pytest.mark.parametrize(
    ("body", "kind", "expected"),
    [
        (b'{"a": "hunter22\\/x"}', "application/json", b'{"a":"[secret]"}'),
        (b'{"a": "\\u0068unter22\\/x"}', "application/problem+json", b'{"a":"[secret]"}'),
        (b"k=hunter22%2Fx&b=1", "text/plain", b"k=[secret]&b=1"),
        ("\u00e9 hunter22/x".encode("utf-16-le"), "text/plain; charset=utf-16le", "\u00e9 [secret]".encode("utf-16-le")),
        (b'{"password": "lovelace", "n": 1234567, "s": "pin 1234567", "m": 91234567}', "application/json",
         b'{"password":"[secret]","n":1234567,"s":"pin [secret]","m":91234567}'),
        (b"<html>1234567", "text/html", b"<html>[secret]"),
        (b'{"broken": hunter22/x', "application/json", b'{"broken": [secret]'),
    ],
)  # fmt: skip
def test_a_credential_is_found_however_the_api_spells_it(body, kind, expected):
    """Ours: escapes of JSON, percent-encoding, the password alone; a number stays a number."""
    secrets = [Secret("hunter22/x"), Secret("ada:lovelace"), Secret("1234567")]
    headers = {"content-type": kind, "location": "/?key=hunter22%2Fx"}
    found = hide_secrets(ApiResponse(200, headers, body), secrets)

    assert expected == found.body
    assert "/?key=[secret]" == found.headers["location"]


async def test_a_word_in_a_header_of_the_author_is_no_secret():
    """Ours: else the version of an API would be missing in all that it answers."""
    made = {"X-Version": "2026-07-28", "X-Api-Key": "abcdef", "X-Other": "0123456789abcdef0123"}
    _, secrets = await ApiCredentials({}, None, lambda ctx: made).apply(operation(), REQUEST, None)

    assert ["abcdef", "0123456789abcdef0123"] == [one.reveal() for one in secrets]
