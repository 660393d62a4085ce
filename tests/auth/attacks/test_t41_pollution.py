"""T41: a parameter that comes twice, or in the query of a POST, is refused."""

import base64

import pytest

from support.auth.small_authority import OTHER, RESOURCE, SmallAuthority, redirect_parameters

pytestmark = pytest.mark.covers("auth.threat.t41-parameter-pollution")


@pytest.mark.parametrize(
    "name", ["client_id", "redirect_uri", "scope", "state", "code_challenge", "unheard_of"]
)
async def test_a_request_with_a_parameter_twice_is_a_page(name):
    """OAuth 2.1 3.1: never more than once; nobody is redirected by one of two URIs."""
    async with SmallAuthority() as small:
        pairs = [*small.request(await small.public(), scope="read", unheard_of="1").items()]
        answer = await small.get("/authorize", [*pairs, (name, "again")])

        assert (400, None) == (answer.status, answer.header("location"))


@pytest.mark.parametrize("path", ["/token", "/revoke", "/introspect"])
async def test_parameters_of_a_post_are_in_its_body(path):
    """OAuth 2.1 2.4.1: credentials in a URL end in logs, and so are refused there."""
    async with SmallAuthority() as small:
        answer = await small.post(
            path, {"token": "x"}, scope={"query_string": b"client_id=x&client_secret=y"}
        )

        assert (400, "invalid_request") == (answer.status, answer.json["error"])


@pytest.mark.parametrize(
    ("header", "fields"),
    [
        (("notes", "s"), {"client_secret": "s"}),
        (("notes", "s"), {"client_assertion": "a.b.c"}),
        (("notes", "s"), {"client_id": "other"}),
        (None, {"client_id": "notes", "client_secret": "s", "client_assertion": "a.b.c"}),
    ],
)
async def test_a_client_authenticates_once_and_as_one_client(header, fields):
    """OAuth 2.1 2.4: more than one way in a request is refused."""
    async with SmallAuthority() as small:
        headers = {}
        if header:
            headers["authorization"] = "Basic " + base64.b64encode(":".join(header).encode()).decode()  # fmt: skip
        answer = await small.post("/token", {"grant_type": "client_credentials", **fields}, headers)

        assert (400, "invalid_request") == (answer.status, answer.json["error"])


async def test_headers_that_come_twice_are_refused():
    """RFC 9449 4.3: one proof; and one Authorization."""
    async with SmallAuthority() as small:
        fields = {"grant_type": "client_credentials"}
        proofs = await small.post("/token", fields, {"dpop": ["a", "b"]})
        logins = await small.post("/token", fields, {"authorization": ["Basic YTpi", "Basic YTpj"]})

        assert "invalid_dpop_proof" == proofs.json["error"]
        assert "invalid_request" == logins.json["error"]


async def test_resource_may_come_twice_if_it_says_the_same():
    """RFC 8707 2: it may be repeated; we issue tokens for one server at a time."""
    async with SmallAuthority() as small:
        client_id = await small.public()
        same = await small.ask(client_id, resource=[RESOURCE, RESOURCE])
        two = await small.ask(client_id, resource=[RESOURCE, OTHER])

        assert "code" in redirect_parameters(same)
        assert "invalid_target" == redirect_parameters(two)["error"]


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"a=1&" * 100, {}, 400),
        (b"a=" + b"x" * 70_000, {}, 413),
        (b"a=%ff", {}, 400),
        (b"\xff", {}, 400),
        (b"{}", {"content-type": "application/json"}, 400),
        (b"a=1", {"content-type": "multipart/form-data"}, 400),
        (b"", {}, 400),
    ],
)
async def test_bodies_are_bounded_and_of_one_kind(body, headers, status):
    """Ours: what cannot be read is refused before anything looks into it."""
    async with SmallAuthority() as small:
        assert status == (await small.post("/token", body, headers)).status
