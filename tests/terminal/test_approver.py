"""The full screen, driven by keys, with a host that only asks and a clock that only tests move."""

import asyncio

import pytest
from msgspec import UNSET, structs
from textual.events import Paste
from textual.widgets import Static

from isthmus.core.text import clean_text, show_invisible
from isthmus.host.model.interaction import CallAsked, Decision, FormAsked, QuestionTaker
from isthmus.terminal.approver.app import TerminalApprover, approve
from isthmus.terminal.approver.forms import FormDialog
from isthmus.terminal.approver.inbox import Inbox
from isthmus.terminal.approver.questions import TerminalSurface
from isthmus.terminal.approver.takers import TerminalTaker
from isthmus.terminal.approver.widgets import Detail
from isthmus.wire import ElicitParams
from support.clock import ManualClock
from support.host.waiting_host import TOOL, WaitingHost, make_interaction

FORM = FormAsked(
    params=ElicitParams(
        message="Which seat?",
        requested_schema={
            "type": "object",
            "properties": {
                "row": {"type": "integer", "maximum": 30},
                "side": {"type": "string", "enum": ["aisle", "window"], "default": "aisle"},
            },
            "required": ["row", "side"],
        },
    )
)


class Screen:
    """A terminal with somebody at the keyboard."""

    def __init__(self, host, *, edits=(), **surface):
        self.host = host
        self.clock = ManualClock(100.0)
        self.edits = list(edits)
        self.opened = []
        self.app = TerminalApprover(
            host,
            TerminalSurface(
                clock=self.clock, now=lambda: 1000.0 + self.clock(), edit=self.edit, **surface
            ),
        )

    async def edit(self, text):
        """The user's editor."""
        self.opened.append(text)
        return self.edits.pop(0)

    def run(self, size=(80, 24)):
        """Show it."""
        return self.app.run_test(size=size)

    async def press(self, pilot, *keys):
        """Look at the screen for a while, then press keys."""
        await pilot.pause()
        self.clock.now += 1
        await pilot.press(*keys)
        working = [w for w in self.app.workers if w.name != "listening"]
        if working:
            await self.app.workers.wait_for_complete(working)
        await pilot.pause()

    @property
    def told(self):
        return str(self.app.query_one("#told").content)

    @property
    def card(self):
        return self.app.query_one("#detail", Detail).text

    @property
    def rows(self):
        return self.app.query_one(Inbox).rows


def read_screen(app):
    """What stands on the screen, row by row."""
    width = app.size.width
    return [
        "".join(segment.text for segment in strip)[:width]
        for strip in app.screen._compositor.render_strips()
    ]


@pytest.mark.covers("hostterminal.keys.allow-once")
async def test_a_allows_once():
    """Ours: one key says yes to what is on the screen, and to nothing else."""
    screen = Screen(WaitingHost(make_interaction("q1"), make_interaction("q2")))

    async with screen.run() as pilot:
        await screen.press(pilot, "a")

        yes = Decision(verdict="allow", by="terminal", assurance="local_ui")
        assert {"q1": yes} == screen.host.decided
        assert "Allowed: May the tool delete of files be called?" == screen.told
        assert 1 == len(screen.rows)


@pytest.mark.covers("hostterminal.keys.group")
async def test_g_shows_all_of_one_kind_and_allows_each_of_them_once():
    """Ours: what is of another tool or of high risk, or comes later, is asked by itself."""
    paths = (CallAsked(tool=TOOL, arguments={"path": f"/code/{n}"}) for n in range(9))
    first, second, other, grave, late = (
        make_interaction("q1", next(paths)),
        make_interaction("q2", next(paths)),
        make_interaction("q3", next(paths), object="other"),
        make_interaction("q4", next(paths), risk="high"),
        make_interaction("q5", next(paths)),
    )
    screen = Screen(WaitingHost(second, first, other, grave))

    async with screen.run((100, 60)) as pilot:
        await screen.press(pilot, "g")
        assert "There is no similar question." == screen.told
        await screen.press(pilot, "down", "down")
        await screen.press(pilot, "g")
        await pilot.press("y")
        assert {} == screen.host.decided
        both = "\n".join(read_screen(screen.app))
        screen.host.ask(late)
        await screen.press(pilot, "y")
        assert {"q1", "q2"} == set(screen.host.decided)
        await screen.press(pilot, "g", "escape")

    assert "  | 1 | /code/0" in both

    assert all(f"/code/{n}" in both for n in (0, 1))
    assert not any(f"/code/{n}" in both for n in (2, 3))
    assert {"once"} == {one.remember for one in screen.host.decided.values()}


@pytest.mark.covers("hostterminal.keys.three-answers")
@pytest.mark.parametrize(("key", "verdict"), [("d", "deny"), ("c", "cancel")])
async def test_no_and_turning_away_are_two_answers(key, verdict):
    """Spec: a server hears whether its user said no, or nothing."""
    screen = Screen(WaitingHost(make_interaction("q1", FORM, action="elicit.form")))

    async with screen.run() as pilot:
        await screen.press(pilot, key)

        assert verdict == screen.host.decided["q1"].verdict


async def test_a_call_cannot_be_cancelled_only_denied():
    """Ours: a third answer exists only where somebody hears it."""
    screen = Screen(WaitingHost(make_interaction("q1")))

    async with screen.run() as pilot:
        await screen.press(pilot, "c")

        assert {} == screen.host.decided
        assert "Only questions of a server can be cancelled; d denies this." == screen.told


@pytest.mark.covers("hostterminal.keys.group")
async def test_a_group_can_be_denied():
    """Ours: no to each of them, as to one; the guard is up for that, too."""
    screen = Screen(
        WaitingHost(
            make_interaction("q1"), make_interaction("q2"), make_interaction("q3", object="other")
        )
    )

    async with screen.run((100, 60)) as pilot:
        await screen.press(pilot)
        assert "g all 2 of this kind" in str(screen.app.query_one("#keys").content)
        await screen.press(pilot, "g", "d")
        assert {} == screen.host.decided
        await screen.press(pilot, "d")

        assert ["deny", "deny"] == [screen.host.decided[id].verdict for id in ("q1", "q2")]
        assert 2 == len(screen.host.decided)


KEYS = [
    ({"remember": ("once",)}, "a once  e edit  d deny  ? why  / search"),
    ({"remember": ("once", "shape")}, "a once  r remember  e edit  d deny  ? why  / search"),
    ({"risk": "high"}, "A,y once  s session  r remember  e edit  d deny  ? why  / search"),
    ({"assurance": "second_person"}, "d deny  ? why  / search"),
    ({"payload": FORM, "action": "elicit.form"}, "a fill in  d deny  c cancel  ? why  / search"),
]


@pytest.mark.covers("hostterminal.keys.offered")
@pytest.mark.parametrize(("more", "keys"), KEYS, ids=[keys for _, keys in KEYS])
async def test_only_what_can_be_done_has_a_key_at_the_bottom(more, keys):
    """Ours: what policy does not offer, no line promises."""
    screen = Screen(WaitingHost(make_interaction("q1", **more)))

    async with screen.run() as pilot:
        await screen.press(pilot)

        assert keys == str(screen.app.query_one("#keys").content).split("\n")[0]


@pytest.mark.covers("hostterminal.guard.too-quick")
async def test_a_key_right_after_a_card_has_appeared_answers_nothing():
    """Ours: what somebody was typing when the question came is no answer to it."""
    screen = Screen(WaitingHost())

    async with screen.run() as pilot:
        screen.host.ask(make_interaction("q1"))
        await pilot.pause()
        await pilot.press("a", "d", "s")
        await pilot.pause()
        assert {} == screen.host.decided
        assert "This question has just appeared: read it, then press the key again." == screen.told
        await screen.press(pilot, "d")

        assert ["q1"] == list(screen.host.decided)


SENTENCES = ("mango a banana a lot", "yes sAy Ay dad", "read r1 s a")


@pytest.mark.covers("hostterminal.guard.silence")
@pytest.mark.parametrize("text", SENTENCES)
async def test_keys_of_a_sentence_answer_nothing(text):
    """Ours: a key answers that stands alone, however long the card has been there."""
    screen = Screen(WaitingHost(make_interaction("q1"), make_interaction("q2", risk="high")))

    async with screen.run() as pilot:
        await screen.press(pilot, "tab", "shift+tab")
        for key in text:
            screen.clock.now += 0.2
            await pilot.press("space" if key == " " else key)
        await pilot.pause()

        assert {} == screen.host.decided
        await screen.press(pilot, "escape", "escape")
        await screen.press(pilot, "down")
        await screen.press(pilot, "a")
        assert ["q1"] == list(screen.host.decided)


@pytest.mark.covers("hostterminal.guard.silence")
async def test_what_is_pasted_answers_nothing():
    """Ours: a pasted text is no key, and a key right after it is part of it."""
    screen = Screen(WaitingHost(make_interaction("q1")))

    async with screen.run() as pilot:
        await screen.press(pilot)
        screen.app.post_message(Paste("a"))
        await pilot.pause()
        await pilot.press("a")
        await pilot.pause()

        assert {} == screen.host.decided


@pytest.mark.covers("hostterminal.guard.moved")
async def test_the_guard_is_up_again_when_the_next_card_or_another_size_comes():
    """Ours: the key that answers one question does not answer the one that takes its place."""
    screen = Screen(WaitingHost(make_interaction("q1"), make_interaction("q2")))

    async with screen.run() as pilot:
        await screen.press(pilot, "a")
        await pilot.press("a")
        await pilot.pause()
        assert ["q1"] == list(screen.host.decided)
        screen.clock.now += 1
        await pilot.resize_terminal(60, 15)
        await pilot.press("a")
        await pilot.pause()

        assert ["q1"] == list(screen.host.decided)


@pytest.mark.covers("hostterminal.guard.chord")
async def test_high_risk_takes_two_keys():
    """Ours: what may do harm is not allowed by one letter, and the card says so."""
    screen = Screen(WaitingHost(make_interaction("q1", risk="high")))

    async with screen.run() as pilot:
        await screen.press(pilot, "a")
        assert "High risk: A (with shift), then y, allows it once." == screen.told
        assert "HIGH: to allow it, confirm it twice" in screen.card
        await screen.press(pilot, "A", "x", "y")
        assert {} == screen.host.decided
        await screen.press(pilot, "s")
        assert {} == screen.host.decided
        await screen.press(pilot, "A", "y")

        assert "once" == screen.host.decided["q1"].remember


async def test_s_remembers_for_the_session_where_policy_offers_that():
    """Ours: what policy does not offer, no key gives."""
    once = make_interaction("q2", remember=("once",))
    screen = Screen(WaitingHost(make_interaction("q1"), once))

    async with screen.run() as pilot:
        await screen.press(pilot, "s")
        await screen.press(pilot, "s")
        assert "The policy does not allow this for a session; a allows it once." == screen.told
        await screen.press(pilot, "r")

        assert "The policy allows this only once." == screen.told
        assert {"q1": "session"} == {k: v.remember for k, v in screen.host.decided.items()}


@pytest.mark.covers("hostterminal.keys.remember")
async def test_r_offers_the_scopes_of_the_trace_by_number():
    """Ours: a yes that lasts says for what, and until when."""
    scopes = ("once", "arguments", "until", "tool_always")
    screen = Screen(
        WaitingHost(
            make_interaction("q1", remember=scopes), make_interaction("q2", remember=scopes)
        )
    )

    async with screen.run() as pilot:
        await screen.press(pilot, "r", "3")
        assert {} == screen.host.decided  # it has only just appeared
        await screen.press(pilot, "3")
        await screen.press(pilot, "r")
        await screen.press(pilot, "5")
        assert ["q1"] == list(screen.host.decided)
        await screen.press(pilot, "4")

        day = screen.host.decided["q1"]
        assert ("until", 86_400.0) == (day.remember, round(day.until - 1100, -2))
        assert "until" == screen.host.decided["q2"].remember


async def test_always_takes_the_same_digit_twice():
    """Ours: the widest yes is behind a second key."""
    screen = Screen(WaitingHost(make_interaction("q1", remember=("once", "tool_always"))))

    async with screen.run() as pilot:
        await screen.press(pilot, "r")
        await screen.press(pilot, "1")
        assert {} == screen.host.decided
        await screen.press(pilot, "1")

        assert "tool_always" == screen.host.decided["q1"].remember


@pytest.mark.covers("hostterminal.keys.edit")
async def test_e_changes_the_arguments_and_the_card_shows_how():
    """Ours: what was changed is seen again before it is allowed."""
    screen = Screen(WaitingHost(make_interaction("q1")), edits=['{"path": "/tmp/b"}'])

    async with screen.run() as pilot:
        await screen.press(pilot, "e")
        assert ['{\n  "path": "/tmp/a"\n}\n'] == screen.opened
        assert '  -  "path": "/tmp/a"\n  +  "path": "/tmp/b"' in screen.card
        await screen.press(pilot, "a")

        assert {"path": "/tmp/b"} == screen.host.decided["q1"].edited


@pytest.mark.covers("hostterminal.keys.edit-kept")
async def test_a_change_that_is_no_json_is_kept_to_be_mended():
    """Ours: a forgotten comma costs a comma."""
    edits = ['{"path": ', "[]", '{"path": 1}']
    screen = Screen(WaitingHost(make_interaction("q1")), edits=edits)

    async with screen.run() as pilot:
        await screen.press(pilot, "e")
        assert screen.card.splitlines()[1].startswith("  ! this is no JSON: Expecting value")
        await screen.press(pilot, "a")
        assert "Your edit cannot be sent yet: e opens it, u undoes it." == screen.told
        await screen.press(pilot, "e")
        assert '{"path": ' == screen.opened[1]
        assert "this is no object" in screen.card
        await screen.press(pilot, "e")
        await screen.press(pilot, "u")
        await screen.press(pilot, "a")

        assert UNSET is screen.host.decided["q1"].edited


@pytest.mark.covers("hostterminal.forms.filled-in")
async def test_a_form_is_filled_in_on_the_screen_and_checked_before_it_is_sent():
    """Spec: defaults stand in the fields, and what does not fit the schema is not sent."""
    screen = Screen(WaitingHost(make_interaction("q1", FORM, action="elicit.form")))

    async with screen.run((60, 15)) as pilot:
        await screen.press(pilot, "a")
        form = screen.app.screen
        assert isinstance(form, FormDialog)
        assert {"row": "", "side": "aisle"} == form.texts()
        await screen.press(pilot, "3", "1", "ctrl+s")
        assert {} == screen.host.decided
        assert "! 31 is greater than the maximum of 30" == str(form.query_one("#wrong-0").content)
        await screen.press(pilot, "backspace", "escape")
        await screen.press(pilot, "e")
        assert {"row": "3", "side": "aisle"} == screen.app.screen.texts()
        await screen.press(pilot, "ctrl+s")

        assert {"row": 3, "side": "aisle"} == screen.host.decided["q1"].edited


@pytest.mark.covers("hostterminal.race.late")
async def test_of_two_surfaces_the_first_counts_and_the_other_is_told():
    """Ours: a late answer changes nothing, and says who was first."""
    host = WaitingHost(make_interaction("q1"), make_interaction("q2"))
    one, two = Screen(host, by="terminal one"), Screen(host, by="terminal two")

    async with one.run() as first, two.run() as second:
        await second.pause()
        await one.press(first, "d")
        await two.press(second)
        assert "Already decided by terminal one: denied." == two.told
        host.waiting.pop("q2")
        await two.press(second, "a")

        assert "Already decided by somebody else." == two.told
        assert ["q1"] == list(host.decided)


@pytest.mark.covers("hostterminal.race.expired")
async def test_a_question_whose_time_is_over_leaves_the_screen():
    """Ours: the time that is left is shown, and its end is told."""
    screen = Screen(WaitingHost(make_interaction("q1", deadline=1190.0)))

    async with screen.run() as pilot:
        await screen.press(pilot)
        screen.clock.now += 1
        screen.app.tick()
        assert ["> medi  1:28 files: delete path=/tmp/a"] == screen.rows
        screen.clock.now += 79
        screen.app.tick()
        assert " 0:09 " in screen.rows[0]
        await screen.host.over("q1")
        await screen.press(pilot, "a")

        assert [] == screen.rows
        assert "Already decided by deadline: denied." == screen.told
        assert "deny" == screen.host.decided["q1"].verdict


async def test_a_form_that_nobody_asks_for_any_more_is_closed():
    """Ours: whoever fills in a form learns at once that somebody else has answered."""
    screen = Screen(
        WaitingHost(make_interaction("q1", FORM, action="elicit.form"), make_interaction("q2"))
    )

    async with screen.run() as pilot:
        await screen.press(pilot, "a", "3")
        screen.host.ask(make_interaction("q3"))
        await screen.host.over("q1")
        await screen.press(pilot)
        assert not isinstance(screen.app.screen, FormDialog)
        assert "Already decided by deadline: denied." == screen.told
        await screen.press(pilot, "r")
        await screen.host.over("q2")
        await screen.press(pilot, "1")

        assert ["q1", "q2"] == list(screen.host.decided)


async def test_the_riskiest_comes_first_and_what_is_looked_at_stays():
    """Ours: a question that arrives does not slip under somebody's finger."""
    screen = Screen(WaitingHost(make_interaction("q1", object="one", risk="low")))

    async with screen.run() as pilot:
        await pilot.pause()
        screen.host.ask(make_interaction("q2", object="two", risk="high"))
        await pilot.pause()
        assert [
            "  HIGH       files: two path=/tmp/a",
            "> low        files: one path=/tmp/a",
        ] == screen.rows
        await pilot.press("d")
        await pilot.pause()
        assert {} == screen.host.decided
        await screen.press(pilot, "d")

        assert ["q1"] == list(screen.host.decided)


async def test_a_policy_that_wants_more_than_a_terminal_is_told():
    """Ours: a yes that would not count is not offered as one; no always counts."""
    screen = Screen(WaitingHost(make_interaction("q1", assurance="second_person")))

    async with screen.run() as pilot:
        await screen.press(pilot, "a")
        assert "more than a terminal to allow this (second_person)" in screen.told
        await screen.press(pilot, "d")

        assert "deny" == screen.host.decided["q1"].verdict


@pytest.mark.parametrize(
    "object", ["[/x]", "[@click=app.quit]x[/]", "/\\[@]", "[link=http://x]y[/link]"]
)
async def test_no_name_is_markup(object):
    """Ours: a tool's name neither ends the screen nor puts something to click on into it."""
    screen = Screen(WaitingHost(make_interaction("q1", object=object)))

    async with screen.run() as pilot:
        await screen.press(pilot, "question_mark")
        title = screen.app.screen.query_one("#reading-title", Static)
        assert f"May the tool {object} of files be called?" == str(title.visual)


async def test_why_and_search_answer_nothing():
    """Ours: looking around is no decision, whatever letters it takes."""
    screen = Screen(
        WaitingHost(make_interaction("q1"), make_interaction("q2", server="git", object="commit"))
    )

    async with screen.run() as pilot:
        await screen.press(pilot, "question_mark")
        why = screen.app.screen.query_one(Detail).text
        assert "matching rule: writes (user): ask" in why
        assert "q1 is asked since nothing allows it" in why
        await screen.press(pilot, "escape", "slash", *"git ad", "enter")
        assert [] == screen.rows
        await screen.press(pilot, "slash", *"git", "enter")
        assert ["> medi       git: commit path=/tmp/a"] == screen.rows
        await screen.press(pilot, "escape")

        assert 2 == len(screen.rows)
        assert {} == screen.host.decided


@pytest.mark.covers("hostterminal.screen.small")
@pytest.mark.parametrize("size", [(60, 15), (200, 50)])
async def test_everything_that_matters_stands_on_a_small_screen_and_a_large_one(size):
    """Ours: sixty columns and fifteen lines are enough, before and after a change of size."""
    long = make_interaction("q1", object="x" * 300, risk="high")
    screen = Screen(WaitingHost(long, make_interaction("q2")))

    async with screen.run((80, 24)) as pilot:
        await pilot.resize_terminal(*size)
        await pilot.pause()
        page = "\n".join(read_screen(screen.app))
        assert all(words in page for words in ("2 questions", "> HIGH", "d deny", "q quit"))
        assert "x" * 300 in "".join(screen.card.split("\n")[0])
        assert all(len(row) <= size[0] for row in read_screen(screen.app))


async def test_servers_are_started_and_stopped_from_their_list():
    """Ours: a server that hangs is a key away from being started again."""
    screen = Screen(WaitingHost(servers=("files", "git")))

    async with screen.run() as pilot:
        await screen.press(pilot, "2")
        await screen.press(pilot, "down", "x")
        await screen.press(pilot, "r")
        assert [("stop", "git"), ("restart", "git")] == screen.host.done
        assert "restart of git: done" == screen.told
        await screen.press(pilot, "l")
        assert "git wrote <U+001B>[2Jthis" == screen.app.screen.query_one(Detail).text
        await screen.press(pilot, "escape", "3")

        log = screen.app.query_one("#happenings", Detail).text
        assert "intent   tool.call files: " in log
        assert "server   git is stopped" in log


async def test_a_host_without_servers_says_how_to_add_one():
    """Ours: an empty screen is a beginning, and says which."""
    screen = Screen(WaitingHost())

    async with screen.run((120, 24)) as pilot:
        await screen.press(pilot)
        said = [screen.card]
        await screen.press(pilot, "2")
        said.append(screen.app.query_one("#server-detail", Detail).text)
    assert [True, True] == ["isthmus servers add NAME" in one for one in said]


@pytest.mark.covers("hostterminal.leaving.twice")
@pytest.mark.parametrize("key", ["q", "ctrl+c", "ctrl+q"])
async def test_leaving_while_something_waits_takes_two_keys(key):
    """Ours: who closes the terminal is told what becomes of the questions."""
    screen = Screen(WaitingHost(make_interaction("q1")))

    async with screen.run() as pilot:
        await screen.press(pilot, key)
        assert "1 waiting; what waits is denied. q again quits." == screen.told
        assert screen.app.is_running
        await screen.press(pilot, key)

    assert not screen.app.is_running


async def test_the_terminal_closes_when_the_host_ends():
    """Ours: nobody answers questions that nobody asks."""
    screen = Screen(WaitingHost())

    async with screen.run() as pilot:
        await pilot.pause()
        screen.host.happened.close()
        await pilot.pause()
        await pilot.pause()

    assert 0 == screen.app.return_code


async def test_an_answer_that_does_not_count_is_no_late_one():
    """Ours: where the host refuses an answer and goes on asking, nobody is told it was decided."""

    class Strict(WaitingHost):
        async def decide(self, id, decision):
            return False

    screen = Screen(Strict(make_interaction("q1")))

    async with screen.run() as pilot:
        await screen.press(pilot, "a")

        assert "The host refused this answer; the log (3) shows why." == screen.told
        assert 1 == len(screen.rows)


async def test_a_host_that_breaks_is_told():
    """Ours: an answer that went nowhere is not shown as one."""

    class Broken(WaitingHost):
        async def decide(self, id, decision):
            raise ConnectionError("the host is gone")

    screen = Screen(Broken(make_interaction("q1")))

    async with screen.run() as pilot:
        await screen.press(pilot, "a")

        assert "The question was not answered: the host is gone" == screen.told


NASTY = (
    "[bold red]x[/]",
    "[@click=app.leave]x[/]",
    "<script>alert(1)</script>",
    "\x1b[2J\x1b]0;owned\x07",
    "\u202efdp.exe",
    "__proto__",
    "a\nWhy: it is safe",
    "\u2066\u200b\ufeff",
)


def nasty(number, text):
    """A question in which everything that others name is named like that."""
    tool = structs.replace(TOOL, name=text, description=text)
    call = CallAsked(tool=tool, arguments={text: text})
    return make_interaction(f"q{number}", call, object=text, server=text)


@pytest.mark.covers("hostterminal.text.foreign")
async def test_no_words_of_others_are_obeyed_or_hidden():
    """Ours: markup, control codes and direction marks of others are seen, not followed."""
    screen = Screen(WaitingHost(*(nasty(number, text) for number, text in enumerate(NASTY))))

    async with screen.run((160, 40)) as pilot:
        for text in NASTY:
            await pilot.pause()
            page = read_screen(screen.app)

            assert page == [clean_text(row) for row in page]
            assert f"  server: {show_invisible(text, line=True)}" in screen.card.splitlines()
            assert all(
                show_invisible(part, line=True) in "".join(page) for part in text.split("\n")
            )
            assert not any(row.lstrip(" │").startswith("Why:") for row in page)
            await pilot.press("down")
        assert screen.app.is_running


async def test_the_screen_attends_as_long_as_it_is_there():
    """Ours: the host knows whether anybody can be asked; an event closes the screen like a key."""
    host, end = WaitingHost(make_interaction("q1")), asyncio.Event()

    class Showing(TerminalApprover):
        async def run_async(self, **_):
            return await super().run_async(headless=True, size=(80, 24))

        def on_ready(self):
            attending.append(list(host.attending))
            end.set()

    attending = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("isthmus.terminal.approver.app.TerminalApprover", Showing)
        await approve(host, end=end)

    assert [[("terminal", "local_ui")]] == attending
    assert [] == host.attending


async def test_a_question_is_taken_given_back_and_taken_over():
    """Ours: by the name of whoever has it; until then no key answers it."""
    host = WaitingHost(make_interaction("q1", CallAsked(tool=TOOL, arguments={"path": "/a"})))
    screen = Screen(host)
    async with screen.run() as pilot:
        await screen.press(pilot, "t")
        assert "You have taken this" in screen.card
        assert "terminal" == host.taken["q1"].by
        await screen.press(pilot, "t")
        assert {} == host.taken
        await host.take_question("q1", QuestionTaker("console (ada)", "a"))
        await screen.press(pilot, "a")
        assert "console (ada) has taken this" in screen.told
        assert "Taken by console (ada); t takes it over." in screen.card
        await screen.press(pilot, "t")
        assert "Taken over from console (ada)." == screen.told
        await screen.press(pilot, "a")
        assert "allow" == host.decided["q1"].verdict


async def test_a_terminal_gives_back_all_that_it_has_taken():
    """Ours: when it is closed."""
    host = WaitingHost(make_interaction("q1", CallAsked(tool=TOOL, arguments={"path": "/a"})))
    await host.take_question("q1", QuestionTaker("terminal", "here"))
    await TerminalTaker(host, QuestionTaker("terminal", "there")).free_all()
    assert ["q1"] == list(host.taken)
    await TerminalTaker(host, QuestionTaker("terminal", "here")).free_all()
    assert {} == host.taken
