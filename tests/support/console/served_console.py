"""A host with a shop and a bank, and its console on a port of this machine, for a real browser."""

import asyncio
import contextlib
from contextlib import asynccontextmanager

from isthmus import Accepted, Context, Server, ToolError
from isthmus.console.serving import serve_console
from isthmus.host import Host
from isthmus.host.model.entries import Labels
from support.event_loop import run_until

RULES = """
[[rule]]
id = "look"
effect = "allow"
reason = "to look changes nothing"
when = { action = "tool.call", tool = ["find", "choose", "fail", "hang"] }

[[rule]]
id = "spend"
effect = "ask"
reason = "this spends money"
when = { action = "tool.call", tool = ["buy", "transfer"] }

[[rule]]
id = "never"
effect = "deny"
reason = "nobody empties the shop"
when = { action = "tool.call", tool = "empty" }
"""


def make_shop(done):
    """A server that is asked about, asks, fails and hangs.

    Args:
        done: gets what was bought.
    """
    server = Server("shop", version="1.0")

    @server.tool
    async def find(words: str, most: int = 3) -> str:
        """Find something."""
        return f"found {words} {most}"

    @server.tool
    async def buy(what: str) -> str:
        """Buy something."""
        done.append(what)
        return f"bought {what}"

    @server.tool
    async def choose(film: str, ctx: Context) -> str:
        """Choose a row."""
        match await ctx.elicit(f"Which row for {film}?", int):
            case Accepted(row):
                return f"row {row}"
        return "no row"

    @server.tool
    async def empty() -> str:
        """Empty the shop."""
        return "emptied"

    @server.tool
    async def fail() -> str:
        """Fail."""
        raise ToolError("it is broken")

    @server.tool
    async def hang() -> str:
        """Never answer."""
        await asyncio.Event().wait()
        return ""

    return server


def make_bank(done):
    """A server whose calls are of high risk: what it is given leaves the machine.

    Args:
        done: gets what was transferred.
    """
    server = Server("bank", version="1.0")

    @server.tool
    async def transfer(euros: int) -> str:
        """Transfer money."""
        done.append(euros)
        return f"{euros} euros are gone"

    return server


class ServedConsole:
    """A host, its console, and the calls that a test has made.

    Attributes:
        host: the host.
        console: what serves its pages.
        done: what was bought and transferred.
    """

    def __init__(self, host, console, done):
        self.host = host
        self.console = console
        self.done = done
        self.calls = []
        self.login_url = console.login_address
        self.url = self.login_url.partition("/login")[0]
        self.origin = self.url.removesuffix("/console")

    async def ask(self, tool="shop__buy", **arguments):
        """Call a tool that is asked about, or that asks: the call, and the id of its question."""
        known = {one.id for one in self.host.view.pending()}
        call = self.begin(tool, **(arguments or {"what": "tea"}))

        def find():
            return [one for one in self.host.view.pending() if one.id not in known]

        await run_until(find)
        return call, find()[0].id

    def begin(self, tool, **arguments):
        """Call a tool, and let it run."""
        call = asyncio.ensure_future(self.host.call(tool, arguments))
        call.add_done_callback(lambda it: it.cancelled() or it.exception())
        self.calls.append(call)
        return call

    async def clear(self):
        """End what is under way, and forget what was done."""
        for call in self.calls:
            call.cancel()
        await asyncio.gather(*self.calls, return_exceptions=True)
        await run_until(lambda: not self.host.view.pending())
        self.calls.clear()
        self.done.clear()

    async def let_in(self, context):
        """Give a browser's profile the cookie of somebody who has signed in before."""
        given = self.console.identity.sign_in(self.login_url.partition("#")[2])
        name, value = given.partition(";")[0].split("=", 1)
        await context.add_cookies([{"name": name, "value": value, "url": self.origin}])

    async def sign_in(self, page, *, scripts=True):
        """Sign in as people do: by the address that was printed, or by the form."""
        await page.goto(self.login_url if scripts else f"{self.url}/login")
        if not scripts:
            token = self.login_url.partition("#")[2]
            await page.get_by_label("Token").fill(token)
            await page.get_by_role("button", name="Sign in").click()
        await page.wait_for_url(f"{self.url}/")


@asynccontextmanager
async def serve_shop_console(folder, *servers, rules=RULES, **options):
    """A served console of a shop and a bank.

    Args:
        folder: an empty one, for the configuration and the policy.
        *servers: pairs of a name and a further server.
        rules: of the policy.
        **options: of the host.
    """
    policy, config = folder / "policy.toml", folder / "mcp.json"
    policy.write_text(rules, encoding="utf-8")
    config.write_text('{"mcpServers": {}}', encoding="utf-8")
    done = []
    host = Host.from_config(config, policy=policy, state=folder / "state", **options)
    host.add("shop", make_shop(done))
    host.add("bank", make_bank(done), labels=Labels(egress=True))
    for name, target in servers:
        host.add(name, target)
    async with host, serve_console(host.view, 0) as console:
        served = ServedConsole(host, console, done)
        try:
            yield served
        finally:
            with contextlib.suppress(TimeoutError):
                await served.clear()
