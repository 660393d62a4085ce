"""The plain prompt, on a real terminal without a screen, and where there is none."""

import asyncio
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import UNSET

from isthmus.host.model.interaction import CallAsked, FormAsked
from isthmus.terminal.prompt.prompt import TerminalPrompt, run_prompt
from isthmus.terminal.prompt.tty import NoTerminal, Tty
from isthmus.wire import ElicitParams, Tool
from support.host.waiting_host import WaitingHost, make_interaction

PROGRAM = str(Path(__file__).parents[1] / "support" / "terminal" / "prompt_program.py")
FORM = FormAsked(
    params=ElicitParams(
        message="Which row?",
        requested_schema={"type": "object", "properties": {"row": {"type": "integer"}}},
    )
)


class Here(Tty):
    """A terminal that this process was not started from, but may use."""

    def foreground(self, fd=None):
        """Nobody else is there."""
        return True


class Person:
    """Somebody at a terminal who answers each prompt with the next of some lines.

    Args:
        *lines: what they type; None ends the input.
        thinks: seconds they look at a prompt, for the first ones; a second at all others.
    """

    def __init__(self, *lines, thinks=(), quiet=0.02):
        self.lines = list(lines)
        self.begun = ""
        self.thinks = list(thinks)
        self.asked = asyncio.Event()
        self.at = 0.0
        self.seen = ""
        self.master, self.slave = pty.openpty()
        self.prompt = TerminalPrompt(
            lambda: Here(os.ttyname(self.slave)),
            clock=lambda: self.at,
            now=lambda: 5000.0,
            quiet=quiet,
        )

    def close(self):
        """Go away."""
        os.close(self.master)
        os.close(self.slave)

    def look(self):
        """Read what is there, and type where something is asked."""
        self.seen += os.read(self.master, 65_536).decode().replace("\r\n", "\n")
        if "May the" in self.seen:
            os.write(self.master, self.begun.encode())
            self.begun = ""
        if not self.seen.endswith(("] ", ": ", ") ")):
            return
        self.asked.set()
        if self.lines:
            self.at += self.thinks.pop(0) if self.thinks else 1.0
            line = self.lines.pop(0)
            os.write(self.master, b"\x04" if line is None else f"{line}\n".encode())

    async def answers(self, question):
        """What comes of a question."""
        loop = asyncio.get_running_loop()
        loop.add_reader(self.master, self.look)
        try:
            return await self.prompt.offer(question)
        finally:
            loop.remove_reader(self.master)


@pytest.fixture
def person():
    """Makes people, and sends them home."""
    people = []

    def make(*lines, **more):
        people.append(Person(*lines, **more))
        return people[-1]

    yield make
    for one in people:
        one.close()


@pytest.mark.covers("hostterminal.prompt.answers")
@pytest.mark.parametrize(
    ("line", "verdict"), [("y", "allow"), ("YES", "allow"), ("n", "deny"), (None, "deny")]
)
async def test_a_line_answers(person, line, verdict):
    """Ours: yes, no, and the end of input, which is no."""
    somebody = person(line)
    said = await somebody.answers(make_interaction("q1"))

    assert (verdict, "prompt", UNSET) == (said.verdict, said.by, said.edited)
    assert "May the tool delete of files be called?" in somebody.seen
    assert '  |   "path": "/tmp/a"' in somebody.seen


async def test_the_question_is_repeated_below_a_long_card(person):
    """Ours: whoever fills the screen does not write what one sees last."""
    somebody = person("n")
    long = CallAsked(tool=Tool(name="delete", input_schema={}), arguments={"x": ["y"] * 50})
    await somebody.answers(make_interaction("q1", payload=long))

    assert 2 == somebody.seen.count("May the tool delete of files be called?")


async def test_arguments_are_repeated_below_a_long_definition(person):
    """Ours: what one decides about is what one sees last, however much a server says of its tool."""
    somebody = person("n")
    schema = {"type": "object", "properties": {f"p{n}": {} for n in range(30)}}
    long = CallAsked(tool=Tool(name="delete", input_schema=schema), arguments={"path": "/a"})
    await somebody.answers(make_interaction("q1", payload=long))

    assert 2 == somebody.seen.count('  |   "path": "/a"')


async def test_a_line_that_is_no_answer_is_asked_again_and_why_explains(person):
    """Ours: nothing but an answer decides."""
    somebody = person("", "perhaps", "?", "c", "n")

    assert "deny" == (await somebody.answers(make_interaction("q1"))).verdict
    assert 3 == somebody.seen.count("That is not one of the answers.")
    assert "matching rule: writes (user): ask" in somebody.seen


@pytest.mark.covers("hostterminal.prompt.high-risk")
async def test_high_risk_takes_the_whole_word(person):
    """Ours: one letter does not allow what may do harm."""
    somebody = person("y", "s", "y", "yes")
    said = await somebody.answers(make_interaction("q1", risk="high"))

    assert ("allow", "once") == (said.verdict, said.remember)


@pytest.mark.covers("hostterminal.prompt.too-quick")
async def test_a_line_that_was_typed_too_early_is_no_answer(person):
    """Ours: who typed before the question could be read did not answer it."""
    somebody = person("y", "n", "y", thinks=(0.1, 0.3))
    said = await somebody.answers(make_interaction("q1"))

    assert "That was too quick: read the question first." in somebody.seen
    assert "allow" == said.verdict


async def test_a_scope_is_chosen_by_number(person):
    """Ours: the same scopes as on the full screen, with their times."""
    somebody = person("r", "", "r", "2")
    said = await somebody.answers(make_interaction("q1", remember=("once", "arguments", "until")))

    assert ("until", 8600.0) == (said.remember, said.until)
    assert "1. these exact arguments" in somebody.seen


async def test_arguments_are_edited_in_the_editor(person, monkeypatch, tmp_path):
    """Ours: the editor gets the terminal, what is no JSON is kept, what is JSON is shown again."""
    script = tmp_path / "editor"
    script.write_text(
        f"#!{sys.executable}\nimport sys, pathlib\nfile = pathlib.Path(sys.argv[1])\n"
        "text = file.read_text()\n"
        "file.write_text('{' if 'tmp' in text else '{\"path\": 1}')\n"
    )
    script.chmod(0o700)
    monkeypatch.setenv("VISUAL", str(script))
    somebody = person("e", "y", "e", "y")
    said = await somebody.answers(make_interaction("q1"))

    assert {"path": 1} == said.edited
    assert "this is no JSON" in somebody.seen
    assert "your changes" in somebody.seen


@pytest.mark.covers("hostterminal.prompt.forms")
async def test_a_form_is_filled_in_line_by_line(person):
    """Spec: three answers: with content, no, and turning away."""
    question = make_interaction("q1", FORM, action="elicit.form")
    said = await person("y", "x", "7", "y").answers(question)

    assert ("allow", {"row": 7}) == (said.verdict, said.edited)
    assert "deny" == (await person("n").answers(question)).verdict
    assert "cancel" == (await person("c").answers(question)).verdict
    assert "cancel" == (await person("y", None).answers(question)).verdict


async def test_a_late_answer_is_named_as_late(person):
    """Ours: a question that somebody else has answered does not stay on the terminal."""
    somebody = person()
    asking = asyncio.create_task(somebody.answers(make_interaction("q1")))
    await somebody.asked.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    somebody.look()

    assert "This question is closed" in somebody.seen
    assert (
        "allow" == (await asyncio.create_task(person("y").answers(make_interaction("q2")))).verdict
    )


@pytest.mark.covers("hostterminal.prompt.nobody")
async def test_without_a_terminal_the_answer_is_no():
    """Ours: nobody can be asked, so nobody has said yes."""
    prompt = TerminalPrompt(lambda: Tty("/nowhere/tty"))

    said = await prompt.offer(make_interaction("q1"))
    assert ("deny", "there is no terminal to ask at") == (said.verdict, said.reason[:30])
    assert (
        "cancel" == (await prompt.offer(make_interaction("q2", FORM, action="elicit.form"))).verdict
    )
    assert not prompt.interrupt()


def test_a_terminal_needs_a_path():
    """Ours: what is missing is named."""
    with pytest.raises(NoTerminal, match="/nowhere/tty"):
        Tty("/nowhere/tty")


class Process:
    """A process with a terminal of its own, which asks one question.

    Its standard streams are pipes that belong to somebody else.
    """

    def __init__(self, *words):
        self.words = words
        self.seen = ""

    def __enter__(self):
        self.master, self.slave = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, PROGRAM, os.ttyname(self.slave), *self.words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            start_new_session=True,
            text=True,
        )
        return self

    def __exit__(self, *_error):
        if self.master is not None:
            os.close(self.master)
        os.close(self.slave)
        self.process.kill()
        self.process.communicate()

    def hang_up(self):
        """Close the terminal's window."""
        os.close(self.master)
        self.master = None

    def asks(self):
        """Wait until the question stands there."""
        while "? why]" not in self.seen:
            self.seen += os.read(self.master, 65_536).decode()

    def type(self, text):
        """Press keys."""
        os.write(self.master, text.encode())

    def end(self):
        """The decision that it printed."""
        out, _ = self.process.communicate(timeout=15)
        return json.loads(out)


@pytest.mark.covers("hostterminal.guard.silence")
async def test_a_line_that_was_begun_before_the_prompt_is_no_part_of_the_answer(person):
    """Ours: it is asked once nobody types; what was typed until then was meant for something else."""
    somebody = person("n", quiet=1.0)
    somebody.begun = "happ"
    said = await somebody.answers(make_interaction("q1"))

    assert "deny" == said.verdict
    assert "That is not one of the answers." not in somebody.seen


@pytest.mark.covers("hostterminal.guard.silence")
@pytest.mark.parametrize("pasted", ["\x1b[200~y\x1b[201~", "y\ny"], ids=["marked", "two lines"])
async def test_a_paste_at_the_prompt_decides_nothing(person, pasted):
    """Ours: a terminal marks what is pasted, and nobody types two lines at once."""
    somebody = person(pasted, "n")
    said = await somebody.answers(make_interaction("q1"))

    assert "deny" == said.verdict
    assert "That was pasted: only typed keys answer." in somebody.seen


@pytest.mark.covers("hostterminal.prompt.streams")
def test_standard_streams_are_left_alone():
    """Ours: they may be those of a server or of a program; the terminal is opened by itself."""
    with Process("patient") as process:
        process.asks()
        process.type("y\n")

        assert {"verdict": "allow", "by": "prompt"}.items() <= process.end().items()


@pytest.mark.covers("hostterminal.prompt.interrupt")
def test_control_c_is_no():
    """Ours: it answers the question; the host goes on."""
    with Process() as process:
        process.asks()
        process.type("\x03")

        assert "deny" == process.end()["verdict"]


@pytest.mark.covers("hostterminal.prompt.hang-up")
def test_a_terminal_that_is_hung_up_says_no():
    """Ours: who closes the window has not said yes."""
    with Process() as process:
        process.asks()
        process.hang_up()

        assert "deny" == process.end()["verdict"]


@pytest.mark.covers("hostterminal.prompt.background")
def test_in_the_background_the_answer_is_no():
    """Ours: a process that would be stopped for reading does not read."""
    with Process("background") as process:
        said = process.end()

    assert "deny" == said["verdict"]
    assert "in the background" in said["reason"]


@pytest.mark.covers("hostterminal.race.late")
async def test_a_hosts_questions_come_one_after_the_other(person):
    """Ours: what waits and what comes is asked; what others have answered is taken back."""
    host = WaitingHost(make_interaction("q1"))
    somebody = person()
    loop = asyncio.get_running_loop()
    loop.add_reader(somebody.master, somebody.look)
    prompting_task = asyncio.create_task(run_prompt(host, somebody.prompt))
    await somebody.asked.wait()
    host.ask(make_interaction("q2", object="other"))
    somebody.asked.clear()
    await host.over("q1")
    await somebody.asked.wait()
    somebody.at += 1
    os.write(somebody.master, b"y\n")
    told = host.events()
    await anext(told)
    assert [("prompt", "local_ui")] == host.attending
    host.happened.close()
    await prompting_task
    loop.remove_reader(somebody.master)

    assert ("deadline", "prompt") == tuple(host.decided[id].by for id in ("q1", "q2"))
    assert "This question is closed" in somebody.seen
    assert [] == host.attending
