"""A browser without scripts for pages of the console, and a host with hostile servers that it looks at."""

import asyncio
from html.parser import HTMLParser

from isthmus import Server
from isthmus.auth.authorization_server.pages.browser import BrowserRequest
from isthmus.console.app import Console
from isthmus.errors import ToolError
from isthmus.host import Host
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.rule_file import read_layers
from support.console.console_browser import ADDRESS, ConsoleBrowser

HOSTILE = "\"></code></pre><script>alert(1)</script><img src=x onerror=alert(1)>\u202egpj\u200b'&"
RULES = """
[[rule]]
id = "reads"
effect = "allow"
when = { action = "tool.call", tool = ["look", "fail", "hang", "odd/name*"] }

[[rule]]
id = "never"
effect = "deny"
reason = "nobody sells here"
when = { action = "tool.call", tool = "sell" }

[[rule]]
id = "buys"
effect = "ask"
when = { action = "tool.call", tool = "buy" }
"""


class PageForm:
    """A form of a page: where it goes, and what it is filled with."""

    def __init__(self, attributes):
        self.action = attributes.get("action", "")
        self.method = attributes.get("method", "get")
        self.fields = {}
        self.buttons = []


class PageReader(HTMLParser):
    """Reads a page: its forms, links, nodes and text."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.forms, self.links, self.tags, self.ids, self.words = [], [], [], [], []
        self._area = ""
        self.attributes = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        """One node."""
        given = dict(attrs)
        self.tags.append(tag)
        self.attributes += given
        self.ids += [given["id"]] if "id" in given else []
        name = given.get("name", "")
        if tag == "form":
            self.forms.append(PageForm(given))
        elif tag == "a":
            self.links.append(given.get("href", ""))
        elif tag == "button" and name and self.forms:
            self.forms[-1].buttons.append((name, given.get("value", "")))
        elif tag in {"input", "select"} and name and self.forms:
            self.forms[-1].fields[name] = given.get("value", "")
        elif tag == "textarea" and self.forms:
            self._area = name
            self.forms[-1].fields[name] = ""

    def handle_endtag(self, tag):
        """The end of one."""
        if tag == "textarea":
            self._area = ""

    def handle_data(self, data):
        """Text."""
        self.words.append(data)
        if self._area:
            self.forms[-1].fields[self._area] += data

    @property
    def text(self):
        """What a person reads."""
        return " ".join(" ".join(self.words).split())


class PageAnswer:
    """One answer of the console."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body
        self.page = PageReader(body)

    @property
    def text(self):
        """What a person reads."""
        return self.page.text


class PageBrowser:
    """A browser that has no scripts: it follows links and sends forms.

    Args:
        console: the app.
    """

    def __init__(self, console):
        self.console = console
        self._browser = ConsoleBrowser(console)

    async def send(self, method, url, fields=None, **headers):
        """Send one request."""
        return PageAnswer(*await self._browser.send(method, url, fields, **headers))

    def make_request(self, user=""):
        """A request of this browser, as logins look at it; with the user whom a proxy names."""
        headers = {"x-user": user} if user else {}
        return BrowserRequest("GET", {}, headers, self._browser.cookies, "127.0.0.1")

    async def sign_in(self):
        """Sign in with the token that was printed."""
        await self._browser.sign_in(self.console.identity.token.reveal())

    async def get(self, url):
        """Open a page, which has to be free of what servers would put into it."""
        answer = await self.send("GET", url.partition("#")[0])
        check_page(answer)
        return answer

    async def wait_for(self, url, text):
        """Open a page again and again, until a text stands in it."""
        async with asyncio.timeout(10):
            # what the page shows has no event that a test could wait for
            while text not in (answer := await self.get(url)).text:  # noqa: ASYNC110
                await asyncio.sleep(0)
        return answer

    async def submit(self, answer, action, button=None, /, **filled):
        """Send a form of a page, and open the page that it leads to.

        Args:
            answer: the page.
            action: where the form goes.
            button: name and value of the button that is pressed.
            **filled: what a person fills in.
        """
        form = next(
            one
            for one in answer.page.forms
            if one.action == action and (button is None or button in one.buttons)
        )
        fields = form.fields | dict([button] if button else []) | filled
        sent = await self.send("POST", action, fields)
        check_page(sent)
        return await self.get(sent.headers["location"]) if sent.status == 303 else sent


def check_page(answer):
    """Hold a page against what holds for all: no node, script or mark of a server's."""
    page = answer.page
    assert page.tags.count("script") <= 2, "a script of somebody else"
    assert "img" not in page.tags
    assert not [name for name in page.attributes if name.startswith("on") or name == "style"]
    assert len(page.ids) == len(set(page.ids)), "an id stands twice"
    assert "\u202e" not in answer.body
    assert "\u200b" not in answer.body
    assert all(link.startswith(("/", "#", "?", "http")) for link in page.links)


def make_shop(cut, about="Look at something."):
    """A server whose texts are hostile.

    Args:
        cut: gets an element when a call that hangs is cut.
        about: what it says of its first tool.
    """
    shop = Server(f"shop {HOSTILE}", version="1")

    @shop.tool(description=f"{about} {HOSTILE}", title=HOSTILE)
    async def look(what: str, often: int = 1) -> str:
        return f"saw {what} {often} {HOSTILE}"

    @shop.tool
    async def buy(what: str) -> str:
        """Buy something."""
        return f"bought {what}"

    @shop.tool
    async def sell(what: str) -> str:
        """Sell something."""
        return f"sold {what}"

    @shop.tool
    async def fail(what: str) -> str:
        """Fail."""
        raise ToolError(f"no {what}: {HOSTILE}")

    @shop.tool(name="odd/name %2F?#")
    async def odd() -> str:
        """Have an odd name."""
        return "odd"

    @shop.tool
    async def hang() -> str:
        """Never answer."""
        cut.append("begun")
        try:
            await asyncio.Event().wait()
        finally:
            cut.append("cut")

    return shop


class WatchedHost:
    """A host with a hostile shop, its console, and a browser of the operator.

    Args:
        rules: of the user's policy; empty for that of the configuration.
        servers: whether it has the shop.
        others: further servers, by name.
        about: what the shop says of its first tool.
        file: the configuration that the host is made of, in place of a policy and a shop.
        identity: the console's login; by default that of this machine.
        view_of: the host as a visitor sees it.
        **options: of the host.
    """

    def __init__(
        self,
        rules=RULES,
        *,
        servers=True,
        others=(),
        about="Look at something.",
        file="",
        identity=None,
        view_of=None,
        **options,
    ):
        self.cut = []
        policy = Policy.of(read_layers(rules, "user")) if rules else None
        if file:
            self.host = Host.from_config(file, policy=policy, **options)
        else:
            self.host = Host(policy=policy, **options)
        if servers and not file:
            self.host.add("shop", make_shop(self.cut, about))
        for name, target in dict(others).items():
            self.host.add(name, target)
        self.console = Console(self.host.view, ADDRESS, identity=identity, view_of=view_of)
        self.browser = PageBrowser(self.console)

    async def __aenter__(self):
        await self.host.__aenter__()
        if hasattr(self.console.identity, "token"):
            await self.browser.sign_in()
        return self

    async def __aexit__(self, *error):
        await self.console.close()
        await self.host.__aexit__(*error)

    async def open_tool(self, tool):
        """The page of a tool, whose server has been asked for its tools."""
        await self.host.view.tools("shop")
        return await self.browser.get(f"/console/servers/shop/tools/{tool}")

    async def call(self, tool, principal="user:local", /, **arguments):
        """Call a tool of the shop, as a program does."""
        return await self.host.view.call(f"shop__{tool}", arguments, principal=principal)

    async def forge(self, path, *, x_user="", **fields):
        """Send a form that no page has, with a right token.

        Args:
            path: where it goes.
            x_user: the user whom a proxy names.
            **fields: what it holds.
        """
        headers = {"x_user": x_user} if x_user else {}
        request = self.browser.make_request(x_user)
        visitor = await self.console.identity.identify(request)
        token = self.console._tokens.make(visitor.session, f"{path} ")
        return await self.browser.send("POST", path, {"form": token, **fields}, **headers)
