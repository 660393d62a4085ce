"""Attacks on the console in a real browser: hostile texts, foreign pages, rebound names, frames."""

import asyncio
import sys
from itertools import product
from pathlib import Path
from urllib.parse import quote

import pytest
import pytest_asyncio

from isthmus import Command
from isthmus.console.layout import find_static
from isthmus.host.model.interaction import Decision
from support.browser.chromium import Tab, serve_in_browser
from support.browser.console_pages import read_main
from support.console import hostile_server
from support.console.served_console import serve_shop_console
from support.event_loop import run_until

pytestmark = [
    pytest.mark.browser,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(90),
]

NODES = (
    "<script data-evil>pwned(1)</script><img data-evil src=x onerror=pwned(2)>"
    "<svg data-evil onload=pwned(3)><iframe data-evil src='http://evil.example/'></iframe>"
    "<a data-evil href='javascript:pwned(4)'>x</a><form data-evil action=/x><base data-evil href=//e>"
    "<link data-evil rel=stylesheet href=http://evil.example/s><style data-evil>*{}</style>"
)
TEXTS = {
    "attribute": "\" data-evil onfocus=pwned(5) autofocus style=x a=' data-evil onmouseover='pwned(6)'",
    "closed": f"--></textarea></title></select></pre></code></svg></option>]]>{NODES}",
    "words": (
        "javascript:pwned(9)//http://evil.example/x.svg data:text/html,<script>pwned(10)</script>"
        "&lt;img data-evil&gt; &#60;img data-evil src=x onerror=pwned(11)&#62; `${pwned(7)}`{{7*7}}"
    ),
    "marks": "safe\u202egpj.exe\u2066\u200b\u200d\ufeff\u00ad\u3164x\u2028y\u2029z\x1b[2J\x85",
}
INVISIBLE = "\u202e\u2066\u200b\ufeff\u00ad\u3164\u2028\u2029\x1b\x85"
RULES = """
[[rule]]
id = "calls"
effect = "allow"
when = { action = "tool.call", tool = ["look", "fail", "break", "ask", "page", "lead", "hang"] }

[[rule]]
id = "buys"
effect = "ask"
when = { action = "tool.call", tool = "buy" }

[[rule]]
id = "never"
effect = "deny"
when = { action = "tool.call", tool = "sell" }
"""
LOOK_AT_PAGE = """(marks) => {
  const found = [];
  const tags = "img, iframe, frame, object, embed, base, style, audio, video, math, template";
  for (const one of document.querySelectorAll("[data-evil], " + tags)) found.push(one.outerHTML);
  for (const one of document.querySelectorAll("*")) {
    for (const { name, value } of one.attributes) {
      const url = ["href", "src", "action", "formaction"].includes(name);
      if (/^on|^style$|^srcdoc$/.test(name) || (url && !/^(https?:|[/?#])/.test(value)))
        found.push(`${name}=${value}`);
      if ([...value].some((c) => marks.includes(c))) found.push(`invisible in ${name}`);
    }
  }
  for (const one of document.scripts) if (!one.src.includes("/static/")) found.push("script");
  const text = document.documentElement.textContent;
  for (const mark of marks) if (text.includes(mark)) found.push("U+" + mark.charCodeAt().toString(16));
  return found;
}"""
"""Lists what stands in a page and is none of ours."""


class HostileServers:
    """A console whose host has hostile servers, and the pages that show what they said.

    Args:
        served: the console.
    """

    def __init__(self, served):
        self.served = served
        self.paths = []

    async def fill(self):
        """Have tools called with the texts as arguments; list every page that tells of it."""
        served, view = self.served, self.served.host.view
        for name, text in TEXTS.items():
            arguments = {text: text, "words": text}
            for tool in ("look", "fail", "break", "sell", "page"):
                call = served.begin(f"{name}__{tool}", **arguments)
                await asyncio.wait([call])
            for tool in ("ask", "lead", "buy", "hang"):
                served.begin(f"{name}__{tool}", **arguments)
            self.paths += [
                f"/servers/{name}", f"/servers/{name}/tools/look",
                f"/audit?text={quote(text, safe='')}", f"/inbox?q={quote(text, safe='')}",
                f"/nothing/{quote(text, safe='')}", f"/servers/{quote(text, safe='')}",
            ]  # fmt: skip
        await run_until(lambda: len(view.pending()) == 3 * len(TEXTS))
        await run_until(lambda: all(one.in_flight for one in view.servers() if one.name in TEXTS))
        self.paths += [f"/inbox/{one.id}" for one in view.pending()]
        self.paths += [f"/traffic/{one.id}?wire=1" for one in await view.traffic()]
        rows = {one.kind: one.seq for one in await view.audit_tail(500)}
        self.paths += [f"/audit/{seq}" for seq in rows.values()]
        self.paths += [
            "/inbox", "/servers", "/traffic", "/access", "/access/grants", "/access/accounts",
            "/access/policy", "/audit", "/doctor",
        ]  # fmt: skip


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def hostile(tmp_path_factory):
    """The console of a host with hostile servers."""
    script = Path(hostile_server.__file__)
    servers = [
        (name, Command(sys.executable, "-I", str(script), text)) for name, text in TEXTS.items()
    ]
    async with serve_shop_console(
        tmp_path_factory.mktemp("hostile"), *servers, rules=RULES
    ) as served:
        made = HostileServers(served)
        await made.fill()
        yield made
        for one in served.host.view.pending():
            await served.host.view.decide(one.id, Decision(verdict="deny", by="the test"))


class WatchedTab:
    """A tab in which nothing of others may run, and from which nothing may leave.

    Args:
        tab: the tab.
        origin: where requests may go.
    """

    def __init__(self, tab, origin):
        self.tab = tab
        self.origin = origin
        self.faults = []

    async def watch(self):
        """Begin."""

        def pwned(number):
            self.faults.append(f"script {number} ran")

        def note(request):
            if not request.url.startswith(self.origin):
                self.faults.append(f"request to {request.url}")

        await self.tab.page.expose_function("pwned", pwned)
        self.tab.page.on("request", note)
        self.tab.page.on("dialog", lambda dialog: self.faults.append(dialog.message))

    async def look(self, about):
        """Hold the page that is shown against what holds for all."""
        found = await self.tab.page.evaluate(LOOK_AT_PAGE, list(INVISIBLE))
        self.faults += [f"{about}: {one}" for one in found]


@pytest_asyncio.fixture(loop_scope="session")
async def viewer(chromium, hostile):
    """A tab that is signed in and watched."""
    tab = await Tab.of(chromium)
    await hostile.served.let_in(tab.context)
    watched = WatchedTab(tab, hostile.served.origin)
    await watched.watch()
    yield watched
    await tab.context.close()
    assert [] == watched.faults
    assert [] == tab.violated


async def test_no_text_of_a_server_becomes_anything_but_text(hostile, viewer):
    """Ours: on every page nothing runs, no node and no attribute arises, and nothing leaves."""
    page = viewer.tab.page
    for path in hostile.paths:
        await page.goto(f"{hostile.served.url}{path}", wait_until="domcontentloaded")
        await viewer.look(path)


async def test_invisible_and_turning_marks_are_seen(hostile, viewer):
    """Ours: where a person reads them, they are spelled out."""
    page = viewer.tab.page
    pending = hostile.served.host.view.pending()
    cards = [f"/inbox/{one.id}" for one in pending if one.attempt.server == "marks"]
    for path in ("/servers/marks", "/servers/marks/tools/look", "/inbox", *cards):
        await page.goto(f"{hostile.served.url}{path}")
        assert "safe<U+202E>gpj.exe<U+2066><U+200B>" in await read_main(page), path


@pytest.mark.parametrize("name", TEXTS)
async def test_what_is_sent_back_stays_a_text(hostile, viewer, name):
    """Ours: a form of a hostile schema, the result of a call, and the answer to an elicitation."""
    page, served = viewer.tab.page, hostile.served
    await page.goto(f"{served.url}/servers/{name}/tools/look")
    await page.locator("form.tool-form textarea, form.tool-form input[type=text]").first.fill(
        TEXTS[name].replace("\x1b", "")
    )
    async with page.expect_navigation():
        await page.get_by_role("button", name="Call it").click()
    await viewer.look(f"result of {name}")


# Foreign pages

FOREIGN = ("evil.example", "127.0.0.1")
"""Names of foreign pages: of another site, and of the same site, whose requests have our cookie."""


@pytest_asyncio.fixture(loop_scope="session", params=FOREIGN)
async def foreign(request, chromium, served):
    """A tab that has signed in to the console, and shows the page of somebody else."""

    async def app(scope, receive, send):
        headers = [(b"content-type", b"text/html")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"<!DOCTYPE html><h1>Evil</h1>"})

    tab = await Tab.of(chromium)
    await served.let_in(tab.context)
    async with serve_in_browser(lambda _: app, host=request.param) as (url, _):
        await tab.page.goto(f"{url}/")
        tab.answers.clear()
        yield tab
        await tab.context.close()


def list_statuses(tab, served):
    """How the console answered what came from a foreign page."""
    return {status for _, url, status in tab.answers if url.startswith(served.origin)}


FETCH = """async ([url, mode, method]) => {
  try {
    const answer = await fetch(url, { mode, method, credentials: "include", body: method === "POST" ? "a=b" : undefined });
    return await answer.text();
  } catch (error) { return error.name; }
}"""


async def test_a_foreign_page_reads_and_sends_nothing(foreign, served):
    """Ours: with the cookie and without, readable or not, a fetch is refused."""
    call, id = await served.ask(what="tea")
    for path in ("", f"/inbox/{id}", "/events", "/icon.svg?n=1"):
        for mode, method in product(("cors", "no-cors"), ("GET", "POST")):
            read = await foreign.page.evaluate(FETCH, [f"{served.url}{path}", mode, method])
            assert read in {"", "TypeError"}
    assert list_statuses(foreign, served) <= {401, 403}
    assert not call.done()


async def test_a_foreign_page_hears_no_events(foreign, served):
    """Ours: its EventSource ends with an error, and the console has no further tab."""
    before = len(served.console.live)
    heard = await foreign.page.evaluate(
        """(url) => new Promise((resolve) => {
          const source = new EventSource(url, { withCredentials: true });
          source.onmessage = source.onopen = () => resolve("heard");
          source.addEventListener("count", () => resolve("heard"));
          source.onerror = () => { source.close(); resolve("refused"); };
        })""",
        f"{served.url}/events",
    )
    assert "refused" == heard
    assert before == len(served.console.live)
    assert list_statuses(foreign, served) <= {401, 403}


async def test_a_foreign_page_embeds_nothing(foreign, served):
    """Ours: no file of the console is a script, a style or an image of another page."""
    script = await foreign.page.evaluate(
        """([script, icon]) => Promise.all([["script", "src", script], ["img", "src", icon]].map(
          ([tag, name, url]) => new Promise((resolve) => {
            const one = document.createElement(tag);
            one.onload = () => resolve("loaded");
            one.onerror = () => resolve("refused");
            one[name] = url;
            document.body.append(one);
          })))""",
        [f"{served.origin}{find_static('/console', 'guard.js')}", f"{served.url}/icon.svg?n=1"],
    )
    assert ["refused", "refused"] == script


@pytest.mark.parametrize("target", ["_self", "_blank"])
async def test_a_form_of_a_foreign_page_decides_nothing(foreign, served, target):
    """Ours: also with a token and a version that are right."""
    call, id = await served.ask(what="tea")
    other = await foreign.context.new_page()
    await other.goto(f"{served.url}/inbox/{id}")
    fields = {
        name: await other.locator(f"main form [name={name}]").first.get_attribute("value")
        for name in ("form", "version")
    }
    send = """([url, target, fields]) => {
      const form = document.createElement("form");
      Object.assign(form, { method: "post", action: url, target });
      for (const [name, value] of Object.entries(fields)) {
        const input = document.createElement("input");
        Object.assign(input, { name, value });
        form.append(input);
      }
      document.body.append(form);
      form.submit();
    }"""
    given = [f"{served.url}/inbox/{id}", target, {**fields, "verdict": "allow"}]
    async with foreign.context.expect_event(
        "response", lambda answer: answer.request.method == "POST"
    ) as answered:
        await foreign.page.evaluate(send, given)
    answer = await answered.value
    assert answer.status in {401, 403}
    assert not call.done()


async def test_the_console_is_shown_in_no_frame(foreign, served):
    """Ours: nobody puts it below his own buttons."""
    call, id = await served.ask(what="tea")
    for tag in ("iframe", "object", "embed"):
        async with foreign.context.expect_event("response") as answered:
            await foreign.page.evaluate(
                """([tag, url]) => {
                  const frame = document.createElement(tag);
                  frame[tag === "object" ? "data" : "src"] = url;
                  if (tag !== "iframe") frame.type = "text/html";
                  document.body.append(frame);
                }""",
                [tag, f"{served.url}/inbox/{id}"],
            )
        assert (await answered.value).status in {401, 403}
    assert not call.done()


async def test_a_foreign_page_loses_the_window_that_it_opens(foreign, served):
    """Ours: a link leads here, and the page that opened it can neither read nor steer it."""
    async with foreign.context.expect_page() as opened:
        await foreign.page.evaluate(
            "(url) => { window.opened = open(url); }", f"{served.url}/inbox"
        )
    page = await opened.value
    await page.wait_for_load_state()
    assert "Inbox" == await page.locator("h1").inner_text()
    assert await foreign.page.evaluate("window.opened.closed")
    assert await page.evaluate("window.opener === null")


async def test_a_rebound_name_shows_nothing(chromium, served):
    """Ours: DNS rebinding: a foreign name that leads to this machine is refused."""
    tab = await Tab.of(chromium)
    await served.let_in(tab.context)
    place = f"http://evil.example:{served.origin.rpartition(':')[2]}/console"
    for path in ("/", "/inbox", "/events", "/login", "/icon.svg"):
        answer = await tab.page.goto(f"{place}{path}")
        assert 421 == answer.status
    for path in ("/console/inbox", "/console/events"):
        read = await tab.page.evaluate(FETCH, [path, "same-origin", "GET"])
        assert "not served under this host name" in read
    await tab.context.close()
