"""The example of a server with services behind it, with a provider and a client."""

import asyncio
from urllib.parse import urljoin

import pytest

from isthmus import Accepted, Client
from isthmus.auth import OAuth
from isthmus.cli.commands.run import load_module
from isthmus.testing.person import Person
from support.auth.upstream_provider import UpstreamProvider
from support.browser.chromium import serve_in_browser
from support.docs.blocks import EXAMPLES

pytestmark = [pytest.mark.timeout(90), pytest.mark.usefixtures("secret_watch")]


class Traveller(Person):
    """Somebody who is sent on to a provider, and back."""

    def __init__(self, provider):
        super().__init__("nobody", "no password is asked for")
        self.provider = provider

    def follow(self, url):
        """Do what the pages of both want; where one is sent in the end."""
        url = super().follow(url)
        while url.startswith(self.provider):
            _, where, _ = self.request("GET", url)
            url = super().follow(urljoin(url, where))
        return url


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_tools_use_the_account_of_whoever_calls(monkeypatch, revision):
    """Ours: one login, one further account, both APIs in the user's name, in both eras."""
    async with UpstreamProvider() as remote:
        monkeypatch.setenv("ACME_ISSUER", remote.url)
        monkeypatch.setenv("ACME_CLIENT_ID", remote.client_id)
        monkeypatch.setenv("ACME_CLIENT_SECRET", remote.client_secret)
        person, modules, going = Traveller(remote.url), [], []

        def make(url):
            monkeypatch.setenv("UPSTREAM_ORIGIN", url)
            modules.append(load_module(EXAMPLES / "upstream.py"))
            return modules[0].server.asgi()

        async def visit(question):
            going.append(asyncio.create_task(connect(person, question.url)))
            return Accepted(None)

        async with serve_in_browser(make) as (url, _):
            auth = OAuth(client_name="Test", open_browser=person.open)
            async with Client(f"{url}/mcp", auth=auth, elicit=visit, revision=revision) as client:
                who = await client.call_tool("whoami")
                saved = await client.call_tool("save_note", {"text": "milk"})
            await going[0]
            await modules[0].authority.close()

    assert ("alice", "saved 'milk' for alice") == (who.text, saved.text)
    assert 1 == len(person.opened)


async def connect(person, url):
    """Open a link, and go on until there is nothing more to do."""
    with pytest.raises(RuntimeError, match="is connected"):
        await asyncio.to_thread(person.follow, url)
