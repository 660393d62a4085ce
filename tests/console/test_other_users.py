"""Users of one console: whatever is somebody else's is, for them, what does not exist."""

import asyncio
import re

import pytest

from isthmus.auth.authorization_server.users.users import HeaderUsers
from isthmus.console import ProxyLogin
from isthmus.console.routes import ROUTES
from isthmus.host.model.interaction import Decision
from support.console.console_browser import ConsoleBrowser
from support.console.page_browser import WatchedHost
from support.event_loop import run_until

ADA, BOB, OPERATOR = {"x_user": "ada"}, {"x_user": "bob"}, {"x_user": "root"}
BY_ID = [one for one in ROUTES if "{" in one.pattern]
POSTS = [one for one in ROUTES if one.method == "POST"]


class SharedConsole(WatchedHost):
    """A host behind a proxy that names its users, where ada has one of each thing, and bob has nothing.

    Attributes:
        ids: of what is ada's, by the name that it has in routes.
    """

    def __init__(self):
        users = HeaderUsers("X-User", trusted_proxies=["127.0.0.1"])
        super().__init__(identity=ProxyLogin(users, operators=["root"]))
        self.ids = {"name": "shop", "tool": "look", "seq": "1"}
        self._attending = self.host.view.attend("test")
        self._calls = []

    async def __aenter__(self):
        await super().__aenter__()
        await self._attending.__aenter__()
        # from now on calls are noted
        await self.browser.send("GET", "/console/traffic", **OPERATOR)
        visitor = await self.console.identity.identify(self.browser.make_request("ada"))
        ada, view = visitor.principal, self.host.view
        self._begin("buy", ada, what="tea")
        await run_until(view.pending)
        self._begin("buy", ada, what="a secret of ada")
        await run_until(lambda: len(view.pending()) == 2)
        yes = Decision(verdict="allow", by="test", remember="session", principal=ada)
        await view.decide(view.pending()[0].id, yes)
        await self._calls[0]
        self._begin("hang", ada)
        await run_until(lambda: self.cut)
        running = [one for one in await view.traffic() if one.outcome == "running"]
        self.ids |= {
            "id": view.pending()[0].id,
            "call": next(one.id for one in running if one.object == "hang"),
            "grant": (await view.grants())[0].id,
            "server": "shop",
            "run": (await view.runs())[0].run if await view.runs() else "r",
        }
        return self

    def _begin(self, tool, principal, **arguments):
        self._calls.append(asyncio.ensure_future(self.call(tool, principal, **arguments)))

    async def __aexit__(self, *error):
        for call in self._calls:
            call.cancel()
        await asyncio.gather(*self._calls, return_exceptions=True)
        await self._attending.__aexit__(*error)
        await super().__aexit__(*error)

    async def send(self, route, ids, user):
        """A request to a route, with a right form where it takes one."""
        path = "/console" + re.sub(r"\{(\w+)\}", lambda found: ids[found[1]], route.pattern)
        if route.method == "GET":
            return await self.browser.send("GET", path, **user)
        fields = {"verdict": "deny", "what": "forget", "shown": f"{ids['id']}:x"}
        return await self.forge(path, **user, **fields)

    async def list_all(self):
        """Everything that a user could have changed of what is ada's."""
        view = self.host.view
        return (
            [one.id for one in view.pending()],
            [(one.id, one.outcome) for one in await view.traffic()],
            [(one.id, one.ended) for one in await view.grants()],
            await view.accounts(""),
            [(one.name, one.state) for one in view.servers()],
        )


def hide_ids(answer, ids):
    """Status, place and page of an answer, without what is another one in each."""
    text = answer.body + answer.headers.get("location", "")
    for id in ids.values():
        text = text.replace(f"/{id}", "/ID")
    return answer.status, re.sub(r'name="form" value="[^"]+"', "", text)


@pytest.mark.parametrize("route", BY_ID, ids=lambda one: f"{one.method} {one.pattern}")
async def test_ids_of_others_are_those_of_nothing(route):
    """Ours: what is ada's is answered to bob as an id that there never was, in every word."""
    async with SharedConsole() as shared:
        nothing = {key: f"never{key}" for key in shared.ids}
        before = await shared.list_all()
        hers = await shared.send(route, shared.ids, BOB)
        never = await shared.send(route, nothing, BOB)
        after = await shared.list_all()

    assert hide_ids(hers, shared.ids) == hide_ids(never, nothing)
    assert "secret of ada" not in hers.body
    assert before == after


@pytest.mark.parametrize("route", POSTS, ids=lambda one: one.pattern)
async def test_no_form_of_a_user_changes_anything_of_others(route):
    """Ours: with a right token, and whatever principal the form names."""
    async with SharedConsole() as shared:
        before = await shared.list_all()
        await shared.send(route, shared.ids, BOB)
        after = await shared.list_all()

    assert before == after


@pytest.mark.parametrize(
    "path", ["inbox", "traffic", "access/grants", "access/accounts", "traffic?principal=user:ada"]
)
async def test_lists_hold_nothing_of_others(path):
    """Ours: ada finds hers, an operator everything, and bob nothing."""
    async with SharedConsole() as shared:
        pages = [
            await shared.browser.send("GET", f"/console/{path}", **who) for who in (BOB, OPERATOR)
        ]
        own = await shared.browser.send("GET", f"/console/{path}", **ADA)

    assert [one.status for one in (*pages, own)] == [200, 200, 200]
    assert "ada" not in pages[0].text.replace("principal=user:ada", "")
    assert pages[0].headers.keys() == own.headers.keys()


async def test_the_own_ids_are_found():
    """Ours: what the tests above take for ada's is hers, and she may decide it."""
    async with SharedConsole() as shared:
        shown = [
            await shared.browser.send("GET", f"/console/{path}", **ADA)
            for path in (f"inbox/{shared.ids['id']}", f"traffic/{shared.ids['call']}")
        ]
        stopped = await shared.forge(f"/console/traffic/{shared.ids['call']}", **ADA)

    assert [one.status for one in shown] == [200, 200]
    assert not [one for one in shown[1].page.links if "/servers" in one or "/audit" in one]
    assert "Make a rule" not in shown[1].text
    assert stopped.status == 303
    assert "cut" in shared.cut


async def test_live_events_tell_nothing_of_others():
    """Ours: neither that somebody calls, nor which call, nor how many questions wait."""
    async with SharedConsole() as shared:
        told = {user: [] for user in ("ada", "bob", "root")}
        left, streams = asyncio.Event(), []

        async def receive():
            await left.wait()
            return {"type": "http.disconnect"}

        for user, parts in told.items():

            async def send(message, parts=parts):
                parts.append(message.get("body", b""))

            scope = ConsoleBrowser(shared.console).make_scope(
                "GET", "/console/events", {"x_user": user}
            )
            streams.append(asyncio.ensure_future(shared.console(scope, receive, send)))
        await run_until(lambda: all(b"hello" in b"".join(parts) for parts in told.values()))
        deny = Decision(verdict="deny", by="test")
        await shared.host.view.decide(shared.ids["id"], deny)
        await shared.call("look", "user:ada@local", what="a thing of ada")
        for user in ("ada", "root"):
            await run_until(lambda user=user: b"inbox" in b"".join(told[user]))
            await run_until(lambda user=user: b"call:" in b"".join(told[user]))
        await shared.call("look", "user:bob@local", what="a thing of bob")
        await run_until(lambda: b"traffic" in b"".join(told["bob"]))
        left.set()
        await asyncio.gather(*streams)
        bobs = [one.id for one in await shared.host.view.traffic() if "bob" in one.principal]

    heard = b"".join(told["bob"]).decode()
    topics = {word for word in heard.split() if word.startswith(("call:", "server:"))}
    assert topics == {f"call:{id}" for id in bobs}
    assert "inbox" not in heard
    assert "servers" not in heard
    assert re.findall(r"event: count\s+data: (.*)", heard) == ["0 0"]
