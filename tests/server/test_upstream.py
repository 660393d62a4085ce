"""Tests of ``ctx.upstream`` as a server's own part: what it asks, waits for and says."""

import pytest

from isthmus import Accepted, Cancelled, Context, Principal, Server
from isthmus.errors import Refused, UpstreamRequired
from isthmus.testing import connect

pytestmark = pytest.mark.usefixtures("secret_watch")

ALICE = Principal(issuer="https://login.example", subject="alice", client_id="app")
PAGE = "https://mcp.example/auth/connect?ticket=1"


class Behind:
    """What an authorizer knows of services: nothing, until somebody connected an account."""

    def __init__(self, *, connects=True):
        self.connected = False
        self.connects = connects
        self.pages = 0
        self.routes, self.hides = {}, False

    async def admit(self, _scope):
        return ALICE

    async def lasts(self, _principal):
        return True

    def permit(self, *_args, **_kinds):
        return None

    def allows(self, *_args):
        return True

    async def upstream(self, principal, name):
        if not self.connected:
            raise UpstreamRequired(f"Connect {name}.", self._page, self._wait)
        return f"{name} as {principal.subject}"

    async def _page(self) -> str:
        self.pages += 1
        return PAGE

    async def _wait(self, _seconds):
        self.connected = self.connects
        return self.connected


@pytest.fixture
def make(monkeypatch):
    """Makes a server whose every call is Alice's, and what is behind it."""

    def made(**options):
        behind = Behind(**options)
        server = Server("s", auth=behind)
        server.runs = 0

        @server.tool
        async def use(ctx: Context) -> str:
            server.runs += 1
            return str(await ctx.upstream("files"))

        monkeypatch.setattr(Context, "principal", ALICE)
        return server, behind

    return made


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_the_same_page_is_asked_for_in_every_round(make, revision):
    """Ours: the body runs again after the answer, and makes no second page."""
    server, behind = make()
    asked = []

    async def visit(question):
        asked.append((question.mode, question.url, question.message))
        return Accepted(None)

    async with connect(server, revision=revision, elicit=visit) as client:
        result = await client.call_tool("use")

    assert "files as alice" == result.text
    assert ([("url", PAGE, "Connect files.")], 1) == (asked, behind.pages)
    assert (revision == "2025-11-25") == (server.runs == 1)


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_no_is_told_to_the_model(make, revision):
    """Ours: the tool fails with a sentence, and is not asked again."""
    server, _ = make()

    async with connect(server, revision=revision, elicit=lambda _: Cancelled()) as client:
        result = await client.call_tool("use")

    assert result.is_error
    assert "The user did not agree to that." in result.text


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-06-18", "2025-11-25", "2026-07-28"])
async def test_a_client_without_pages_is_told_the_link(make, revision):
    """Ours: it lets nobody in but this user, so it may stand in a result, in every revision."""
    server, _ = make()

    async with connect(server, revision=revision) as client:
        result = await client.call_tool("use")

    assert result.is_error
    assert PAGE in result.text


async def test_a_user_who_takes_too_long_is_told_to_call_again(make):
    """Ours: the call ends; what is done in the browser is not lost."""
    server, behind = make(connects=False)

    async with connect(server, elicit=lambda _: Accepted(None)) as client:
        first = await client.call_tool("use")
        behind.connected = True
        again = await client.call_tool("use")

    assert "then call again" in first.text
    assert "files as alice" == again.text


async def test_a_server_without_authorization_says_what_it_takes():
    """Ours: nobody is authenticated there, so there is nobody's account."""
    server = Server("s")

    @server.tool
    async def use(ctx: Context) -> str:
        return str(await ctx.upstream("files"))

    async with connect(server) as client:
        with pytest.raises(Refused, match="nobody has authenticated"):
            await client.call_tool("use")
