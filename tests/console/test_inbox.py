"""Inbox of the console, without scripts: every answer is a plain form."""

import asyncio
import json
from typing import Literal

import pytest
from msgspec import Struct, structs

from isthmus import Context, Server
from isthmus.console.pages.form_fields import carry_blanks, make_blanks, read_blanks
from isthmus.core.encoding import is_same_json
from isthmus.host.model.interaction import Decision, QuestionTaker
from support.console.console_browser import ASKS, ConsoledHost, parse_forms
from support.event_loop import run_until

ALLOWS = '[[rule]]\nid = "calls"\neffect = "allow"\nwhen = { action = ["tool.call"] }\n'


class Order(Struct):
    """What a form asks for."""

    count: int
    size: Literal["small", "large"]
    gift: bool


async def test_what_waits_is_listed_and_allowed():
    """Ours: list, card, form, 303, list."""
    async with ConsoledHost() as asked:
        call, path = await asked.ask()
        page = await asked.browser.get("/console/")
        assert path in page
        assert "(1) Inbox" in page
        status, head, _ = await asked.browser.submit(path, press=("verdict", "allow"))
        assert (303, "/console/inbox?done=allow") == (status, head["location"])
        assert "tea" == (await call).text
        assert "Nothing waits." in await asked.browser.get("/console/inbox?done=allow")


async def test_what_is_denied_is_not_called():
    """Ours: with the reason that was given."""
    async with ConsoledHost() as asked:
        call, path = await asked.ask()
        await asked.browser.submit(path, press=("verdict", "deny"), fill={"reason": "too dear"})
        with pytest.raises(Exception, match="too dear"):
            await call
        assert [] == asked.bought


async def test_an_edit_is_what_is_called():
    """Ours: the arguments as they were changed."""
    async with ConsoledHost() as asked:
        call, path = await asked.ask()
        fill = {"edited": json.dumps({"what": "coffee"})}
        await asked.browser.submit(path, press=("verdict", "allow"), fill=fill)
        assert "coffee" == (await call).text


async def test_an_edit_that_is_no_json_is_shown_again():
    """Ours: nothing is decided, and nothing that was written is lost."""
    async with ConsoledHost() as asked:
        call, path = await asked.ask()
        status, _, text = await asked.browser.submit(
            path, press=("verdict", "allow"), fill={"edited": '{"what": '}
        )
        assert 409 == status
        assert "this is no JSON" in text
        form = next(form for form in parse_forms(text) if form["action"] == path)
        assert '{"what":' == form["fields"]["edited"].strip()
        assert not call.done()


async def test_a_yes_is_remembered_as_chosen():
    """Ours: for the session; the next call of the tool is not asked about."""
    async with ConsoledHost() as asked:
        call, path = await asked.ask()
        page = await asked.browser.get(path)
        number = page.split('data-scope="session"')[0].rsplit('value="', 1)[1].split('"')[0]
        await asked.browser.submit(path, press=("verdict", "allow"), fill={"remember": number})
        await call
        assert "again" == (await asked.host.call("shop__buy", {"what": "again"})).text


async def test_several_of_one_kind_are_answered_together():
    """Ours: those that were shown, once each."""
    async with ConsoledHost() as asked:
        first, path = await asked.ask(what="tea")
        second, _ = await asked.ask(what="milk")
        page = await asked.browser.get(f"{path}/batch")
        assert "2 similar questions" in page
        third, _ = await asked.ask(what="late")
        form = next(form for form in parse_forms(page) if form["action"] == f"{path}/batch")
        await asked.browser.send("POST", form["action"], {**form["fields"], "verdict": "allow"})
        assert {"tea", "milk"} == {(await first).text, (await second).text}
        assert not third.done()


async def test_a_card_that_is_gone_says_so():
    """Ours: the same words as for one that never was."""
    async with ConsoledHost() as asked:
        call, path = await asked.ask()
        await asked.browser.submit(path, press=("verdict", "allow"))
        await call
        gone = await asked.browser.send("GET", path)
        never = await asked.browser.send("GET", "/console/inbox/none")
        assert 404 == gone[0] == never[0]


async def test_a_form_of_a_server_is_filled_in():
    """Ours: an elicitation, with what does not fit said beside it, and what was filled in kept."""
    server = Server("shop")

    @server.tool
    async def order(ctx: Context) -> str:
        """Order."""
        given = await ctx.elicit("How many?", Order)
        return f"{given.value.count} {given.value.size} {given.value.gift}"

    async with ConsoledHost(ALLOWS, server) as asked:
        call, path = await asked.ask("shop__order", what="")
        page = await asked.browser.get(path)
        assert "How many?" in page
        wrong = {"field-0": "many", "field-1": "2", "field-2": "y"}
        status, _, text = await asked.browser.submit(path, press=("verdict", "allow"), fill=wrong)
        assert (409, True) == (status, "Nothing was decided" in text)
        form = next(form for form in parse_forms(text) if form["action"] == path)
        assert "many" == form["fields"]["field-0"]
        right = {"field-0": "3", "field-1": "2", "field-2": "y"}
        await asked.browser.submit(path, press=("verdict", "allow"), fill=right)
        assert "3 large True" == (await call).text


async def test_what_has_changed_since_it_was_shown_is_not_decided():
    """Ours: the form holds the digest of the card that was seen."""
    async with ConsoledHost() as asked:
        call, path = await asked.ask()
        page = await asked.browser.get(path)
        pending = asked.host.view.pending
        asked.host.view.pending = lambda: [structs.replace(q, risk="low") for q in pending()]
        form = next(form for form in parse_forms(page) if form["action"] == path)
        status, _, text = await asked.browser.send(
            "POST", path, {**form["fields"], "verdict": "allow"}
        )
        assert (409, True) == (status, "changed after it was shown" in text)
        assert not call.done()


async def test_the_theme_is_chosen_without_scripts():
    """Ours: a form, and a cookie."""
    async with ConsoledHost() as asked:
        assert 'data-theme="auto"' in await asked.browser.get("/console/")
        await asked.browser.submit("/console/", "/console/theme")
        assert 'data-theme="light"' in await asked.browser.get("/console/")


async def test_the_icon_shows_the_count():
    """Ours: for the tab, from a path of ours."""
    async with ConsoledHost() as asked:
        assert ">3<" in await asked.browser.get("/console/icon.svg?n=3")
        assert "script" not in await asked.browser.get("/console/icon.svg?n=<script>")


def change_pending(asked, change):
    """Have the host show its questions as ``change`` makes them."""
    pending = asked.host.view.pending
    asked.host.view.pending = lambda: [change(one) for one in pending()]


def change_arguments(one):
    """The same question with other arguments."""
    payload = structs.replace(one.payload, arguments={"what": "gin", "most": 2})
    return structs.replace(one, payload=payload)


async def test_a_draft_is_kept_when_its_card_has_changed():
    """Ours: the new card with the differences, the draft beside it, and the reason; nothing is decided."""
    async with ConsoledHost() as asked:
        call, path = await asked.ask()
        form = next(f for f in parse_forms(await asked.browser.get(path)) if f["action"] == path)
        change_pending(asked, change_arguments)
        written = {"edited": '{"what": "green tea"}', "reason": "too dear", "sure": "yes"}
        fields = {**form["fields"], **written, "verdict": "allow"}
        status, _, text = await asked.browser.send("POST", path, fields)
        assert 409 == status
        assert "what has changed" in text
        assert "gin" in text
        assert "your draft, compared with the question as it is now" in text
        again = next(f for f in parse_forms(text) if f["action"] == path)
        assert '{"what": "green tea"}' == again["fields"]["edited"].strip()
        assert "too dear" == again["fields"]["reason"]
        assert "sure" not in again["fields"]  # a second key is not carried to what was not seen
        assert not call.done()
        fields = {**again["fields"], "verdict": "allow", "sure": "yes"}
        await asked.browser.send("POST", path, fields)
        assert "green tea" == (await call).text


async def test_arguments_that_nobody_has_edited_are_those_that_are_asked_now():
    """Ours: the editor of the new card has the new arguments."""
    async with ConsoledHost() as asked:
        _, path = await asked.ask()
        form = next(f for f in parse_forms(await asked.browser.get(path)) if f["action"] == path)
        change_pending(asked, change_arguments)
        _, _, text = await asked.browser.send("POST", path, {**form["fields"], "verdict": "allow"})
        again = next(f for f in parse_forms(text) if f["action"] == path)
        assert {"what": "gin", "most": 2} == json.loads(again["fields"]["edited"])


async def test_a_draft_is_taken_along_without_a_decision():
    """Ours: what a live update asks for; it decides nothing, also where nothing has changed."""
    async with ConsoledHost() as asked:
        call, path = await asked.ask()
        page = await asked.browser.get(path)
        form = next(f for f in parse_forms(page) if f["action"] == path)
        fields = {**form["fields"], "edited": '{"what": ', "verdict": "keep"}
        _, _, text = await asked.browser.send("POST", path, fields)
        again = next(f for f in parse_forms(text) if f["action"] == path)
        assert '{"what":' == again["fields"]["edited"].strip()
        assert 'data-draft="yes"' in text
        assert "what has changed" not in text
        change_pending(asked, change_arguments)
        version = form["fields"]["version"]
        assert "what has changed" in await asked.browser.get(f"{path}?since={version}")
        assert not call.done()


async def test_what_was_written_on_a_card_that_is_gone_is_shown():
    """Ours: somebody else was faster; the draft can still be copied."""
    async with ConsoledHost() as asked:
        call, path = await asked.ask()
        form = next(f for f in parse_forms(await asked.browser.get(path)) if f["action"] == path)
        call.cancel()
        await run_until(lambda: not asked.host.view.pending())
        fields = {**form["fields"], "edited": '{"what": "green tea"}', "reason": "too dear"}
        status, _, text = await asked.browser.send("POST", path, {**fields, "verdict": "allow"})
        assert 404 == status
        assert "green tea" in text
        assert "too dear" in text


async def test_the_fields_of_a_form_are_kept_by_their_names():
    """Ours: a field has another place, a choice another number; what has no place is shown beside."""
    before = {
        "properties": {
            "count": {"type": "integer"},
            "size": {"type": "string", "enum": ["small", "large"]},
            "note": {"type": "string", "title": "Note"},
            "same": {"type": "string", "default": "old"},
        }
    }
    after = {
        "properties": {
            "size": {"type": "string", "enum": ["tiny", "small", "large"]},
            "same": {"type": "string", "default": "new"},
            "count": {"type": "integer"},
        }
    }
    fields = {"field-0": "3", "field-1": "2", "field-2": "with care", "field-3": "old"}
    carried, left = carry_blanks(before, after, fields)
    assert {"field-0": "3", "field-2": "3"} == carried
    assert {"Note": "with care"} == left


ADA = QuestionTaker("terminal", "another")


async def test_a_question_is_taken_and_given_back():
    """Ours: others see who has it."""
    async with ConsoledHost() as asked:
        _, path = await asked.ask()
        status, head, _ = await asked.browser.submit(path, press=("verdict", "take"))
        assert (303, path) == (status, head["location"])
        assert "You have taken this" in await asked.browser.get(path)
        assert "taken by" in await asked.browser.get("/console/inbox")
        (taker,) = asked.host.view.takers().values()
        assert taker.by.startswith("console (")
        await asked.browser.submit(path, press=("verdict", "free"))
        assert {} == asked.host.view.takers()


async def test_what_somebody_else_has_taken_is_taken_over_first():
    """Ours: by name; an answer from before decides nothing, and its draft is kept."""
    async with ConsoledHost() as asked:
        call, path = await asked.ask()
        form = next(f for f in parse_forms(await asked.browser.get(path)) if f["action"] == path)
        await asked.host.view.take_question(path.rpartition("/")[2], ADA)
        fields = {**form["fields"], "edited": '{"what": "green tea"}', "verdict": "allow"}
        status, _, text = await asked.browser.send("POST", path, fields)
        assert (409, True) == (status, "terminal has taken this question" in text)
        assert not call.done()
        again = next(f for f in parse_forms(text) if f["action"] == path)
        assert "Take over" in text
        assert 'value="allow"' not in text
        _, _, text = await asked.browser.send("POST", path, {**again["fields"], "verdict": "take"})
        again = next(f for f in parse_forms(text) if f["action"] == path)
        await asked.browser.send("POST", path, {**again["fields"], "verdict": "allow"})
        assert "green tea" == (await call).text


async def test_what_somebody_else_has_taken_is_in_no_batch():
    """Ours: those that are free are answered together."""
    async with ConsoledHost() as asked:
        taken, path = await asked.ask(what="tea")
        _, other = await asked.ask(what="milk")
        await asked.ask(what="bread")
        await asked.host.view.take_question(path.rpartition("/")[2], ADA)
        assert "2 similar questions" in await asked.browser.get(f"{other}/batch")
        assert "Answer all 2 of this kind" in await asked.browser.get(other)
        await asked.browser.submit(f"{other}/batch", press=("verdict", "allow"))
        assert not taken.done()


async def test_signing_out_gives_back_what_was_taken():
    """Ours: nobody waits for somebody who has gone."""
    async with ConsoledHost() as asked:
        _, path = await asked.ask()
        await asked.browser.submit(path, press=("verdict", "take"))
        await asked.browser.submit(path, "/console/logout")
        assert {} == asked.host.view.takers()


async def test_a_choice_is_the_one_that_was_shown():
    """Ours: a value that looks like the number of another one is not taken for it."""
    sizes = Literal["2", "1", "30"]
    server = Server("shop")

    class Sized(Struct):
        size: sizes

    @server.tool
    async def order(ctx: Context) -> str:
        """Order."""
        given = await ctx.elicit("Which?", Sized)
        return given.value.size

    async with ConsoledHost(ALLOWS, server) as asked:
        call, path = await asked.ask("shop__order", what="")
        page = await asked.browser.get(path)
        number = page.split(">1</option>")[0].rsplit('value="', 1)[1].split('"')[0]
        fill = {"field-0": number}
        await asked.browser.submit(path, press=("verdict", "allow"), fill=fill)
        assert "1" == (await call).text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"what": 1e999}', "1e999 is no number"),
        ('{"what": "tea", "what": "coffee"}', "is there twice"),
    ],
)
async def test_an_edit_that_would_be_sent_as_something_else_is_refused(text, why):
    """Ours: an infinite number is sent as null, and of two members of one name the last one counts."""
    async with ConsoledHost() as asked:
        call, path = await asked.ask()
        fill = {"edited": text}
        status, _, page = await asked.browser.submit(path, press=("verdict", "allow"), fill=fill)
        assert 409 == status
        assert why in page
        assert not call.done()


async def test_true_and_one_differ_between_questions_of_a_batch():
    """Ours: they are equal in Python, and were shown as the same in all."""
    server = Server("shop")

    @server.tool
    async def buy(what: str, force: bool | int) -> str:
        """Buy something."""
        return f"{what} {force!r}"

    async with ConsoledHost(server=server) as asked:
        _, path = await asked.ask(what="tea", force=1)
        await asked.ask(what="milk", force=True)
        page = await asked.browser.get(f"{path}/batch")
        compared = page.split("Differences", 1)[1].split("<form", 1)[0]
        assert "the same in all" not in compared
        assert "true" in compared
        inbox = await asked.browser.get("/console/inbox")
        assert "milk" in inbox


async def test_a_draft_that_makes_true_of_one_is_kept():
    """Ours: when the card changes, it is a draft like any other."""
    async with ConsoledHost() as asked:
        _, path = await asked.ask()
        change_pending(asked, change_arguments)
        form = next(f for f in parse_forms(await asked.browser.get(path)) if f["action"] == path)
        written = '{"what": "gin", "most": 2.0}'
        fields = {**form["fields"], "edited": written, "verdict": "keep"}
        _, _, text = await asked.browser.send("POST", path, fields)
        again = next(f for f in parse_forms(text) if f["action"] == path)
        assert written == again["fields"]["edited"].strip()


async def test_a_suggested_text_that_nobody_has_changed_is_sent_as_it_is():
    """Ours: a page shows what cannot be seen in it as a mark, which is nothing that anybody wrote."""
    suggested = "one\ntwo\u200b\tthree"
    server = Server("shop")

    class Note(Struct):
        text: str = suggested

    @server.tool
    async def order(ctx: Context) -> str:
        """Order."""
        given = await ctx.elicit("What note?", Note)
        return json.dumps([given.value.text, given.value.text == suggested])

    async with ConsoledHost(ALLOWS, server) as asked:
        call, path = await asked.ask("shop__order", what="")
        page = await asked.browser.get(path)
        assert "&lt;U+200B&gt;" in page
        form = next(form for form in parse_forms(page) if form["action"] == path)
        sent = form["fields"]["field-0"].replace("\n", "\r\n")  # as browsers send lines
        await asked.browser.submit(path, press=("verdict", "allow"), fill={"field-0": sent})
        assert [suggested, True] == json.loads((await call).text)


@pytest.mark.parametrize("gone", [1, 2])
async def test_a_batch_says_what_was_not_decided(gone):
    """Ours: somebody else was faster, which a console in another process hears of late."""
    async with ConsoledHost() as asked:
        _, path = await asked.ask(what="tea")
        await asked.ask(what="milk")
        page = await asked.browser.get(f"{path}/batch")
        waiting = asked.host.view.pending()
        for one in waiting[:gone]:
            await asked.host.view.decide(one.id, Decision(verdict="deny", by="ada"))
        asked.host.view.pending = lambda: waiting
        form = next(form for form in parse_forms(page) if form["action"] == f"{path}/batch")
        fields = {**form["fields"], "verdict": "allow"}
        status, head, text = await asked.browser.send("POST", form["action"], fields)
        if gone == 2:
            assert 409 == status
            assert "None of these questions waits any longer" in text
        else:
            assert 303 == status
            assert "had been answered before" in await asked.browser.get(head["location"])


async def test_who_is_removed_from_a_list_leaves_no_hidden_value_behind():
    """Ours: the second of two payees is paid with the own card, and not with that of the first."""
    server = Server("shop")

    class Payee(Struct):
        name: str
        card: str

    @server.tool
    async def pay(payees: list[Payee]) -> str:
        """Pay."""
        return " ".join(f"{one.name}:{one.card}" for one in payees)

    rules = f'{ASKS}obligations = {{ redact = ["/payees/*/card"] }}\n'
    given = [{"name": "ada", "card": "4111"}, {"name": "bob", "card": "4222"}]
    async with ConsoledHost(rules, server) as asked:
        call, path = await asked.ask("shop__pay", payees=given)
        page = await asked.browser.get(path)
        form = next(form for form in parse_forms(page) if form["action"] == path)
        edited = json.loads(form["fields"]["edited"])
        assert "4111" not in page
        del edited["payees"][0]
        fill = {"edited": json.dumps(edited), "sure": "yes"}
        await asked.browser.submit(path, press=("verdict", "allow"), fill=fill)
        assert "bob:4222" == (await call).text


@pytest.mark.parametrize("verdict", ["allow", "deny"])
async def test_arguments_too_long_for_a_form_are_decided_as_they_are(verdict):
    """Ours: a form with them would be refused whatever its answer."""
    what = "é" * 200_000
    async with ConsoledHost() as asked:
        call, path = await asked.ask(what=what)
        status, _, text = await asked.browser.submit(path, press=("verdict", verdict))
        assert 303 == status, text[-300:]
        await asyncio.wait([call], timeout=10)
        assert [what] * (verdict == "allow") == asked.bought


@pytest.mark.parametrize(
    ("schema", "field", "value"),
    [
        ({"type": "integer", "enum": [3, 5]}, "2", 5),
        ({"type": "integer", "enum": [0, 1], "default": True}, "1", 0),
        ({"type": "array", "items": {"enum": ["a"]}, "default": 1}, "", None),
    ],
)
def test_a_form_of_odd_choices_is_shown_and_read(schema, field, value):
    """Ours: a card that cannot be shown can be neither answered nor declined."""
    whole = {"type": "object", "properties": {"x": schema}}
    assert "".join(make_blanks(whole, {}))
    content, fault = read_blanks(whole, {"field-0": field})
    assert "" == fault
    assert is_same_json({} if value is None else {"x": value}, content)
    assert ({}, {}) == carry_blanks(whole, whole, {"field-0": ""})
