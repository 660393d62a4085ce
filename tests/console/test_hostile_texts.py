"""Hostile texts on the pages of the console: no element and no attribute arises from them."""

import pytest
from msgspec import Raw

from isthmus.cards.markup import Markup, Verbatim, element, escape
from isthmus.host.model.attempt import Attempt
from isthmus.host.model.interaction import (
    CallAsked,
    ChangeAsked,
    ConnectAsked,
    FormAsked,
    InstallAsked,
    Interaction,
    PageAsked,
    PromptAsked,
    ReadAsked,
    ShareAsked,
)
from isthmus.host.model.trace import Match, Trace
from isthmus.wire import ElicitParams, Tool
from support.console.console_browser import ConsoleBrowser, ConsoledHost, parse_page

HOSTILE = (
    '"><script>alert(1)</script>',
    "</textarea><img src=x onerror=alert(1)>",
    "</pre></code></title></select><svg/onload=alert(1)>",
    "' autofocus onfocus=alert(1) x='",
    "javascript:alert(1)",
    "<!--", "]]>", "&lt;b&gt;", "&#60;i&#62;", "<" * 40,
    "a\u202egpj.exe\u200b\u2066x", "\uffff", "\x00\x1b[2J", "`${1}`{{7*7}}<%= 1 %>",
)  # fmt: skip
PLAIN = "harmless"


def make_question(kind, text):
    """A question of a kind with a text wherever a server or a client gives one."""
    tool = Tool(
        name=text, input_schema={"type": "object", "title": text}, title=text, description=text
    )
    schema = {
        "type": "object",
        "properties": {
            text: {"type": "string", "title": text, "description": text, "default": text},
            "one": {"type": "string", "enum": [text, "b"], "title": text},
            "many": {"type": "array", "items": {"type": "string", "enum": [text, "b"]}},
        },
    }
    payloads = {
        "tool.call": CallAsked(tool=tool, arguments={text: text}),
        "resource.read": ReadAsked(uri=text, skill=text, description=text, files=(text,)),
        "prompt.get": PromptAsked(name=text, arguments={text: text}),
        "elicit.form": FormAsked(
            params=ElicitParams(message=text, requested_schema=schema), concerns=(text,)
        ),
        "elicit.url": PageAsked(
            params=ElicitParams(message=text, url=text), host=text, concerns=(text,)
        ),
        "server.install": InstallAsked(
            argv=(text, text), resolved=text, cwd=text, env=(text,), source=text, warnings=(text,)
        ),
        "server.connect": ConnectAsked(where=text, headers=(text,), source=text, warnings=(text,)),
        "tool.change": ChangeAsked(
            before=Raw(b"{}"), after=Raw(b"{}"), diff=(f"- {text}", f"+ {text}")
        ),
        "context.share": ShareAsked(to=text, what=(text,)),
    }
    attempt = Attempt(
        id="a", action=kind, principal=text, server=text, object=text, arguments={}, asker=text
    )
    trace = Trace(
        effect="ask",
        rule=text,
        reason=text,
        matches=(Match(rule=text, layer="user", effect="ask"),),
    )
    return Interaction(id="q1", attempt=attempt, payload=payloads[kind], trace=trace)


KINDS = [
    "tool.call", "resource.read", "prompt.get", "elicit.form", "elicit.url", "server.install",
    "server.connect", "tool.change", "context.share",
]  # fmt: skip


class ShownQuestion(ConsoledHost):
    """A console whose host has one question, whatever it is."""

    async def show(self, question):
        """The card and the list."""
        self.host.view.pending = lambda: [question]
        card = await self.browser.get("/console/inbox/q1")
        return card, await self.browser.get("/console/inbox")


def list_nodes(text):
    """Elements and attributes of a page; lines of a text more or less are none."""
    return [one for one in parse_page(text).nodes if one not in {("span", ()), ("/span", ())}]


@pytest.mark.parametrize("kind", KINDS)
async def test_no_element_and_no_attribute_arises_from_a_text(kind):
    """Ours: the tree of a page is that of the same page with harmless texts."""
    async with ShownQuestion() as shown:
        plain = [list_nodes(page) for page in await shown.show(make_question(kind, PLAIN))]
        for text in HOSTILE:
            pages = await shown.show(make_question(kind, text))
            for page, tree in zip(pages, plain, strict=True):
                nodes = [n for n in list_nodes(page) if "warn" not in n]
                assert set(tree) >= set(nodes), text
                assert not {"\u202e", "\u200b", "\u2066", "\x1b"} & set(page)


def test_what_is_written_inline_is_refused():
    """Ours: scripts, styles, handlers and URLs that are scripts cannot be made."""
    for tag, attributes, child in (
        ("script", {}, "alert(1)"), ("style", {}, "a{}"), ("p", {"onclick": "x"}, ""),
        ("p", {"style": "x"}, ""), ("a", {"href": "javascript:x"}, ""),
        ("a", {"href": "data:text/html,x"}, ""), ("form", {"action": " javascript:x"}, ""),
        ("a", {"href": "JaVaScRiPt:x"}, ""), ("a", {"href": "https://a\u202eb"}, ""),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"page|inline|content"):
            element(tag, attributes, child)


def test_markup_goes_in_as_it_is_and_nothing_else():
    """Ours: also not as the value of an attribute."""
    inner = element("b", {}, "<i>")
    assert "<p><b>&lt;i&gt;</b></p>" == element("p", {}, inner)
    assert "&lt;b&gt;" in element("p", {"title": inner})
    assert isinstance(escape("<"), Markup)
    assert '<input value="&lt;\u200b">' == element("input", {"value": Verbatim("<\u200b")})


def test_browsers_are_what_the_tests_say():
    """Ours: the parser sees an element where there is one."""
    assert ("script", ()) in parse_page("<p><script>x</script>").nodes
    assert ConsoleBrowser
