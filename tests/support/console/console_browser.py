"""A browser that speaks to a console in this process, and a host with questions for it."""

import asyncio
import re
from html.parser import HTMLParser
from urllib.parse import urlencode

from isthmus import Server
from isthmus.console import Console
from isthmus.host import Host
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.rule_file import read_layers
from support.event_loop import run_until

ADDRESS = "http://127.0.0.1:8765"
ASKS = '[[rule]]\nid = "calls"\neffect = "ask"\nwhen = { action = ["tool.call"] }\n'


class ConsoleBrowser:
    """A browser without scripts: it keeps cookies, and follows where it is sent."""

    def __init__(self, app, address=ADDRESS):
        self.app = app
        self.address = address
        self.cookies = {}
        self.peer = "127.0.0.1"

    def make_scope(self, method, path, headers):
        """The scope of a request."""
        path, _, query = path.partition("?")
        given = {"host": self.address.partition("://")[2], **headers}
        if self.cookies:
            given["cookie"] = "; ".join(f"{key}={value}" for key, value in self.cookies.items())
        if method == "POST":
            given.setdefault("content-type", "application/x-www-form-urlencoded")
        return {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http",
            "method": method, "path": path, "raw_path": path.encode(),
            "query_string": query.encode(), "root_path": "", "client": (self.peer, 5),
            "server": ("127.0.0.1", 8765),
            "headers": [(k.replace("_", "-").encode(), v.encode()) for k, v in given.items()],
        }  # fmt: skip

    async def send(self, method, path, fields=None, **headers):
        """Send one request; status, headers by name, and text."""
        body, sent = urlencode(fields or {}).encode(), []

        async def receive():
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message):
            sent.append(message)

        await self.app(self.make_scope(method, path, headers), receive, send)
        head = {}
        for key, value in sent[0]["headers"]:
            head[key.decode()] = value.decode()
            if key == b"set-cookie":
                name, _, rest = value.decode().partition("=")
                self.cookies[name] = rest.partition(";")[0]
        text = b"".join(part.get("body", b"") for part in sent[1:]).decode()
        return sent[0]["status"], head, text

    async def get(self, path, **headers):
        """The text of a page."""
        status, _, text = await self.send("GET", path, **headers)
        assert 200 == status, (status, text)
        return text

    async def sign_in(self, token):
        """Sign in with a token."""
        return await self.send("POST", "/console/login", {"token": token})

    async def submit(self, path, action=None, *, press=("", ""), fill=None, seen=None, **headers):
        """Open a page, and send its form that goes to ``action``, by the button ``press``.

        The page is opened with the headers ``seen``, the form is sent with the others.
        """
        _, _, text = await self.send("GET", path, **(seen or {}))
        form = next(f for f in parse_forms(text) if f["action"] == (action or path))
        fields = {**form["fields"], **(fill or {})}
        if press[0]:
            fields[press[0]] = press[1]
        return await self.send("POST", form["action"], fields, **headers)


class PageTree(HTMLParser):
    """Elements and attributes of a page, without its texts."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.nodes = []
        self.forms = []
        self.texts = []
        self._area = None

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.nodes.append((tag, tuple(sorted(given))))
        if tag == "form":
            self.forms.append({"action": given["action"], "fields": {}})
        sent = given.get("type") != "checkbox" or "checked" in given
        if tag == "input" and self.forms and given.get("name") and sent:
            self.forms[-1]["fields"][given["name"]] = given.get("value", "")
        if tag == "textarea":
            self._area = given["name"]
            self.forms[-1]["fields"][self._area] = ""

    def handle_endtag(self, tag):
        self.nodes.append((f"/{tag}", ()))
        if tag == "textarea":
            self._area = None

    def handle_data(self, data):
        self.texts.append(data)
        if self._area is not None:
            self.forms[-1]["fields"][self._area] += data


def parse_page(text):
    """The tree of a page."""
    tree = PageTree()
    tree.feed(text)
    tree.close()
    return tree


def parse_forms(text):
    """The forms of a page: where they go, and what they hold."""
    return parse_page(text).forms


class ConsoledHost:
    """A host with a shop that is asked about, its console, and a browser of the operator."""

    def __init__(self, rules=ASKS, server=None, **options):
        self.bought = []
        if server is None:
            server = Server("shop")

            @server.tool
            async def buy(what: str) -> str:
                """Buy something."""
                self.bought.append(what)
                return what

        self.host = Host(policy=Policy.of(read_layers(rules, "user")))
        self.host.add("shop", server)
        self.console = Console(self.host.view, ADDRESS, **options)
        self.browser = ConsoleBrowser(self.console)
        self.calls = []
        self._attending = None

    async def __aenter__(self):
        await self.host.open()
        self._attending = self.host.view.attend("console")
        await self._attending.__aenter__()
        if hasattr(self.console.identity, "token"):
            await self.browser.sign_in(self.console.identity.token.reveal())
        return self

    async def __aexit__(self, *error):
        for call in self.calls:
            call.cancel()
        await asyncio.gather(*self.calls, return_exceptions=True)
        await self.console.close()
        await self._attending.__aexit__(*error)
        await self.host.close()

    async def ask(self, name="shop__buy", principal="user:local", **arguments):
        """Call a tool that is asked about: the call, and the path of its card."""
        given = {key: value for key, value in (arguments or {"what": "tea"}).items() if value}
        known = {one.id for one in self.host.view.pending()}
        call = asyncio.ensure_future(self.host.call(name, given, principal=principal))
        self.calls.append(call)

        def find():
            return [one for one in self.host.view.pending() if one.id not in known]

        await run_until(find)
        return call, f"/console/inbox/{find()[0].id}"


def find_token(text, action):
    """The token of the form that goes to ``action``."""
    return next(form for form in parse_forms(text) if form["action"] == action)["fields"]["form"]


def find_assets(text):
    """The paths of the scripts and styles of a page."""
    return re.findall(r'(?:src|href)="(/console/static/[^"]+)"', text)
