"""The approver at a plain prompt: questions line by line, with no full screen.

Standard input and output may be a server's or a program's own: only the terminal itself is used.
Where nobody can be asked there, the answer is no.
"""

import asyncio
import os
import time
from collections.abc import Callable
from typing import Any

from msgspec import UNSET, UnsetType

from isthmus.cards.cards import explain_trace, list_editable, make_card
from isthmus.cards.choices import GrantChoice, list_grant_choices
from isthmus.cards.drafts import Draft, read_draft, to_editor_json
from isthmus.cards.lines import join_lines, list_arguments
from isthmus.core.answers import Accepted, Declined
from isthmus.core.encoding import is_same_json
from isthmus.core.text import show_invisible
from isthmus.host.model.events import QuestionAnswered, QuestionAsked, QuestionTaken
from isthmus.host.model.interaction import (
    CallAsked,
    Decision,
    FormAsked,
    Interaction,
    QuestionTaker,
    Verdict,
)
from isthmus.host.model.trace import Assurance
from isthmus.host.remote.view import HostView
from isthmus.terminal.answer_keys import QUIET_S, KeyGuard
from isthmus.terminal.editing import edit_in_editor
from isthmus.terminal.prompt.forms import ask_form
from isthmus.terminal.prompt.tty import NoTerminal, Tty

RULE_LINE = "-" * 60

PASTE_MARK = "\x1b[200~"  # a terminal sends it before what is pasted

# below a longer card, its question and short arguments are repeated
LONG_CARD_LINES = 30


class TerminalPrompt:
    """An approver at the terminal that this process was started from.

    Args:
        open: opens the terminal.
        clock: seconds that only go forward.
        now: seconds since the epoch.
        quiet: seconds in which nobody types before an answer is taken.
    """

    name = "prompt"
    assurance: Assurance = "local_ui"

    def __init__(
        self,
        open: Callable[[], Tty] = Tty,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        quiet: float = QUIET_S,
    ) -> None:
        self._open = open
        self._quiet = quiet
        self._clock = clock
        self._now = now
        self._one = asyncio.Lock()
        self._asking: PromptedQuestion | None = None

    async def offer(self, interaction: Interaction) -> Decision:
        """Ask, one question after the other."""
        async with self._one:
            try:
                tty = self._open()
            except NoTerminal as error:
                return self._nobody(interaction, str(error))
            asking = self._asking = PromptedQuestion(
                interaction, tty, KeyGuard(self._clock), self._now, self._quiet
            )
            try:
                return await asking.decision()
            except NoTerminal as error:
                return self._nobody(interaction, str(error))
            except asyncio.CancelledError:
                asking.withdrawn()
                raise
            finally:
                self._asking = None
                tty.close()

    def interrupt(self) -> bool:
        """Control-C: no to the question that is being asked; False where there is none."""
        if self._asking is None:
            return False
        self._asking.interrupt()
        return True

    def tell_taken(self, id: str, by: str) -> None:
        """Say that somebody has taken the question that is being asked, to answer it elsewhere."""
        if self._asking is not None:
            self._asking.tell_taken(id, by)

    @property
    def asks(self) -> bool:
        """Whether a question stands at the terminal just now."""
        return self._asking is not None

    def _nobody(self, interaction: Interaction, reason: str) -> Decision:
        return Decision(verdict=describe_silence(interaction), by=self.name, reason=reason)


async def run_prompt(view: HostView, prompt: TerminalPrompt) -> None:
    """Put a host's questions to a prompt, until the host ends.

    Args:
        view: the host; it knows that somebody attends as long as this lasts.
        prompt: where they are asked, one after the other.
    """
    asked: dict[str, asyncio.Task[None]] = {}

    async def ask(interaction: Interaction) -> None:
        decision = await prompt.offer(interaction)
        asked.pop(interaction.id, None)  # what is heard of it now is our own answer
        await view.decide(interaction.id, decision)

    def put(interaction: Interaction) -> None:
        if interaction.id not in asked:
            asked[interaction.id] = asyncio.create_task(ask(interaction))

    async with view.attend(prompt.name, prompt.assurance):
        events = view.events()
        for interaction in view.pending():
            put(interaction)
        try:
            async for event in events:
                match event:
                    case QuestionAsked(interaction=interaction):
                        put(interaction)
                    case QuestionAnswered(id=id) if id in asked:
                        asked.pop(id).cancel()
                    case QuestionTaken(id=id, taker=QuestionTaker(by=by)):
                        prompt.tell_taken(id, by)
        finally:
            for task in asked.values():
                task.cancel()
            await asyncio.gather(*asked.values(), return_exceptions=True)


def describe_silence(interaction: Interaction) -> Verdict:
    """The line that says what no answer means."""
    return "cancel" if interaction.attempt.action.startswith("elicit.") else "deny"


class PromptedQuestion:
    """A question at the prompt, until there is an answer.

    Args:
        interaction: the question.
        tty: where it is asked.
        guard: says whether it has been there long enough.
        now: seconds since the epoch.
        quiet: seconds in which nobody types before an answer is taken.
    """

    def __init__(
        self,
        interaction: Interaction,
        tty: Tty,
        guard: KeyGuard,
        now: Callable[[], float],
        quiet: float,
    ) -> None:
        self._interaction = interaction
        self._tty = tty
        self._guard = guard
        self._now = now
        self._quiet = quiet
        self._draft: Draft | None = None
        self._high = interaction.risk == "high"
        self._elicits = interaction.attempt.action.startswith("elicit.")
        self._kept = list_grant_choices(interaction)

    # As fill() needs a terminal

    def say(self, text: str) -> None:
        """Show a text of somebody else."""
        self._tty.say(show_invisible(text))

    async def ask(self, prompt: str) -> str | None:
        """The line that is typed after a prompt; None where there is none."""
        self._tty.say(show_invisible(prompt), end="")
        text = await self._tty.line()
        if text is None:
            self._tty.say("")
        return text

    def interrupt(self) -> None:
        """Wait for no line any more."""
        self._tty.interrupt()

    def withdrawn(self) -> None:
        """Note that somebody else has answered, or the time is over."""
        try:
            self._tty.say(
                "\n(This question is closed: it was answered elsewhere, or its time ran out.)"
            )
        except NoTerminal:
            return

    def tell_taken(self, id: str, by: str) -> None:
        """Note that somebody is about to answer a question elsewhere; the first answer counts."""
        if id == self._interaction.id:
            try:
                self.say(f"\n({show_invisible(by, line=True)} has taken this question.)")
            except NoTerminal:
                return

    async def decision(self) -> Decision:
        """Show the card, and ask until there is an answer.

        Raises:
            NoTerminal: nobody can be asked.
        """
        if not self._tty.foreground():
            raise NoTerminal("this process is in the background, or its terminal is gone")
        self._card()
        while True:
            text = await self._ask_alone()
            if text is None:
                return self._decide(describe_silence(self._interaction), reason="end of input")
            if not self._guard.is_ready():
                self.say("That was too quick: read the question first.")
            elif PASTE_MARK in text or self._tty.has_more():
                self.say("That was pasted: only typed keys answer.")
            elif (found := await self._answer(text.strip())) is not None:
                return found

    async def _ask_alone(self) -> str | None:
        """Ask once nobody types any more: an unfinished line was meant for something else."""
        if not await self._tty.wait_silent(self._quiet):
            return None
        self._guard.note_change()
        self._tty.mark_pastes(on=True)
        try:
            return await self.ask(self._prompt())
        finally:
            self._tty.mark_pastes(on=False)

    def _card(self) -> None:
        draft = self._draft
        found = make_card(self._interaction, UNSET if draft is None else draft.value)
        self.say(f"{RULE_LINE}\n{found.text()}")
        if (
            len(found.lines) > LONG_CARD_LINES
        ):  # its beginning is out of sight, and the end is theirs to write
            self.say(f"{RULE_LINE}\n{found.title}")
            payload = self._interaction.payload
            if isinstance(payload, CallAsked) and draft is None:
                wanted = [*list_arguments(payload.arguments)]
                self.say(join_lines(wanted if len(wanted) <= LONG_CARD_LINES else wanted[:0]))
        if self._high:
            self.say("  ! high risk: only the whole word yes allows this")

    def _prompt(self) -> str:
        yes = "yes" if self._high else "y"
        action = self._interaction.attempt.action
        # an agreement to run a server, or to connect to it, is kept until that is another one
        lasting = "go on" if self._elicits else "agree" if action.startswith("server.") else "once"
        words = [f"{yes} {lasting}", "n no"]
        words += ["c cancel"] if self._elicits else []
        words += ["s session"] if any(one.remember == "session" for one in self._kept) else []
        words += ["r remember"] if self._kept else []
        words += ["e edit"] if list_editable(self._interaction) is not UNSET else []
        return f"[{', '.join([*words, '? why'])}] "

    async def _answer(self, text: str) -> Decision | None:
        """The decision that a line means; None where it decides nothing."""
        word = text.lower()
        if word == "yes" or (word == "y" and not self._high):
            return await self._yes(GrantChoice("once", "once"))
        if word in {"n", "no", "d"}:
            return self._decide("deny")
        if word == "c" and self._elicits:
            return self._decide("cancel")
        if word in {"s", "r"}:
            return await self._ask_lifetime(word)
        if word == "e" and list_editable(self._interaction) is not UNSET:
            await self._edit()
        elif word == "?":
            self.say(join_lines(explain_trace(self._interaction.trace)))
        else:
            self.say("That is not one of the answers.")
        return None

    async def _ask_lifetime(self, word: str) -> Decision | None:
        """A yes that holds for longer."""
        if word == "s":
            choice = next((one for one in self._kept if one.remember == "session"), None)
        else:
            choice = await self._choose()
        if choice is None:
            self.say("Nothing was remembered.")
            return None
        if self._high or choice.remember == "tool_always":
            text = await self.ask(f"Allow it for {choice.label}? Type the whole word yes: ")
            if (text or "").strip().lower() != "yes":
                return None
        return await self._yes(choice)

    async def _choose(self) -> GrantChoice | None:
        for number, one in enumerate(self._kept, 1):
            self.say(f"  {number}. {one.label}")
        text = (await self.ask("Remember it for which scope? (empty for none) ") or "").strip()
        chosen = int(text) if text.isdecimal() and len(text) < 4 else 0
        return self._kept[chosen - 1] if 0 < chosen <= len(self._kept) else None

    async def _yes(self, choice: GrantChoice) -> Decision | None:
        payload = self._interaction.payload
        if isinstance(payload, FormAsked):
            found = await ask_form(payload.params.requested_schema or {}, self)
            if isinstance(found, Accepted):
                return self._decide("allow", edited=found.value)
            return self._decide("deny" if isinstance(found, Declined) else "cancel")
        if self._draft is not None and self._draft.error:
            self.say(f"Your edit cannot be sent yet ({self._draft.error}): e opens it.")
            return None
        edited = UNSET if self._draft is None else self._draft.value
        return self._decide("allow", choice, edited=edited)

    async def _edit(self) -> None:
        before = list_editable(self._interaction)
        draft = self._draft or Draft(to_editor_json(before))
        try:
            text = await edit_in_editor(draft.text, os.environ, self._tty.fd)
        except OSError as error:
            self.say(f"Nothing was changed: {error}")
            return
        found = read_draft(text, before)
        self._draft = None if not found.error and is_same_json(found.value, before) else found
        self._card()
        if found.error:
            self.say(f"  ! {found.error}; e opens your edit again")

    def _decide(
        self,
        verdict: Verdict,
        choice: GrantChoice | None = None,
        *,
        edited: Any | UnsetType = UNSET,
        reason: str = "",
    ) -> Decision:
        seconds = None if choice is None else choice.seconds
        return Decision(
            verdict=verdict,
            edited=edited,
            remember="once" if choice is None else choice.remember,
            until=None if seconds is None else self._now() + seconds,
            by="prompt",
            assurance="local_ui",
            reason=reason,
        )
