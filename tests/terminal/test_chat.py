"""The conversation on the full screen, driven by keys, with a model that plays a script."""

import asyncio

import msgspec
import pytest
from textual.events import Key, Paste

from isthmus import Context, Server
from isthmus.core.sampling import find_unbalanced_tools
from isthmus.host.chat.conversation import Conversation
from isthmus.host.host import Host
from isthmus.host.model.interaction import FormAsked, SamplingAsked, SamplingWritten
from isthmus.host.providers.scripted import Scripted, Slow, join_prompt
from isthmus.terminal.approver.forms import FormDialog
from isthmus.terminal.approver.questions import QuestionsPane, TerminalSurface
from isthmus.terminal.approver.widgets import Detail
from isthmus.terminal.chat.app import ChatApp
from isthmus.terminal.chat.session import ChatModel, ChatSession
from isthmus.terminal.chat.widgets import ChatLine, Suggestions, Transcript
from isthmus.wire import (
    CreateMessageParams,
    CreateMessageResult,
    ElicitParams,
    SamplingMessage,
    TextContent,
    ToolUseContent,
)
from support.host.plain_host import PlainHost
from support.host.waiting_host import make_interaction


class Seat(msgspec.Struct):
    """Where to sit."""

    row: int


def trips():
    """A server with everything that a conversation shows."""
    server = Server("trips")

    @server.tool
    def book(day: str) -> str:
        """Book a day."""
        return f"booked {day}\x1b[2J\u202e"

    @server.tool
    async def pack(ctx: Context) -> str:
        """Pack, and tell how far it is."""
        await ctx.progress(1, 4, "socks")
        await asyncio.Event().wait()
        return "packed"

    @server.prompt(completes={"city": lambda: ["Paris", "Parma", "New York"]})
    def plan(city: str, days: str = "3") -> str:
        """Plan a trip."""
        return f"Plan {days} days in {city}."

    @server.resource("trips://tickets")
    def tickets() -> str:
        """The tickets."""
        return "two tickets"

    return server


class Screen:
    """Somebody at a terminal with a conversation."""

    def __init__(self, host, provider):
        self.host = host
        self.provider = provider
        self.at = 100.0
        talk = Conversation(host, provider, "small")
        voices = {
            "small": ChatModel(provider, "small"),
            "large": ChatModel(Scripted("LARGE"), "large"),
        }
        self.session = ChatSession(host, talk, voices, "small")
        self.app = ChatApp(self.session, TerminalSurface(by="chat", clock=lambda: self.at))
        self.pilot = None

    async def press(self, *keys):
        """Press keys, each once the screen has settled."""
        for key in keys:
            await self.pilot.press(key)
        await self.pilot.pause()

    async def type(self, text):
        """Type a text."""
        self.line.value = text
        self.line.cursor_position = len(text)
        await self.settled()

    async def say(self, text):
        """Type a line, and enter it."""
        await self.type(text)
        await self.press("enter")

    async def settled(self, *but):
        """Wait until the screen does nothing more by itself."""
        await self.pilot.pause()
        leave = {"listening", *but}
        busy = [w for w in self.app.workers if w.name not in leave]
        if busy:
            await self.app.workers.wait_for_complete(busy)
        await self.pilot.pause()

    async def until(self, fits):
        """Wait until something is on the screen."""
        async with asyncio.timeout(5):
            while not fits():
                await self.pilot.pause()

    @property
    def line(self):
        return self.app.query_one(ChatLine)

    @property
    def text(self):
        return self.app.query_one(Transcript).text

    @property
    def rows(self):
        return self.app.query_one(Suggestions).rows

    @property
    def told(self):
        return str(self.app.query_one("#told").content)

    @property
    def card(self):
        """The card that is shown."""
        return self.app.query_one("#detail", Detail).text

    @property
    def asking(self):
        return self.app.query_one(QuestionsPane).display


class Screens:
    """Makes one."""

    def __init__(self, script):
        self._host = PlainHost(trips=trips())
        self.screen = Screen(self._host, Scripted(script))

    async def __aenter__(self):
        await self._host.__aenter__()
        self._shown = self.screen.app.run_test(size=(80, 24))
        self.screen.pilot = await self._shown.__aenter__()
        await self.screen.settled()
        return self.screen

    async def __aexit__(self, *error):
        await self._shown.__aexit__(*error)
        await self._host.__aexit__(*error)


def use(name, **arguments):
    """The model wants a tool called."""
    return ToolUseContent(id="1", name=name, input=arguments)


@pytest.mark.covers("hostchat.face.shown-before")
async def test_a_call_is_shown_with_its_arguments_and_asked_before_it_is_made():
    """Ours: the card is in the conversation; one key allows, and typing goes on where it was."""
    async with Screens([use("trips__book", day="May 1"), "It is booked."]) as screen:
        screen.host.consents.add("trips__book")
        await screen.say("book May 1")
        await screen.until(lambda: screen.asking)

        assert '* the model wants to call book of trips\n  | {\n  |   "day": "May 1"\n  | }' in (
            screen.text
        )
        assert "It is booked." not in screen.text
        await screen.press("a")
        assert "This question has just appeared" in screen.told
        screen.at += 1
        await screen.press("a")
        await screen.settled()

        assert "> book May 1" in screen.text
        assert "* trips__book is done\n  | booked May 1" in screen.text
        assert "It is booked." in screen.text
        assert "\x1b" not in screen.text
        assert "\u202e" not in screen.text
        assert not screen.asking
        assert screen.line.has_focus


@pytest.mark.covers("hostchat.face.deny")
async def test_a_denial_is_told_to_the_model_and_the_conversation_goes_on():
    """Ours: no is a result."""
    async with Screens([use("trips__book", day="May 1"), "As you like."]) as screen:
        screen.host.consents.add("trips__book")
        await screen.say("book")
        await screen.until(lambda: screen.asking)
        screen.at += 1
        await screen.press("d")
        await screen.settled()

        assert "* trips__book failed (Denied)" in screen.text
        assert "As you like." in screen.text
        assert "was not allowed" in join_prompt(screen.provider.asked[1])


@pytest.mark.covers("hostchat.face.commands")
async def test_commands_and_prompts_are_completed_while_one_types():
    """Ours: a slash shows them, the tab key takes one, and what goes into a blank is the server's to say."""
    async with Screens(["Bon voyage."]) as screen:
        await screen.type("/")
        assert "/help   list the commands" == screen.rows[0]
        await screen.type("/pl")
        assert ["/trips__plan   Plan a trip."] == screen.rows
        await screen.press("tab")
        assert "/trips__plan " == screen.line.value
        await screen.settled()
        assert ["city=   (needed)", "days="] == screen.rows
        await screen.type("/trips__plan city=Par")
        assert ["Paris", "Parma"] == screen.rows
        await screen.press("down", "tab")
        assert "/trips__plan city=Parma " == screen.line.value
        await screen.press("enter")
        await screen.settled()

        assert "* the prompt, as user\n  | Plan 3 days in Parma." in screen.text
        assert "Bon voyage." in screen.text


@pytest.mark.covers("hostchat.face.picker")
async def test_an_at_sign_picks_a_resource_that_goes_along():
    """Ours: it filters as one types, and what was picked is read and attached when the line is entered."""
    async with Screens(["Two."]) as screen:
        await screen.type("how many @tick")
        assert ["@trips+trips://tickets   tickets"] == screen.rows
        await screen.press("tab", "enter")
        await screen.settled()

        assert "> how many @trips+trips://tickets" in screen.text
        assert "* attached trips://tickets of trips" in screen.text
        assert "two tickets" in join_prompt(screen.provider.asked[0])


async def test_an_address_is_no_resource():
    """Ours: not everything with an @ in it is one."""
    async with Screens(["Fine."]) as screen:
        await screen.say("write to @ada and a@b.example")
        await screen.settled()

        assert "Fine." in screen.text


@pytest.mark.covers("hostchat.face.progress")
async def test_progress_is_a_bar_and_control_c_stops_the_turn():
    """Ours: the first one stops what goes on, the second leaves."""
    async with Screens([use("trips__pack"), "never"]) as screen:
        await screen.say("pack")
        bars = screen.app.query(".progress")
        await screen.until(lambda: bool(bars))

        assert "  [######..................]  25% socks" == str(bars.first().content)
        await screen.press("ctrl+c")
        await screen.settled()
        assert "Stopped." in screen.text
        assert not screen.session.talk.busy
        screen.at += 1
        await screen.press("ctrl+c")
        assert not screen.app.is_running


async def test_a_model_that_writes_can_be_stopped_and_nothing_is_said_meanwhile():
    """Ours: what is typed while an answer comes is kept, not sent."""
    async with Screens([Slow("never", float("inf"))]) as screen:
        await screen.say("hello")
        await screen.until(lambda: screen.session.talk.busy)
        await screen.pilot.pause()
        screen.line.value = "more"
        await screen.press("enter")

        assert ("more", "The last answer is still running: ^C stops it.") == (
            screen.line.value,
            screen.told,
        )
        await screen.press("ctrl+c")
        await screen.settled()
        assert "Stopped." in screen.text


@pytest.mark.covers("hostchat.face.forms")
async def test_a_form_is_filled_in_inside_the_conversation():
    """Ours: a server's question has its card here, with fields."""
    form = FormAsked(
        params=ElicitParams(
            message="Which seat?",
            requested_schema={
                "type": "object",
                "properties": {"row": {"type": "integer"}},
                "required": ["row"],
            },
        )
    )
    async with Screens([]) as screen:
        screen.line.value = "half a sen"
        screen.host.view.ask(make_interaction("q1", form, action="elicit.form"))
        await screen.until(lambda: screen.asking)
        await screen.press("tab")
        screen.at += 1
        await screen.press("a")
        assert isinstance(screen.app.screen, FormDialog)
        screen.at += 1
        await screen.press("1", "2", "ctrl+s")
        await screen.settled()

        assert {"row": 12} == screen.host.view.decided["q1"].edited
        assert "half a sen" == screen.line.value
        assert screen.line.has_focus


SENTENCE = "mango a banana a lot, A yes; d? /s r1"


def keys(text):
    """A text, as the keys that it takes."""
    named = {" ": "space", ",": "comma", ";": "semicolon", "?": "question_mark", "/": "slash"}
    return [named.get(letter, letter) for letter in text]


@pytest.mark.covers("hostchat.face.writing")
@pytest.mark.parametrize("before", [0, 1, 7, len(SENTENCE)])
async def test_a_question_that_comes_while_one_writes_gets_none_of_the_keys(before):
    """Ours: the line has the whole sentence, and only the tab key goes to the question."""
    async with Screens([]) as screen:
        for number, key in enumerate([*keys(SENTENCE), "end"]):
            if number == before:
                screen.host.view.ask(make_interaction("q1"))
                await screen.until(lambda: screen.asking)
            screen.at += 0.2
            await screen.press(key)

        assert ({}, SENTENCE) == (screen.host.view.decided, screen.line.value)
        assert "Keys still go to your line" in str(screen.app.query_one("#keys").content)
        await screen.press("tab")
        screen.at += 1
        await screen.press("a")
        await screen.settled()
        assert "allow" == screen.host.view.decided["q1"].verdict
        assert SENTENCE == screen.line.value
        assert screen.line.has_focus


@pytest.mark.covers("hostchat.face.writing")
async def test_keys_typed_faster_than_the_screen_are_not_lost():
    """Ours: keys that came in one piece go to the line, and those after Enter to the next one."""
    async with Screens(["Hi."]) as screen:
        screen.host.view.ask(make_interaction("q1"))
        await screen.until(lambda: screen.asking)
        screen.at += 1
        for key in (*keys("hello a card"), "enter", *keys("mad")):
            event = Key(key, " " if key == "space" else key if len(key) == 1 else None)
            screen.app.post_message(event)
        await screen.settled()

        assert ({}, "mad") == (screen.host.view.decided, screen.line.value)
        assert "> hello a card" in screen.text


@pytest.mark.covers("hostchat.face.writing")
async def test_keys_in_one_piece_do_what_they_do_one_by_one():
    """Ours: a backspace before Enter deletes from the line that is entered, not from the next one."""
    async with Screens(["Hi."]) as screen:
        for key in (*keys("hellox"), "backspace", "enter", *keys("mad"), "left", "x"):
            screen.app.post_message(Key(key, key if len(key) == 1 else None))
        await screen.settled()

        assert "maxd" == screen.line.value
        assert "> hello\n" in f"{screen.text}\n"


async def test_text_pasted_beside_the_line_goes_into_it():
    """Ours: also where a question is looked at, which it does not answer."""
    async with Screens([]) as screen:
        screen.host.view.ask(make_interaction("q1"))
        await screen.until(lambda: screen.asking)
        screen.at += 1
        screen.app.post_message(Paste("a\nyes"))
        await screen.settled()

        assert ({}, "a yes") == (screen.host.view.decided, screen.line.value)


@pytest.mark.covers("hostchat.face.sampling")
async def test_the_log_of_a_server_is_read_inside_the_conversation():
    """Ours: the request before and the answer after are cards here, each with its own yes or no."""
    said = SamplingMessage(role="user", content=TextContent(text="Write a poem"))
    params = CreateMessageParams(messages=[said], max_tokens=50)
    wrote = CreateMessageResult(
        role="assistant", content=TextContent(text="Roses"), model="small", stop_reason="endTurn"
    )
    before = SamplingAsked(params=params, model="small", tokens=12, models=("small", "large"))
    after = SamplingWritten(params=params, result=wrote, tokens_in=12, tokens_out=3)
    async with Screens([]) as screen:
        view = screen.host.view
        for id, payload, action, key, text in (
            ("q1", before, "sampling.request", "a", "Write a poem"),
            ("q2", after, "sampling.respond", "d", "Roses"),
        ):
            view.ask(make_interaction(id, payload, action=action))
            await screen.until(lambda text=text: screen.asking and text in screen.card)
            await screen.settled()
            screen.at += 1
            await screen.press(key)
            await screen.settled()

    assert ["allow", "deny"] == [view.decided[id].verdict for id in ("q1", "q2")]


SAID = [
    ("/help", "/servers: list the servers"),
    ("/servers", "-- servers --"),
    ("/tools", "trips__book: Book a day."),
    ("/prompts", "/trips__plan city=… [days=…]: Plan a trip."),
    ("/resources", "@trips+trips://tickets"),
    ("/grants", "none"),
    ("/grants revoke x", "there is no grant x"),
    ("/audit 5", "tool.call files"),
    ("/model", "> small"),
    ("/model large", "> large"),
    ("/model none", "there is no model 'none': small, large"),
    ("/show", "no tool was called yet"),
    ("/clear", "Forgotten."),
    ("/nothing", "there is no command /nothing"),
    ("/trips__plan", "missing arguments: city=…"),
    ("/trips__plan a b c", "'c' is not an argument of it: city, days"),
    ("/servers explode x", "/servers start|stop|restart|enable|disable NAME"),
]


async def test_each_command_says_what_it_found_or_what_is_wrong_with_it():
    """Ours: and none of them ends the conversation."""
    async with Screens([]) as screen:
        for command, shown in SAID:
            before = len(screen.text)
            await screen.say(command)
            await screen.settled()

            assert shown in screen.text[before:], command


async def test_a_list_is_one_part_of_the_conversation():
    """Ours: its lines stand below each other, without a gap between any two."""
    async with Screens([]) as screen:
        await screen.say("/help")
        await screen.settled()
        parts = [str(part.content) for part in screen.app.query_one(Transcript).children]

    assert [True] == ["/servers: " in part for part in parts if "/quit: " in part]


async def test_another_model_answers_from_then_on():
    """Ours: the conversation is the same, with another voice."""
    async with Screens(["small"]) as screen:
        await screen.say("/model large")
        await screen.settled()
        await screen.say("hello")
        await screen.settled()

        assert "LARGE" in screen.text


async def test_earlier_lines_come_back():
    """Ours: up and down, and what was begun is not lost."""
    async with Screens(["a", "b"]) as screen:
        for text in ("one", "two"):
            await screen.say(text)
            await screen.settled()
        await screen.type("thr")
        seen = []
        for key in ("up", "up", "up", "down", "down"):
            await screen.press(key)
            seen.append(screen.line.value)

        assert ["two", "one", "one", "two", "thr"] == seen


async def test_quit_leaves():
    """Ours: a word for those who do not know the keys."""
    async with Screens([]) as screen:
        await screen.say("/quit")
        await screen.pilot.pause()

        assert not screen.app.is_running


async def test_markup_in_what_others_say_is_text():
    """Ours: nobody's words change how the screen looks."""
    async with Screens(["[bold red]boo[/] \x1b[31mred\x1b[0m"]) as screen:
        await screen.say("[link=x]hi[/link]")
        await screen.settled()

        assert "> [link=x]hi[/link]" in screen.text
        assert "[bold red]boo[/] [31mred[0m" in screen.text


@pytest.mark.covers("hostchat.face.stop-takes-questions-back")
async def test_stopping_the_turn_takes_its_questions_off_the_screen():
    """Ours: through a whole host; a form that is open closes, and nothing is sent."""
    server = trips()

    @server.tool
    async def seat(ctx: Context) -> str:
        """Choose a seat."""
        await ctx.elicit("Which seat?", Seat)
        return "never"

    host = Host()
    host.add("trips", server)
    async with host:
        screen = Screen(host, Scripted([use("trips__seat"), use("trips__book", day="x"), "Well."]))
        async with host.view.attend("chat"), screen.app.run_test(size=(80, 24)) as pilot:
            screen.pilot = pilot
            await screen.settled()
            await screen.say("book")
            await screen.until(lambda: screen.asking)
            screen.at += 1
            await screen.press("a")
            await screen.until(lambda: "fill in a form" in screen.card)
            screen.at += 1
            await screen.press("a")
            await screen.until(lambda: isinstance(screen.app.screen, FormDialog))
            screen.at += 10
            await screen.press("ctrl+c")
            await screen.until(lambda: not screen.session.talk.busy)
            await screen.settled()

            assert "Stopped." in screen.text
            assert ([], False) == (host.view.pending(), screen.asking)
            assert not isinstance(screen.app.screen, FormDialog)
            assert None is find_unbalanced_tools(screen.session.talk.messages)
