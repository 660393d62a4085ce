"""Drafts of the Inbox: what a visitor has written on a card is kept when the card changes.

The new card is shown with its differences from the one that was seen, and the draft beside it. Nothing that
was written is lost; what makes a yes last, or counts as a second key, has to be said anew.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import UNSET, Struct

from isthmus.cards.cards import list_editable, make_card
from isthmus.cards.drafts import read_draft, to_editor_json
from isthmus.cards.lines import StyledLine, diff_texts, head_line
from isthmus.cards.markup import Markup, element, join_markup, make_lines_markup
from isthmus.console.pages.form_fields import carry_blanks
from isthmus.core.encoding import is_same_json
from isthmus.host.model.interaction import FormAsked, Interaction

MAX_SHOWN_QUESTIONS = 200  # of all visitors of a console, for the differences alone
SAME_TEXT = "The text is the same. The time left or the policy's decision has changed."
LEFT_TEXT = "Your draft"


class Attempted(Struct, frozen=True):
    """The content of a form that could not be taken, to be shown again.

    Attributes:
        notice: why not.
        text: the draft of what is editable; None for how it is asked.
        fields: what was filled in.
        before: the question as it was shown, where it has changed since.
        left: what was written and has no place in the form any more, by its title.
    """

    notice: str = ""
    text: str | None = None
    fields: Mapping[str, str] = {}
    before: Interaction | None = None
    left: Mapping[str, str] = {}

    @property
    def has_draft(self) -> bool:
        """Whether something is shown that a visitor has written."""
        return bool(self.text is not None or self.fields or self.left)


class ShownQuestions:
    """Questions as a console has shown them, the last ones, by the version of their cards."""

    def __init__(self) -> None:
        self._by_version: OrderedDict[str, Interaction] = OrderedDict()

    def note(self, version: str, one: Interaction) -> None:
        """A card is shown."""
        self._by_version[version] = one
        self._by_version.move_to_end(version)
        if len(self._by_version) > MAX_SHOWN_QUESTIONS:
            self._by_version.popitem(last=False)

    def find(self, version: str, id: str, owner: str) -> Interaction | None:
        """The question of a version; None where it is another question, or somebody else's.

        Args:
            version: of the card.
            id: of the question.
            owner: the principal of those that may be seen; empty for everybody.
        """
        found = self._by_version.get(version)
        if found is None or found.id != id or owner not in {"", found.attempt.owner}:
            return None
        return found

    async def close(self) -> None:
        """Forget them."""
        self._by_version.clear()


def carry_draft(
    notice: str,
    fields: Mapping[str, str],
    before: Interaction | None,
    after: Interaction | None,
) -> Attempted:
    """Take a form of one version of a card to another version.

    Args:
        notice: what is said of it.
        fields: of the form.
        before: the question as it was shown; None where nobody knows that any more.
        after: as it is now; None where it does not wait any more.
    """
    kept = {"reason": fields["reason"]} if fields.get("reason") else {}
    left: dict[str, str] = {}
    now, shown = _find_form(after), _find_form(before or after)
    if shown is not None:
        carried, left = carry_blanks(shown, now or {}, fields)
        kept |= carried
    text = _find_written(fields.get("edited", ""), before or after)
    if text is not None and (after is None or list_editable(after) is UNSET):
        left["Edit"], text = text, None
    if after is None and kept:
        left["Why"] = kept.pop("reason")
    return Attempted(notice, text, kept, before, left)


def _find_form(one: Interaction | None) -> Mapping[str, Any] | None:
    """The schema of a form that a server asks with; None where a question is another one."""
    if one is None or not isinstance(one.payload, FormAsked):
        return None
    return one.payload.params.requested_schema or {}


def _find_written(text: str, shown: Interaction | None) -> str | None:
    """The draft of arguments or a message; None where it is what was shown."""
    if not text.strip():
        return None
    editable = UNSET if shown is None else list_editable(shown)
    if editable is UNSET:
        return text
    draft = read_draft(text, editable)
    same = not draft.error and is_same_json(draft.value, editable)
    return None if same else text


def make_changes(one: Interaction, attempted: Attempted) -> Markup:
    """The differences of a card from the one that was seen, and of a draft from the card."""
    lines: list[StyledLine] = []
    if attempted.before is not None and not is_same_json(attempted.before, one):
        changed = [*diff_texts(_list_texts(attempted.before), _list_texts(one))]
        lines += [head_line("what has changed"), *(changed or [StyledLine(f"  {SAME_TEXT}")])]
        lines += _compare_draft(one, attempted.text)
    return join_markup(make_lines_markup(lines) if lines else None, make_left(attempted))


def _list_texts(one: Interaction) -> list[str]:
    return make_card(one).text().split("\n")


def _compare_draft(one: Interaction, text: str | None) -> Iterator[StyledLine]:
    if text is None:
        return
    asked = to_editor_json(list_editable(one)).strip().split("\n")
    yield head_line("your draft, compared with the question as it is now")
    yield from diff_texts(asked, text.strip().replace("\r\n", "\n").split("\n"))


def make_left(attempted: Attempted) -> Markup:
    """What was written and has no place in the form any more."""
    return join_markup(
        element(
            "section",
            {"class": "part"},
            element("h3", {}, f"{LEFT_TEXT}: {title}"),
            element("pre", {"class": "quote", "tabindex": 0}, words),
        )
        for title, words in attempted.left.items()
    )
