"""Credentials of a gateway's callers: no server, log, page, metric or row of the audit log has them."""

import asyncio
import logging

import pytest

from isthmus import Server
from isthmus.auth import ResourceAuth, StaticTokens
from isthmus.core.principal import Principal
from isthmus.gateway import Gateway
from isthmus.host import Host
from isthmus.host.model.entries import HostConfig, ServerEntry
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.rule_file import read_layers
from support.auth.oauth_town import body_of, replay_body
from support.event_loop import run_until
from support.gateway.operator_browser import OperatorBrowser
from support.http.asgi_driver import Exchange, fetch
from support.http.messages import (
    INITIALIZE,
    INITIALIZED,
    legacy_call_body,
    legacy_head,
    modern_body,
    modern_head,
)
from support.http.uvicorn_server import serve_uvicorn

CANARY = "canary-7d20b5f1c4"
ARGUMENT = "argument-canary-0b61"
ASKS = """
[[rule]]
id = "calls"
effect = "ask"
when = { action = ["tool.call"] }

[[rule]]
id = "rest"
effect = "allow"
"""
HOST = "127.0.0.1:8080"
META = {"authorization": f"Bearer {CANARY}", "com.example/token": CANARY}


def make_recorded_shop(revision, seen):
    """A server over HTTP, and all that it is sent."""
    shop = Server("shop", revisions=[revision])

    @shop.tool
    def buy(what: str) -> str:
        """Buy something."""
        return "bought"

    serve = shop.asgi()

    async def record(scope, receive, send):
        body = await body_of(receive) if scope["type"] == "http" else b""
        seen.append(repr((scope.get("headers"), scope.get("query_string"), body)))
        await serve(scope, replay_body(body, receive), send)

    return record


def make_canary_gateway(port, log):
    """A gateway whose calls a person approves, and whose user has the canary as a token."""
    ada = Principal(issuer="https://login.example", subject="ada", scopes=frozenset({"a"}))
    tokens = StaticTokens({CANARY: ada})
    auth = ResourceAuth(f"http://{HOST}/mcp", ["https://login.example"], tokens, scopes={"a"})
    entry = ServerEntry(name="shop", kind="http", url=f"http://127.0.0.1:{port}/mcp")
    config = HostConfig(servers={"shop": entry})
    host = Host(config, policy=Policy.of(read_layers(ASKS, "user")))
    gateway = Gateway(host, auth=auth)
    gateway.write_access_log(str(log))
    return gateway


class CanaryCaller:
    """A client that puts the canary wherever a request has room for a credential."""

    def __init__(self, app, revision):
        self.app = app
        self.revision = revision
        self.more = {
            "authorization": f"Bearer {CANARY}",
            "cookie": f"session={CANARY}",
            "x-api-key": CANARY,
            "host": HOST,
        }
        self.scope = {"query_string": f"access_token={CANARY}".encode()}

    async def begin_call(self):
        """Begin a call of the tool; its exchange."""
        if self.revision == "2026-07-28":
            body = modern_body(params=make_params("shop__buy"), progressToken="p", **META)
            return self.send(modern_head(name="shop__buy"), body)
        opened = await self.send(legacy_head(), INITIALIZE).done()
        head = legacy_head(opened.header("mcp-session-id"))
        await self.send(head, INITIALIZED).done()
        body = legacy_call_body("shop__buy", **META)
        body["params"]["arguments"] = {"what": ARGUMENT}
        return self.send(head, body)

    def send(self, head, body):
        """Send a message with the canary."""
        return Exchange(self.app, headers={**head, **self.more}, body=body, scope=self.scope)


def make_params(name):
    """The parameters of a call."""
    return {"name": name, "arguments": {"what": ARGUMENT}}


@pytest.mark.parametrize("behind", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_no_credential_of_a_caller_leaves_the_door(revision, behind, tmp_path, caplog):
    """Spec 2026-07-28 basic/authorization: no token passthrough; and nothing that is written or shown has one."""
    caplog.set_level(logging.DEBUG)
    seen, log = [], tmp_path / "access.jsonl"
    async with serve_uvicorn(make_recorded_shop(behind, seen), "auto") as port:
        gateway = make_canary_gateway(port, log)
        pages = gateway.open_pages(f"http://{HOST}")
        app, shown = gateway.asgi(), []
        browser = OperatorBrowser(app)
        async with gateway:
            call = await CanaryCaller(app, revision).begin_call()
            await run_until(gateway.host.view.pending)
            await browser.sign_in(pages.operator.token.reveal())
            page = f"/approvals/{gateway.host.view.pending()[0].id}"
            shown += [(await browser.send("GET", path))[2] for path in ("/approvals", page)]
            assert ARGUMENT in shown[1]  # who approves has to see it
            form = shown[1].partition('name="form" value="')[2].partition('"')[0]
            await browser.send("POST", page, {"form": form, "verdict": "allow"})
            await asyncio.wait_for(call.done(), 20)
            assert b"bought" in call.body, call.body
            head = {"host": HOST, "authorization": f"Bearer {CANARY}"}
            metrics = await fetch(app, "GET", "/metrics", headers=head)
            rows = [repr(row) for row in await gateway.host.audit.tail(500)]
            notices = repr(gateway.host.view.pending())
    written = log.read_text(encoding="utf-8")
    assert any(ARGUMENT in one for one in seen)  # an argument is the server's to see
    assert rows
    for text in (*seen, *shown, *rows, notices, written, metrics.body.decode(), caplog.text):
        assert CANARY not in text
    for text in (written, metrics.body.decode(), caplog.text):
        assert ARGUMENT not in text
