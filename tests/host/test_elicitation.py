"""What servers ask the user, on its way through the pipeline to a person and back."""

import webbrowser
from contextlib import asynccontextmanager, suppress

import pytest
from msgspec import UNSET, Struct

from isthmus import Context, Server
from isthmus.client.model.questions import BadQuestion
from isthmus.core.answers import Accepted, Cancelled, Declined
from isthmus.host.approvals.broker import Broker
from isthmus.host.audit.log import AuditLog
from isthmus.host.host import Host
from isthmus.host.model.entries import ServerEntry, ServerLimits
from isthmus.host.model.errors import BadArguments, UserDeclined
from isthmus.host.model.events import HostNotice
from isthmus.host.model.interaction import Decision
from isthmus.host.pipeline.limits import CallLimits
from isthmus.host.pipeline.pipeline import Pipeline
from isthmus.host.pipeline.runs import Runs
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.rule_file import read_layers
from isthmus.host.questions.answers import ServerQuestion
from isthmus.host.questions.elicitation import (
    Elicitor,
    describe_host,
    find_secrets,
    open_in_browser,
)
from isthmus.host.state.database import HostState
from isthmus.store.meter import Rate
from isthmus.wire import ElicitParams


class Seat(Struct):
    """Where to sit."""

    row: int


ENTRY = ServerEntry(name="shop", command=("shop",))
SEAT = ElicitParams(
    message="Which seat?",
    requested_schema={
        "type": "object",
        "properties": {
            "row": {"type": "integer", "maximum": 30},
            "side": {"type": "string", "enum": ["aisle", "window"], "default": "aisle"},
        },
        "required": ["row"],
    },
)
PAGE = ElicitParams(message="Pay here", mode="url", url="https://pay.example/a?b=c")
SECRETS = """
[[rule]]
id = "no-secrets"
effect = "deny"
when = { action = "elicit.form" }
where = ["args.secrets exists"]
"""


class Person:
    """Answers questions with what was written down beforehand, and remembers them."""

    name, assurance = "test", "local_ui"

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    async def offer(self, interaction):
        """Say what comes next."""
        self.asked.append(interaction)
        verdict, *edited = self.answers.pop(0)
        return Decision(verdict=verdict, edited=edited[0] if edited else UNSET)


@asynccontextmanager
async def house(*answers, rules="", **options):
    """An elicitor with somebody to ask; ``opened`` has the pages that were opened."""
    state, person, opened = HostState(None), Person(*answers), []

    def opener(url):
        opened.append(url)
        return True

    audit = AuditLog(state)
    broker = Broker(audit)
    if answers:
        broker.attach(person)
    layers = read_layers(rules, "user") if rules else []
    pipeline = Pipeline(
        policy=Policy.of(layers),
        broker=broker,
        audit=audit,
        runs=Runs(lambda: 0.0),
        limits=CallLimits(lambda _: ServerLimits()),
    )
    elicitor = Elicitor(pipeline, **{"opener": opener, **options})
    try:
        yield elicitor, person, opened
    finally:
        await audit.close()
        await state.close()


@pytest.mark.covers("hostterminal.elicitation.three-answers")
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (("allow", {"row": 3}), Accepted({"row": 3, "side": "aisle"})),
        (("deny",), Declined()),
        (("cancel",), Cancelled()),
    ],
)
async def test_a_form_has_three_answers(answer, said):
    """Spec: accept with content and the defaults, decline, and cancel are told apart."""
    async with house(answer) as (elicitor, person, _):
        assert said == await elicitor.answer(ServerQuestion(entry=ENTRY), SEAT)
        (question,) = person.asked

        assert ("server:shop", "shop") == (question.attempt.principal, question.attempt.server)
        assert SEAT is question.payload.params


async def test_where_nobody_is_there_it_is_cancelled():
    """Ours: silence is neither yes nor no."""
    async with house() as (elicitor, _, _opened):
        assert Cancelled() == await elicitor.answer(ServerQuestion(entry=ENTRY), SEAT)


@pytest.mark.covers("hostterminal.elicitation.fits")
async def test_what_does_not_fit_the_form_is_not_sent():
    """Spec: responses are validated against the schema that was asked for."""
    async with house(("allow", {"row": 31})) as (elicitor, _, _opened):
        with pytest.raises(BadArguments, match="'row' breaks 'maximum'"):
            await elicitor.answer(ServerQuestion(entry=ENTRY), SEAT)


@pytest.mark.covers("hostterminal.elicitation.a-person")
async def test_a_policy_that_allows_does_not_answer_for_the_user():
    """Ours: somebody fills in a form, whatever rules say; a rule may only refuse."""
    allow = '[[rule]]\nid = "all"\neffect = "allow"\nwhen = { action = "elicit.*" }\n'
    async with house(("deny",), rules=allow) as (elicitor, person, _):
        assert Declined() == await elicitor.answer(ServerQuestion(entry=ENTRY), SEAT)

        assert 1 == len(person.asked)


@pytest.mark.covers("hostterminal.elicitation.secrets")
async def test_a_form_that_asks_for_a_secret_is_warned_of_and_may_be_refused_by_rule():
    """Spec: servers must not ask for passwords and keys in forms; users are told, rules may act."""
    properties = {"apiKey": {"type": "string"}, "note": {"type": "string"}}
    schema = {"type": "object", "properties": properties}
    question = ElicitParams(message="Log in at https://x.example", requested_schema=schema)

    async with house(("deny",)) as (elicitor, person, _):
        await elicitor.answer(ServerQuestion(entry=ENTRY), question)
        secret, address = person.asked[0].payload.concerns
        assert secret.startswith("apiKey looks like a secret")
        assert "web address" in address
    async with house(("allow", {}), rules=SECRETS) as (elicitor, person, _):
        assert Declined() == await elicitor.answer(ServerQuestion(entry=ENTRY), question)

        assert [] == person.asked


@pytest.mark.parametrize(
    ("name", "blank", "secret"),
    [
        ("password", {}, True),
        ("api_key", {}, True),
        ("x", {"title": "Your PIN"}, True),
        ("code", {"description": "The one-time code from your phone"}, True),
        ("card", {"title": "Card number"}, True),
        ("accessToken", {}, True),
        ("Kennwort", {}, True),
        ("x", {"title": "Votre mot de passe"}, True),
        ("x", {"title": "Contraseña"}, True),
        ("contrasena", {}, True),
        ("x", {"description": "Sua senha do banco"}, True),
        ("haslo", {"title": "Hasło"}, True),
        ("x", {"title": "Şifreniz"}, True),
        ("x", {"title": "Пароль"}, True),
        ("x", {"title": "Κωδικός πρόσβασης"}, True),
        ("x", {"title": "كلمة المرور"}, True),
        ("x", {"title": "סיסמה"}, True),
        ("x", {"title": "पासवर्ड"}, True),
        ("x", {"title": "รหัสผ่าน"}, True),
        ("密码", {}, True),
        ("x", {"title": "パスワード"}, True),
        ("x", {"title": "비밀번호"}, True),
        ("x", {"title": "Mật khẩu"}, True),
        ("p\u0430ssw\u043erd", {}, True),
        ("pass\u200bword", {}, True),
        ("x", {"title": "".join(chr(ord(c) + 0xFEE0) for c in "PASSWORD")}, True),
        ("secretary", {"title": "Name of the secretary"}, False),
        ("passport", {"title": "Country of your passport"}, False),
        ("keywords", {"title": "Palabras clave"}, False),
        ("pineapple", {"title": "Ananas"}, False),
        ("città", {"title": "Città di nascita"}, False),
        ("名前", {"title": "お名前"}, False),
        ("opinion", {}, False),
        ("compass", {"title": "Direction"}, False),
        ("shipping", {"description": "Where to?"}, False),
    ],
)
def test_what_looks_like_a_secret(name, blank, secret):
    """Ours: names, titles and descriptions give it away."""
    schema = {"type": "object", "properties": {name: {"type": "string", **blank}}}

    assert ([name] if secret else []) == find_secrets(
        ElicitParams(message="?", requested_schema=schema)
    )


@pytest.mark.covers("hostterminal.elicitation.secrets-by-message")
@pytest.mark.parametrize(
    ("message", "blanks", "secret"),
    [
        ("Please enter your password", ["value"], ["value"]),
        ("Please enter your password", ["city"], ["city"]),
        ("Bitte geben Sie Ihr Passwort ein", ["eingabe"], ["eingabe"]),
        ("Saisissez le code de vérification", ["reponse"], ["reponse"]),
        ("请输入您的密码", ["x"], ["x"]),
        ("パスワードを入力してください", ["x"], ["x"]),
        ("Введите пароль", ["x"], ["x"]),
        ("Paste your API key", ["value"], ["value"]),
        ("Log in", ["user", "password"], ["password"]),
        ("Which name shall the new token have?", ["name"], []),
        ("Delete the password of ada?", [], []),
        ("Which city do you fly to?", ["value"], []),
    ],
)
def test_a_question_that_speaks_of_a_secret_gives_its_fields_away(message, blanks, secret):
    """Ours: a field of another name asks for the same; a yes or no asks for none."""
    properties = {name: {"type": "string"} for name in blanks}
    properties["sure"] = {"type": "boolean"}
    properties["kind"] = {"type": "string", "enum": ["a", "b"]}
    schema = {"type": "object", "properties": properties}

    assert secret == find_secrets(ElicitParams(message=message, requested_schema=schema))


@pytest.mark.covers("hostterminal.elicitation.page-consent")
async def test_a_page_is_opened_after_consent_and_not_before():
    """Spec: nothing is done with the URL until the user has seen all of it and agreed."""
    async with house(("deny",), ("allow",)) as (elicitor, person, opened):
        assert Declined() == await elicitor.answer(ServerQuestion(entry=ENTRY), PAGE)
        assert [] == opened
        assert Accepted(None) == await elicitor.answer(ServerQuestion(entry=ENTRY), PAGE)

        assert ["https://pay.example/a?b=c"] == opened
        assert "pay.example" == person.asked[0].payload.host
        assert () == person.asked[0].payload.concerns


@pytest.mark.covers("hostterminal.elicitation.done")
async def test_where_no_notice_will_come_the_user_says_when_they_are_done():
    """Spec: since 2026-07-28 the call is made again when the user says so, or is given up."""
    asking = ServerQuestion(entry=ENTRY, origin="result")
    async with house(("allow",), ("allow",), ("allow",), ("cancel",)) as (elicitor, person, opened):
        assert Accepted(None) == await elicitor.answer(asking, PAGE)
        assert Cancelled() == await elicitor.answer(asking, PAGE)

        done = person.asked[1].payload.concerns
        assert ("it has been opened: say yes when you are done there",) == done
        assert 2 == len(opened)


async def test_a_page_that_cannot_be_opened_here_is_left_to_the_user():
    """Ours: without a browser the user opens it, and says so, by whichever way it was asked."""
    async with house(("allow",), ("allow",), opener=lambda _: False) as (elicitor, person, _):
        assert Accepted(None) == await elicitor.answer(ServerQuestion(entry=ENTRY), PAGE)

        assert person.asked[1].payload.concerns[0].startswith("it could not be opened here")


@pytest.mark.covers("hostterminal.elicitation.host")
@pytest.mark.parametrize(
    ("url", "host", "odd"),
    [
        ("https://xn--pypal-4ve.example/", "p\u0430ypal.example (xn--pypal-4ve.example)", "alike"),
        ("https://p\u0430ypal.example/", "p\u0430ypal.example (xn--pypal-4ve.example)", "alike"),
        ("https://bank.example@evil.example/", "evil.example", "before the @"),
        ("http://pay.example/", "pay.example", "not encrypted"),
        ("https://0x7f.1/", "0x7f.1", "bare address"),
        ("https://xn--\u202e.example/", "xn--\u202e.example", ""),
    ],
)
async def test_a_host_is_read_in_both_spellings(url, host, odd):
    """Spec: ambiguous addresses are warned of, and the host stands out."""
    page = ElicitParams(message="?", mode="url", url=url)
    async with house(("deny",)) as (elicitor, person, _):
        await elicitor.answer(ServerQuestion(entry=ENTRY), page)
        payload = person.asked[0].payload

        assert host.split(" ")[0] == payload.host.split(" ")[0] == describe_host(url).split(" ")[0]
        assert host.endswith(")") == payload.host.endswith(")") or not url.isascii()
        assert any(odd in concern for concern in payload.concerns)


@pytest.mark.covers("hostterminal.elicitation.rate")
async def test_a_server_that_asks_too_often_is_cancelled():
    """Spec: questions are limited in rate, so that a server cannot wear its user out."""
    answers = [("deny",)] * 2
    async with house(*answers, rate=Rate(2, seconds=60), clock=lambda: 0.0) as (elicitor, _, _o):
        heard = elicitor._events.listen()
        for said in (Declined(), Declined(), Cancelled()):
            assert said == await elicitor.answer(ServerQuestion(entry=ENTRY), SEAT)
        heard.close()

        assert [n async for n in heard if isinstance(n, HostNotice)] == [
            HostNotice(
                about="strike",
                text="server 'shop' asks the user more often than it may",
                server="shop",
            )
        ]


async def test_that_a_server_is_done_with_a_page_is_told():
    """Spec: in 2025-11-25 a server says when a page is dealt with."""
    async with house() as (elicitor, _, _opened):
        heard = elicitor._events.listen()
        elicitor.completed("shop", "page\n1")
        heard.close()
        (notice,) = [event async for event in heard]

        assert "the page 'page\\n1' is dealt with, as the server says" == notice.text


@pytest.mark.covers("hostterminal.elicitation.own-browser")
async def test_a_terminals_browser_is_none(monkeypatch):
    """Ours: what would take the terminal away is not started."""
    opened = []

    class Window(webbrowser.BackgroundBrowser):
        def open(self, url, new=0, autoraise=True):
            opened.append(url)
            return True

    monkeypatch.setattr(webbrowser, "get", lambda: webbrowser.GenericBrowser("w3m"))
    assert not await open_in_browser("https://x.example")
    monkeypatch.setattr(webbrowser, "get", lambda: Window("w"))

    assert await open_in_browser("https://x.example")
    assert ["https://x.example"] == opened


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
async def test_a_tool_of_a_hosted_server_asks_in_both_eras(revision):
    """Ours: from the question in a tool to a person and back, with its call known as its course."""
    server, opened = Server("shop", revisions=[revision]), []

    @server.tool
    async def book(ctx: Context) -> str:
        """Book a seat."""
        row = await ctx.elicit("Which row?", int)
        paid = await ctx.elicit_url("Pay here", "https://pay.example/a")
        return f"{row} {paid}"

    person = Person(("allow",), ("allow", {"value": 7}), ("allow",), ("allow",))
    host = Host(approver=person, opener=lambda url: opened.append(url) or True)
    host.add("shop", server)
    async with host:
        result = await host.call("shop__book")

    call, form, page, *done = person.asked
    assert ["tool.call", "elicit.form", "elicit.url"] == [
        one.attempt.action for one in (call, form, page)
    ]
    assert {call.attempt.id} == {one.attempt.parent for one in (form, page)}
    assert ["https://pay.example/a"] == opened
    assert (1 if revision == "2026-07-28" else 0) == len(done)
    assert "value=7" in result.text
    assert "Accepted" in result.text.split(" ", 1)[1]


@pytest.mark.covers("hostterminal.elicitation.readable")
@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"message": "q" * 300_000}, "bytes"),
        ({"blanks": {f"a{n}": {"type": "string"} for n in range(201)}}, "201 fields"),
        ({"blanks": {"a": {"type": "string", "enum": [str(n) for n in range(99_999)]}}}, "bytes"),
    ],
    ids=["message", "fields", "choices"],
)
async def test_what_nobody_can_read_is_asked_of_nobody(more, why):
    """Ours: the server is told why, and the user that it tried."""
    blanks = more.get("blanks", {})
    question = ElicitParams(
        message=more.get("message", "?"),
        requested_schema={"type": "object", "properties": blanks},
    )
    async with house(("allow", {})) as (elicitor, person, _):
        heard = elicitor._events.listen()
        with pytest.raises(BadQuestion, match=why):
            await elicitor.answer(ServerQuestion(entry=ENTRY), question)
        heard.close()
        (notice,) = [event async for event in heard]

    assert ([], "strike") == (person.asked, notice.about)


async def test_a_form_that_cannot_be_checked_is_not_sent():
    """Ours: a pattern that is none is the server's mistake, and ends in an error, not in a crash."""
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}
    async with house(("allow", {"a": "x"})) as (elicitor, _, _):
        with pytest.raises(BadArguments):
            await elicitor.answer(
                ServerQuestion(entry=ENTRY), ElicitParams(message="?", requested_schema=schema)
            )


async def test_a_true_to_a_form_is_told_as_a_mistake():
    """Ours: it fills nothing in, so it is no answer; a form without blanks it agrees to."""
    server = Server("shop")

    @server.tool
    async def seat(ctx: Context) -> str:
        """Choose a seat."""
        return str(await ctx.elicit("Which seat?", Seat))

    told = []
    host = Host(approver=lambda _interaction: True)
    host.add("shop", server)
    async with host:
        events = host.events()
        with suppress(UserDeclined):
            await host.call("shop__seat")
        host.core.events.close()
        told = [event.text async for event in events if isinstance(event, HostNotice)]

    assert [
        (
            "the approver <lambda> failed: <lambda> returned True for a form, which leaves its fields empty: "
            "return Decision(verdict='allow', edited={...}) with row, or False"
        )
    ] == told
