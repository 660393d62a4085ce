"""PyPI ``mcp`` 2.3's OAuth client logs in, calls two tools, and comes back without a login.

``mcp2_auth_client.py PLAN`` gets one JSON object: ``url``, ``revision``, and ``person``, the command
that goes through an authorization URL and prints the one it is sent to. Prints one JSON object.
"""

import asyncio
import json
import subprocess
import sys
from urllib.parse import parse_qs, urlsplit

import httpx2
import mcp.client.session
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata

CALLBACK = "http://127.0.0.1:3030/callback"


class Kept:
    """Tokens and registration, in memory."""

    tokens = None
    client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


class Visit:
    """One program after the other, with what the first one kept."""

    def __init__(self, plan):
        self.plan = plan
        self.kept = Kept()
        self.asked = []
        self.sent = None

    async def opened(self, url):
        query = parse_qs(urlsplit(url).query)
        self.asked.append({name: query.get(name, [""])[0] for name in ("scope", "resource")})
        done = await asyncio.to_thread(
            subprocess.run,
            [*self.plan["person"][:-2], url, *self.plan["person"][-2:]],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        self.sent = done.stdout.strip()

    async def came_back(self):
        query = {name: value[0] for name, value in parse_qs(urlsplit(self.sent).query).items()}
        return AuthorizationCodeResult(
            code=query["code"], state=query.get("state"), iss=query.get("iss")
        )

    async def calls(self, *names):
        auth = OAuthClientProvider(
            self.plan["url"],
            OAuthClientMetadata(client_name="theirs", redirect_uris=[CALLBACK]),
            self.kept,
            self.opened,
            self.came_back,
        )
        revision = self.plan["revision"]
        mcp.client.session.LATEST_HANDSHAKE_VERSION = revision
        async with (
            httpx2.AsyncClient(auth=auth, timeout=30) as http,
            Client(
                streamable_http_client(self.plan["url"], http_client=http),
                mode=revision if revision >= "2026" else "legacy",
                cache=None,
            ) as client,
        ):
            results = [await client.call_tool(name, {}) for name in names]
        return [result.content[0].text for result in results]


async def main():
    visit = Visit(json.loads(sys.argv[1]))
    said = await visit.calls("whoami")
    wrote = await visit.calls("whoami", "write")
    later = await visit.calls("whoami", "write")
    print(json.dumps({"said": said, "wrote": wrote, "later": later, "asked": visit.asked}))


if __name__ == "__main__":
    asyncio.run(main())
