"""The questions pane: open questions, their cards, and the keys that answer them."""

import secrets
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import UNSET, Struct, UnsetType, field, structs
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.events import Key, Resize
from textual.message import Message
from textual.widgets import Input, OptionList

from isthmus.cards.cards import Card, explain_trace, format_question, list_editable, make_card
from isthmus.cards.choices import GrantChoice, can_allow, list_grant_choices
from isthmus.cards.drafts import Draft, read_draft, to_editor_json
from isthmus.cards.lines import StyledLine, display_name
from isthmus.cards.queue import find_alike, has_words, sort_questions
from isthmus.core.encoding import is_same_json
from isthmus.errors import IsthmusError
from isthmus.host.model.events import QuestionAnswered
from isthmus.host.model.interaction import (
    Decision,
    FormAsked,
    Interaction,
    QuestionTaker,
    Verdict,
)
from isthmus.host.model.trace import Assurance
from isthmus.host.remote.view import HostView
from isthmus.terminal.answer_keys import KeyGuard, list_keys
from isthmus.terminal.approver.dialogs import BatchDialog, GrantDialog, TextDialog
from isthmus.terminal.approver.forms import FormDialog, FormResult
from isthmus.terminal.approver.inbox import Inbox
from isthmus.terminal.approver.takers import TerminalTaker
from isthmus.terminal.approver.widgets import Detail
from isthmus.terminal.editing import Edit

if TYPE_CHECKING:
    from textual.screen import ModalScreen

MAX_ANSWERED_QUESTIONS = 1_000
VERDICT_TEXTS = {"allow": "allowed", "deny": "denied", "cancel": "cancelled"}
TOO_QUICK = "This question has just appeared: read it, then press the key again."
TYPED_AHEAD = "Keys in quick succession are ignored: wait a moment, then press the key again."
NO_QUESTIONS = StyledLine("  No question is open.", "dim")
CALL_HINT = StyledLine(
    "  Programs call tools with isthmus call --host SERVER__TOOL or Host.attach_to().", "dim"
)
NO_SERVERS = StyledLine(
    "  No server is configured. Add one: isthmus servers add NAME -- COMMAND", "dim"
)
PLAIN_DENIAL = Decision(verdict="deny")


class TerminalSurface(Struct, frozen=True, kw_only=True):
    """Facts of this terminal that the host does not know: clock, editor, assurance.

    Attributes:
        by: what it is called in decisions.
        assurance: how sure one can be that a person sits here.
        clock: seconds that only go forward.
        now: seconds since the epoch.
        edit: lets the user change a text; None for their own editor.
        leaving: what becomes of open questions when this terminal is closed.
        holder: which terminal it is, among those of one name.
    """

    by: str = "terminal"
    assurance: Assurance = "local_ui"
    clock: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
    edit: Edit | None = None
    leaving: str = "what waits is denied"
    holder: str = field(default_factory=lambda: secrets.token_hex(8))

    @property
    def taker(self) -> QuestionTaker:
        """The terminal, as it takes questions."""
        return QuestionTaker(self.by, self.holder)


class QuestionsPane(Container):
    """The list of questions beside the card of one of them.

    Args:
        view: the host.
        surface: this terminal.
        guard: says whether a key may answer; its surface tells it of every key.
        edit: lets the user change a text.
    """

    class Status(Message):
        """A message for the bottom of the screen."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Looked(Message):
        """Another question is looked at, or its keys do something else now."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "allow", "allow once"),
        Binding("A", "arm", show=False),
        Binding("y", "confirm", show=False),
        Binding("s", "session", "session"),
        Binding("r", "remember", "remember"),
        Binding("e", "edit", "edit"),
        Binding("u", "undo", show=False),
        Binding("g", "group", "group"),
        Binding("t", "take", "take"),
        Binding("d", "deny", "deny"),
        Binding("c", "cancel", "cancel"),
        Binding("question_mark", "why", "why"),
        Binding("slash", "search", "search"),
        Binding("escape", "all", show=False),
        Binding("space", "page(1)", show=False),
        Binding("backspace", "page(-1)", show=False),
    ]
    BOUND: ClassVar[set[str]] = {one.key for one in BINDINGS if isinstance(one, Binding)}
    KEYS: ClassVar[set[str]] = {"a", "A", "y", "s", "r", "e", "u", "d", "c", "t"}

    def __init__(
        self, view: HostView, surface: TerminalSurface, guard: KeyGuard, edit: Edit
    ) -> None:
        super().__init__(id="questions")
        self._edit = edit
        self._view = view
        self._surface = surface
        self._taker = TerminalTaker(view, surface.taker)
        self.guard = guard
        self._drafts: dict[str, Draft] = {}
        self._fields: dict[str, Mapping[str, Any]] = {}
        self._armed: tuple[str, Decision] | None = None
        self._sent: set[str] = set()
        self._answered: dict[str, Decision] = {}
        self._vanished = ""
        self._words = ""
        self._over: tuple[str, ModalScreen[Any]] | None = None
        self._seen: tuple[str | None, Draft | None, QuestionTaker | None] = (None, None, None)

    def compose(self) -> ComposeResult:
        """The list, the card, and a place to search."""
        yield Inbox(self._surface.now, id="inbox")
        yield Detail(id="detail")
        yield Input(placeholder="search: server, tool, risk", id="search")

    def on_mount(self) -> None:
        """Begin with the list."""
        self.query_one("#search").display = False
        self.reload()
        self.query_one(Inbox).focus()

    # What is shown

    @property
    def chosen(self) -> Interaction | None:
        """The question that is looked at."""
        return self.query_one(Inbox).chosen

    def reload(self) -> None:
        """Show what waits now; what is looked at stays, and where anything moves the guard is up."""
        inbox = self.query_one(Inbox)
        before = inbox.rows
        waiting = sort_questions(self._view.pending())
        ids = {one.id for one in waiting}
        looked_at = self.chosen
        if looked_at is not None and looked_at.id not in ids:
            self._vanished = looked_at.id
        for kept_of in (self._drafts, self._fields):
            for gone in [id for id in kept_of if id not in ids]:
                del kept_of[gone]
        inbox.show([one for one in waiting if has_words(one, self._words)])
        if before != inbox.rows:
            self.guard.note_change()
        self._show()

    def keys(self) -> str:
        """The keys that do something just now."""
        chosen = self.chosen
        if chosen is not None and self._taker.find_other(chosen) is not None:
            return "t take over  ? why  / search"
        several = 0 if chosen is None else len(self._alike(chosen))
        changed = chosen is not None and chosen.id in self._drafts
        return list_keys(chosen, self._surface.assurance, changed=changed, alike=several)

    def _alike(self, chosen: Interaction) -> list[Interaction]:
        """The questions that may be answered together with one; none that is changed or answered."""
        waiting = sort_questions(self._view.pending())
        kept = {*self._sent, *self._drafts}
        free = [one for one in waiting if one.id not in kept and not self._taker.find_other(one)]
        return find_alike(chosen, free)

    def tick(self) -> None:
        """A second has passed."""
        for inbox in self.query(Inbox):  # none where the screen is being closed
            inbox.paint()
        if self._taker.is_due():
            self.run_worker(self._taker.renew(), exit_on_error=False)

    def _show(self) -> None:
        """Show the card of the chosen question, from its top where it is another one."""
        self.post_message(self.Looked())
        chosen = self.chosen
        id = "" if chosen is None else chosen.id
        seen = (id, self._drafts.get(id), self._taker.find(chosen))
        if seen[0] == self._seen[0] and seen[1] is self._seen[1] and seen[2] == self._seen[2]:
            return
        same = seen[0] == self._seen[0]
        self._seen = seen
        self._armed = None
        self.guard.note_change()
        found = self._card(chosen)
        detail = self.query_one(Detail)
        detail.show((StyledLine(found.title, "title"), *found.lines), top=not same)

    def _card(self, chosen: Interaction | None) -> Card:
        if chosen is None:
            return Card(
                "No question",
                (NO_QUESTIONS, CALL_HINT) if self._view.servers() else (NO_QUESTIONS, NO_SERVERS),
            )
        draft = self._drafts.get(chosen.id)
        found = make_card(chosen, UNSET if draft is None else draft.value)
        found = Card(found.title, (*self._taker.list_lines(chosen), *found.lines))
        if draft is not None and draft.error:
            text = f"  ! {draft.error}; e opens your edit again, u undoes it"
            found = Card(found.title, (StyledLine(text, "warn"), *found.lines))
        return found

    def on_resize(self, _event: Resize) -> None:
        """Everything stands elsewhere now."""
        self.guard.note_change()

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Another one is looked at."""
        event.stop()
        self.query_one(Inbox).paint()
        self._show()

    def answered(self, event: QuestionAnswered) -> None:
        """A question is over: say so where it was looked at here, and answered elsewhere."""
        self._answered[event.id] = event.decision
        while len(self._answered) > MAX_ANSWERED_QUESTIONS:
            del self._answered[next(iter(self._answered))]
        looked_at = {self._vanished, self.chosen.id if self.chosen else ""}
        here = event.id in self._sent
        self._sent.discard(event.id)
        if not here and event.id in looked_at:
            self._late(event.id)
        over, self._over = self._over, None
        if over is not None and over[0] == event.id and over[1].is_current:
            over[1].dismiss(None)  # nobody asks it any more
        else:
            self._over = over
        self.reload()

    def _late(self, id: str) -> None:
        decision = self._answered.get(id, PLAIN_DENIAL)
        by = display_name(decision.by) or "somebody else"
        told = f": {VERDICT_TEXTS[decision.verdict]}" if decision.by else ""
        self.say(f"Already decided by {by}{told}.")

    def say(self, text: str) -> None:
        """Tell something at the bottom of the screen."""
        self.post_message(self.Status(text))

    # What a key does

    def on_key(self, event: Key) -> None:
        """Any key but its second one takes a prepared yes back."""
        if event.key not in self.KEYS:
            self._armed = None

    def _ready(self) -> Interaction | None:
        """The question that a key answers; None where it must not."""
        self._armed = None
        chosen = self.chosen
        if chosen is None or chosen.id in self._sent:
            return None
        if not self.guard.is_ready():
            self.say(TYPED_AHEAD if self.guard.is_readable() else TOO_QUICK)
            return None
        other = self._taker.find_other(chosen)
        if other is not None:
            self.say(f"{display_name(other.by)} has taken this question; t takes it over.")
            return None
        return chosen

    async def action_take(self) -> None:
        """Take the question, also from somebody else, or give it back."""
        chosen = self.chosen
        if chosen is None or not self._still(chosen):
            return
        try:
            self.say(await self._taker.move(chosen))
        except IsthmusError as error:
            self.say(display_name(str(error)))
        self.reload()

    def action_allow(self) -> None:
        """Yes, this once."""
        chosen = self._ready()
        if (
            chosen is not None
            and chosen.risk == "high"
            and not isinstance(chosen.payload, FormAsked)
        ):
            self.say("High risk: A (with shift), then y, allows it once.")
        elif chosen is not None:
            self._allow(chosen, GrantChoice("once", "once"))

    def action_arm(self) -> None:
        """Yes, this once, once ``y`` follows."""
        chosen = self._ready()
        if chosen is not None:
            self._allow(chosen, GrantChoice("once", "once"), chord=True)

    def action_session(self) -> None:
        """Yes, until the host ends."""
        chosen = self._ready()
        if chosen is None:
            return
        if not any(one.remember == "session" for one in list_grant_choices(chosen)):
            self.say("The policy does not allow this for a session; a allows it once.")
            return
        self._allow(chosen, GrantChoice("session", "session"), chord=chosen.risk == "high")

    async def action_remember(self) -> None:
        """Yes, for longer: ask for what."""
        chosen = self._ready()
        if chosen is None:
            return
        choices = list_grant_choices(chosen)
        if not choices:
            self.say("The policy allows this only once.")
            return

        def done(choice: GrantChoice | None) -> None:
            self.guard.note_change()
            if choice is not None and self._still(chosen):
                self._allow(chosen, choice, chord=chosen.risk == "high")

        self._over = (chosen.id, GrantDialog(choices, self.guard))
        self.app.push_screen(self._over[1], done)

    def action_group(self) -> None:
        """Yes or no to several of one kind, once each, after all of them have been read."""
        chosen = self._ready()
        if chosen is None:
            return
        several = self._alike(chosen)
        if len(several) < 2:
            self.say("There is no similar question.")
            return

        def done(verdict: Verdict | None) -> None:
            self.guard.note_change()
            for one in several if verdict else ():
                if one.id in self._sent or not self._still(one):
                    continue
                if verdict == "allow":
                    self._allow(one, GrantChoice("once", "once"))
                else:
                    self._send(one, self._decision("deny"))

        self.app.push_screen(BatchDialog(several, self.guard), done)

    def action_confirm(self) -> None:
        """The second key of a yes."""
        armed, self._armed = self._armed, None
        chosen = self.chosen
        if armed is None or chosen is None or chosen.id != armed[0]:
            return
        self._send(chosen, armed[1])

    def action_deny(self) -> None:
        """No."""
        chosen = self._ready()
        if chosen is not None:
            self._send(chosen, self._decision("deny"))

    def action_cancel(self) -> None:
        """Neither yes nor no: for what servers ask the user."""
        chosen = self._ready()
        if chosen is None:
            return
        if not chosen.attempt.action.startswith("elicit."):
            self.say("Only questions of a server can be cancelled; d denies this.")
            return
        self._send(chosen, self._decision("cancel"))

    def _allow(self, chosen: Interaction, choice: GrantChoice, *, chord: bool = False) -> None:
        demanded = chosen.trace.obligations.assurance
        draft = self._drafts.get(chosen.id)
        if not can_allow(chosen, self._surface.assurance):
            self.say(
                f"The policy requires more than a terminal to allow this ({demanded}); d denies it."
            )
        elif draft is not None and draft.error:
            self.say("Your edit cannot be sent yet: e opens it, u undoes it.")
        elif isinstance(chosen.payload, FormAsked):
            self._fill_in(chosen)
        else:
            decision = self._decision("allow", choice, UNSET if draft is None else draft.value)
            if chord:
                self._armed = (chosen.id, decision)
                self.say(f"Press y to allow it ({choice.label}); any other key cancels.")
            else:
                self._send(chosen, decision)

    def _decision(
        self, verdict: Any, choice: GrantChoice | None = None, edited: Any | UnsetType = UNSET
    ) -> Decision:
        seconds = None if choice is None else choice.seconds
        return Decision(
            verdict=verdict,
            edited=edited,
            remember="once" if choice is None else choice.remember,
            until=None if seconds is None else self._surface.now() + seconds,
            by=self._surface.by,
            assurance=self._surface.assurance,
        )

    def _still(self, chosen: Interaction) -> bool:
        """Whether a question still waits; tells who answered it where it does not."""
        if any(one.id == chosen.id for one in self._view.pending()):
            return True
        self._late(chosen.id)
        return False

    def _send(self, chosen: Interaction, decision: Decision) -> None:
        self._sent.add(chosen.id)
        self.run_worker(self._send_answer(chosen, decision))

    async def _send_answer(self, chosen: Interaction, decision: Decision) -> None:
        try:
            taken = await self._view.decide(chosen.id, decision)
        except Exception as error:  # noqa: BLE001 - whatever it is, the user must hear of it
            self._sent.discard(chosen.id)
            self.say(f"The question was not answered: {display_name(str(error))}")
            return
        if taken:
            self.say(f"{VERDICT_TEXTS[decision.verdict].capitalize()}: {format_question(chosen)}")
        else:
            self._sent.discard(chosen.id)
            if self._still(chosen):
                self.say("The host refused this answer; the log (3) shows why.")
        self.reload()

    # Changing it

    def action_edit(self) -> None:
        """Change what is asked, in the editor; a form is filled in here."""
        chosen = self._ready()
        if chosen is None:
            return
        if isinstance(chosen.payload, FormAsked):
            self._fill_in(chosen)
        elif list_editable(chosen) is UNSET:
            self.say("This question has nothing to edit.")
        else:
            self.run_worker(self._edit_draft(chosen))

    def action_undo(self) -> None:
        """Take a change back."""
        chosen = self._ready()
        if chosen is not None and self._drafts.pop(chosen.id, None) is not None:
            self._show()

    async def _edit_draft(self, chosen: Interaction) -> None:
        await self._taker.take(chosen)
        before = list_editable(chosen)
        draft = self._drafts.get(chosen.id) or Draft(to_editor_json(before))
        try:
            text = await self._edit(draft.text)
        except OSError as error:
            self.say(f"Nothing was changed: {display_name(str(error))}")
            return
        finally:
            self.guard.note_change()
        if not self._still(chosen):
            return
        found = read_draft(text, before)
        if not found.error and is_same_json(found.value, before):
            self._drafts.pop(chosen.id, None)
        else:
            self._drafts[chosen.id] = found
        self._show()

    def _fill_in(self, chosen: Interaction) -> None:
        payload = chosen.payload
        assert isinstance(payload, FormAsked)  # noqa: S101 - callers looked

        def done(filled: FormResult | None) -> None:
            self.guard.note_change()
            if filled is None or not self._still(chosen):
                return
            self._fields[chosen.id] = filled.texts
            if filled.content is not None:
                decision = structs.replace(self._decision("allow"), edited=dict(filled.content))
                self._send(chosen, decision)

        self.run_worker(self._taker.take(chosen), exit_on_error=False)
        schema = payload.params.requested_schema or {}
        texts = self._fields.get(chosen.id, {})
        form = FormDialog(format_question(chosen), schema, texts, self.guard)
        self._over = (chosen.id, form)
        self.app.push_screen(form, done)

    # Looking around

    async def action_why(self) -> None:
        """Show the whole trace."""
        chosen = self.chosen
        if chosen is not None:
            more = [
                StyledLine(f"  {display_name(line)}")
                for line in await self._view.explain(chosen.id)
            ]
            lines = [*explain_trace(chosen.trace), *more]
            self.app.push_screen(
                TextDialog(format_question(chosen), lines), lambda _: self.guard.note_change()
            )

    def action_search(self) -> None:
        """Ask for words; only questions with them are shown."""
        box = self.query_one("#search", Input)
        box.display = True
        box.focus()

    def action_all(self) -> None:
        """Search no more."""
        box = self.query_one("#search", Input)
        box.value = ""
        box.display = False
        self.query_one(Inbox).focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Search while one types."""
        self._words = event.value
        self.reload()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go back to the list; an empty search shows all."""
        event.input.display = bool(event.value)
        self.query_one(Inbox).focus()

    def action_page(self, direction: int) -> None:
        """Turn the card's page."""
        detail = self.query_one(Detail)
        step = max(1, detail.size.height - 1)
        detail.scroll_relative(y=direction * step, animate=False)
