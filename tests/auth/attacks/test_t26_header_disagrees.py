"""T26: headers that look harmless before a body that is not."""

import pytest

from support.auth.protected_server import Files, bearer_header
from support.http.asgi_driver import fetch
from support.http.messages import modern_body, modern_head


@pytest.mark.covers("auth.threat.t26-header-disagrees", "auth.resource.body-decides")
@pytest.mark.parametrize("name", ["ada", "eve"])
@pytest.mark.parametrize(
    ("method", "target"), [("tools/call", "read"), ("tools/list", "write"), ("tools/call", None)]
)
async def test_the_body_decides_and_headers_that_say_otherwise_are_an_error(name, method, target):
    """Spec 2026-07-28 basic/transports/streamable-http#server-validation: 400, -32020, nothing is run."""
    files = Files()
    head = {**modern_head(method, target), **bearer_header(name)}
    body = modern_body("tools/call", {"name": "write", "arguments": {"path": "a"}})

    answer = await fetch(files.app, headers=head, body=body)

    assert (400, -32020) == (answer.status, answer.json["error"]["code"])
    assert [] == files.done


@pytest.mark.covers("auth.threat.t26-header-disagrees")
async def test_of_a_name_that_comes_twice_the_same_one_counts_everywhere():
    """Ours: what is permitted and what is run are read by the same reader."""
    files = Files()
    raw = (
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","name":"write",'
        b'"arguments":{"path":"a"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
        b'"io.modelcontextprotocol/clientCapabilities":{}}}}'
    )

    for target in ("read", "write"):
        head = {**modern_head(name=target), **bearer_header("ada")}
        answer = await fetch(files.app, headers=head, body=raw)

        assert answer.status in {400, 403}
    assert [] == files.done


@pytest.mark.covers("auth.threat.t26-header-disagrees")
@pytest.mark.parametrize("query", [b"access_token=token-of-eve", b"token=token-of-eve"])
async def test_a_token_in_the_url_is_not_looked_at(query):
    """Spec 2025-11-25 basic/authorization#token-requirements: MUST NOT be in the query string."""
    files = Files()
    body = modern_body("tools/call", {"name": "write", "arguments": {"path": "a"}})
    scope = {"query_string": query}

    nobody = await fetch(files.app, headers=modern_head(name="write"), body=body, scope=scope)
    ada = await fetch(
        files.app,
        headers={**modern_head(name="write"), **bearer_header("ada")},
        body=body,
        scope=scope,
    )

    assert ([401, 403], []) == ([nobody.status, ada.status], files.done)
