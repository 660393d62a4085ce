"""Inbox: what waits, by risk with its time left; the whole card of each; allow, edit, deny, remember.

What may be remembered, whose yes counts, and what may be answered together is decided by
:mod:`isthmus.cards`, as at a terminal.
"""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from isthmus.auth.authorization_server.core.requests import RequestRefused
from isthmus.cards.cards import explain_trace, format_question, list_editable, make_card
from isthmus.cards.choices import GrantChoice, can_allow, list_grant_choices
from isthmus.cards.drafts import count_form_bytes, read_draft, to_editor_json
from isthmus.cards.lines import display_name, pick_telling_argument
from isthmus.cards.markup import Markup, element, join_markup, make_lines_markup
from isthmus.cards.queue import (
    SHORT_QUESTIONS,
    find_alike,
    format_time_left,
    has_words,
    sort_questions,
)
from isthmus.console.drawing.page_parts import TableColumn, draw_table
from isthmus.console.layout import make_notice
from isthmus.console.pages.drafts import (
    Attempted,
    ShownQuestions,
    carry_draft,
    make_changes,
    make_left,
)
from isthmus.console.pages.form_fields import make_blanks, read_blanks
from isthmus.console.pages.takers import (
    FREE,
    TAKE,
    TAKEN_TEXT,
    find_other_taker,
    free_question,
    list_over_parts,
    list_take_parts,
    make_taken_mark,
    renew_takes,
    take_question,
)
from isthmus.console.requests import ConsoleReply, ConsoleRequest, PageRedirect, PageReply
from isthmus.core.encoding import is_same_json
from isthmus.host.model.interaction import (
    Decision,
    FormAsked,
    Interaction,
    PageAsked,
    Verdict,
)
from isthmus.host.model.trace import Assurance

SECTION = "inbox"
LIVE = ("inbox",)
MAX_REASON_CHARS = 500
MAX_SUMMARY_CHARS = 120
MAX_EDITOR_BYTES = 900 * 1024  # of a form of a megabyte
COLUMNS = (
    TableColumn("risk"), TableColumn("left", "at"), TableColumn("server", "who"),
    TableColumn("question", "wide"), TableColumn("for", "who"),
)  # fmt: skip
RISKS = {"low": "low", "medium": "medium", "high": "high"}
SURE_TEXTS = {True: "Yes, allow this (high risk)", False: "Yes, allow always (if chosen)"}
GONE_TEXT = "This question is closed: it was answered, or its time is over."
CHANGED_TEXT = "This question changed after it was shown. Nothing was decided: read it again."
MOVED_TEXT = "This question changed after it was shown. Your draft is kept."
KEEP = "keep"  # of a form that decides nothing: its draft is taken to the card as it is now
TWICE_TEXT = "High risk: also tick the box beside Allow. Nothing was decided."
ALWAYS_TEXT = "To allow always, also tick the box beside Allow. Nothing was decided."
WEAK_TEXT = "The rule requires a stronger login than yours. You can only deny the call."
LACK_TEXT = "Your approval does not count: the rule requires a second person or a stronger login. The question still waits."
MISSED_TEXT = " Some of the questions had been answered before."
TOO_LONG_TEXT = "This is too long to be edited here: allow it as it is, or deny it."
DONE_TEXTS = {"allow": "Allowed.", "deny": "Denied.", "cancel": "Cancelled."}


def list_pending(request: ConsoleRequest) -> list[Interaction]:
    """The questions that a visitor may see, in the order in which they are shown."""
    visitor = request.visitor
    waiting = [
        one
        for one in request.view.pending()
        if visitor.operator or one.attempt.owner == visitor.principal
    ]
    return sort_questions(waiting)


def rank_visitor(request: ConsoleRequest, one: Interaction) -> Assurance:
    """How sure one can be of a visitor's yes to a question: who has authenticated is a second person to others."""
    visitor = request.visitor
    if visitor.assurance == "authenticated_web" and visitor.principal != one.attempt.owner:
        return "second_person"
    return visitor.assurance


def list_choices(request: ConsoleRequest, one: Interaction) -> list[GrantChoice]:
    """The lifetimes of a yes that a visitor may choose: what a server asks in a call of theirs, they answer once."""
    visitor = request.visitor
    own = visitor.operator or one.attempt.principal == visitor.principal
    return list_grant_choices(one) if own else []


def digest_question(one: Interaction) -> str:
    """A digest of all that a card shows of its question."""
    return sha256(msgspec.json.encode(one)).hexdigest()[:32]


def make_version(request: ConsoleRequest, one: Interaction) -> str:
    """The version that a card's form is about: its question, and whoever else has taken it."""
    other = find_other_taker(request, one)
    return digest_question(one) + ("" if other is None else f"-{other.holder}")


def list_alike(request: ConsoleRequest, one: Interaction) -> list[Interaction]:
    """The questions that a visitor may answer together with one: those that nobody else has taken."""
    free = [each for each in list_pending(request) if find_other_taker(request, each) is None]
    return find_alike(one, free)


# The list


async def show_inbox(request: ConsoleRequest) -> ConsoleReply:
    """The list of what waits."""
    waiting, words = list_pending(request), request.fields.get("q", "")
    found = [one for one in waiting if has_words(one, words)]
    search = element(
        "form",
        {
            "method": "get",
            "action": request.link("inbox"),
            "class": "search line",
            "role": "search",
        },
        element("label", {"for": "q"}, "Search"),
        element("input", {"id": "q", "name": "q", "value": words, "type": "search"}),
        element("button", {"type": "submit"}, "Search"),
    )
    said = DONE_TEXTS.get(request.fields.get("done", ""))
    if said and request.fields.get("missed"):
        said += MISSED_TEXT
    body = join_markup(
        make_notice(said) if said else None,
        search if waiting else None,
        _make_list(request, found),
        element("p", {"id": "notify-place"}),
    )
    return PageReply(title="Inbox", body=body, section=SECTION, live=LIVE)


def _make_list(request: ConsoleRequest, found: Sequence[Interaction]) -> Markup:
    rows = [_make_row(request, one, found) for one in found]
    return draw_table("Waiting questions", COLUMNS, rows, empty="Nothing waits.")


def _make_row(
    request: ConsoleRequest, one: Interaction, others: Sequence[Interaction]
) -> list[Markup | str]:
    attempt = one.attempt
    short = f"{SHORT_QUESTIONS.get(attempt.action, '')} {attempt.object}".strip()
    return [
        element("span", {"class": f"risk {one.risk}"}, RISKS[one.risk]),
        _make_clock(request, one),
        element("bdi", {}, attempt.server),
        element(
            "div",
            {},
            element("a", {"href": request.link("inbox", one.id), "class": "open"}, short or "?"),
            " ",
            element("code", {}, _summarise(one, others)),
            make_taken_mark(request.view.takers().get(one.id)),
        ),
        element("bdi", {}, attempt.owner),
    ]


def _summarise(one: Interaction, others: Sequence[Interaction]) -> str:
    """What tells a question from those beside it, on one line."""
    if isinstance(one.payload, FormAsked | PageAsked):
        message = one.payload.params.message
        return message[:MAX_SUMMARY_CHARS] + ("…" if len(message) > MAX_SUMMARY_CHARS else "")
    return pick_telling_argument(one, others)


def _make_clock(request: ConsoleRequest, one: Interaction) -> Markup:
    left = format_time_left(one.deadline, request.now())
    return element("span", {"class": "left", "data-deadline": f"{one.deadline:.0f}"}, left)


# One card


def find_question(request: ConsoleRequest) -> Interaction | None:
    """The question of a path, where it waits and this visitor may see it."""
    id = request.parameters["id"]
    return next((one for one in list_pending(request) if one.id == id), None)


async def show_card(request: ConsoleRequest) -> ConsoleReply:
    """The whole card of a question, with the forms that answer it."""
    one = find_question(request)
    if one is None:
        return _say_gone(request)
    await renew_takes(request)
    before = _find_shown(request, request.fields.get("since", ""))
    if before is None or is_same_json(before, one):
        return await make_card_page(request, one, Attempted())
    return await make_card_page(request, one, Attempted(MOVED_TEXT, before=before), status=200)


def _find_shown(request: ConsoleRequest, version: str) -> Interaction | None:
    """The question of a path as a version of its card has shown it."""
    owner = "" if request.visitor.operator else request.visitor.principal
    return request.find_state(ShownQuestions).find(version, request.parameters["id"], owner)


def _say_gone(request: ConsoleRequest) -> PageReply:
    written = None
    if request.browser.posted:
        before = _find_shown(request, request.fields.get("version", ""))
        written = make_left(carry_draft(GONE_TEXT, request.fields, before, None))
    body = join_markup(
        element("p", {"class": "empty"}, GONE_TEXT),
        written,
        element("p", {}, element("a", {"href": request.link("inbox")}, "To the Inbox")),
    )
    return PageReply(title="Question", body=body, section=SECTION, status=404)


async def make_card_page(
    request: ConsoleRequest, one: Interaction, attempted: Attempted, status: int = 0
) -> PageReply:
    """The page of a question.

    Args:
        request: who looks at it.
        one: the question.
        attempted: what could not be taken before.
        status: of HTTP; 0 for what follows from the notice.
    """
    card = make_card(one)
    request.find_state(ShownQuestions).note(make_version(request, one), one)
    more = await request.view.explain(one.id)
    body = element(
        "article",
        {
            "class": f"card asked {one.risk}",
            "data-card": one.id,
            "data-draft": "yes" if attempted.has_draft else None,
        },
        make_notice(attempted.notice, bad=True) if attempted.notice else None,
        element(
            "div",
            {"class": "card-answer"},
            element("p", {"class": "meta"}, "Time left: ", _make_clock(request, one)),
            _make_answers(request, one, attempted),
        ),
        element(
            "div",
            {"class": "card-lines"},
            element("h2", {"class": "unseen"}, "Question in detail"),
            make_changes(one, attempted),
            make_lines_markup(card.lines),
            element(
                "details",
                {"id": "why"},
                element("summary", {}, "Why: the whole policy decision"),
                make_lines_markup(explain_trace(one.trace)),
                [element("p", {}, line) for line in more],
            ),
        ),
    )
    status = status or (409 if attempted.notice else 200)
    return PageReply(
        title=format_question(one), body=body, section=SECTION, live=LIVE, status=status
    )


def _make_answers(request: ConsoleRequest, one: Interaction, attempted: Attempted) -> Markup:
    """The form that answers a question, and the way to those alike."""
    other = find_other_taker(request, one)
    alike = 0 if other else len(list_alike(request, one))
    return join_markup(
        request.make_form(
            request.link("inbox", one.id),
            _list_answer_parts(request, one, attempted)
            if other is None
            else [*_list_draft_parts(one, attempted), *list_over_parts(other)],
            version=make_version(request, one),
            attributes={"class": "answer", "data-guard": "answer"},
        ),
        element(
            "p",
            {},
            element(
                "a",
                {"href": request.link("inbox", one.id, "batch"), "data-key": "g"},
                f"Answer all {alike} of this kind together",
            ),
        )
        if alike > 1
        else None,
    )


def _list_answer_parts(
    request: ConsoleRequest, one: Interaction, attempted: Attempted
) -> Iterator[Markup]:
    if can_allow(one, rank_visitor(request, one)):
        yield from _list_yes_parts(one, attempted, list_choices(request, one))
    else:
        yield element("p", {"class": "warn"}, WEAK_TEXT)
    yield from _list_no_parts(one)
    yield make_reason(attempted)
    yield from list_take_parts(request, one)


def _list_draft_parts(one: Interaction, attempted: Attempted) -> Iterator[Markup]:
    """The fields that a visitor has written in, which wait until they have taken the question over."""
    if attempted.has_draft:
        yield from _list_editing_parts(one, attempted)
        yield make_reason(attempted)


def _list_editing_parts(one: Interaction, attempted: Attempted) -> Iterator[Markup]:
    """The fields of a form, or the editor of what may be edited."""
    editable = list_editable(one)
    if isinstance(one.payload, FormAsked):
        yield from make_blanks(one.payload.params.requested_schema or {}, attempted.fields)
    elif editable is not UNSET:
        text = to_editor_json(editable) if attempted.text is None else attempted.text
        if count_form_bytes(text) > MAX_EDITOR_BYTES:
            yield element("p", {"class": "soft"}, TOO_LONG_TEXT)
            return
        yield element(
            "details",
            {"class": "edit", "open": attempted.text is not None},
            element("summary", {"data-key": "e"}, "Edit"),
            element("label", {"for": "edited"}, "As JSON; exactly this is allowed"),
            element(
                "textarea",
                {"id": "edited", "name": "edited", "rows": 12, "spellcheck": "false"},
                text,
            ),
        )


def _list_yes_parts(
    one: Interaction, attempted: Attempted, choices: Sequence[GrantChoice]
) -> Iterator[Markup]:
    yield from _list_editing_parts(one, attempted)
    if choices:
        yield _make_choices(choices)
    if one.risk == "high" or any(choice.remember == "tool_always" for choice in choices):
        yield element(
            "p",
            {},
            element("input", {"type": "checkbox", "id": "sure", "name": "sure", "value": "yes"}),
            element("label", {"for": "sure"}, SURE_TEXTS[one.risk == "high"]),
        )
    yield element(
        "button",
        {
            "class": "main", "type": "submit", "name": "verdict", "value": "allow",
            "data-key": "A" if one.risk == "high" else "a",
        },
        _name_yes(one),
    )  # fmt: skip


def _name_yes(one: Interaction) -> str:
    return "Send" if isinstance(one.payload, FormAsked) else "Allow"


def _make_choices(choices: Sequence[GrantChoice]) -> Markup:
    options = [
        element("option", {"value": "", "selected": True}, "once"),
        *(
            element(
                "option",
                {"value": str(number), "data-scope": choice.remember},
                choice.label.replace(" (press it twice)", ""),
            )
            for number, choice in enumerate(choices)
        ),
    ]
    return element(
        "p",
        {},
        element("label", {"for": "remember"}, "Remember it for"),
        element("select", {"id": "remember", "name": "remember", "data-key": "r"}, options),
    )


def _list_no_parts(one: Interaction) -> Iterator[Markup]:
    yield element(
        "button", {"type": "submit", "name": "verdict", "value": "deny", "data-key": "d"}, "Deny"
    )
    if one.attempt.action.startswith("elicit."):
        yield element(
            "button",
            {"type": "submit", "name": "verdict", "value": "cancel", "data-key": "c"},
            "Cancel",
        )


def make_reason(attempted: Attempted) -> Markup:
    """The field for the reason of a no."""
    reason: dict[str, str | int | bool | None] = {
        "id": "reason",
        "name": "reason",
        "maxlength": MAX_REASON_CHARS,
        "value": attempted.fields.get("reason") or None,
    }
    return element(
        "p",
        {},
        element("label", {"for": "reason"}, "Reason (if you deny)"),
        element("input", reason),
    )


# Deciding


async def decide_question(request: ConsoleRequest) -> ConsoleReply:
    """Take the answer to a question."""
    one, fields = find_question(request), request.fields
    if one is None:
        return _say_gone(request)
    if fields.get("verdict") in {TAKE, FREE}:
        return await _move_question(request, one)
    version, other = fields.get("version", ""), find_other_taker(request, one)
    if version != make_version(request, one) or other or fields.get("verdict") == KEEP:
        notice = MOVED_TEXT if fields.get("verdict") == KEEP else CHANGED_TEXT
        if other is not None and fields.get("verdict") != KEEP:
            notice = TAKEN_TEXT.format(display_name(other.by))
        draft = carry_draft(notice, fields, _find_shown(request, version), one)
        return await make_card_page(request, one, draft)
    verdict = read_verdict(fields, one)
    choice, edited = GrantChoice("once", "once"), UNSET
    if verdict == "allow":
        found = read_yes(request, one)
        if isinstance(found, Attempted):
            return await make_card_page(request, one, found)
        choice, edited = found
    decision = make_decision(request, one, verdict, choice, edited)
    if await request.view.decide(one.id, decision):
        return PageRedirect(request.link("inbox", done=verdict))
    still = find_question(request)
    return (
        _say_gone(request)
        if still is None
        else await make_card_page(request, still, carry_draft(LACK_TEXT, fields, one, still))
    )


async def _move_question(request: ConsoleRequest, one: Interaction) -> ConsoleReply:
    """Take a question, or give it back; what was written on its card stays."""
    fields = request.fields
    if fields["verdict"] == TAKE:
        await take_question(request, one)
    else:
        await free_question(request, one)
    draft = carry_draft("", fields, _find_shown(request, fields.get("version", "")), one)
    if not draft.has_draft:
        return PageRedirect(request.link("inbox", one.id))
    return await make_card_page(request, one, draft)


def read_verdict(fields: Mapping[str, str], one: Interaction) -> Verdict:
    """The verdict of a form.

    Raises:
        RequestRefused: it has none that its page offers.
    """
    match fields.get("verdict", ""):
        case "allow":
            return "allow"
        case "deny":
            return "deny"
        case "cancel" if one.attempt.action.startswith("elicit."):
            return "cancel"
    raise RequestRefused("Choose one of the actions on this page.")


def read_yes(
    request: ConsoleRequest, one: Interaction
) -> Attempted | tuple[GrantChoice, Any | UnsetType]:
    """What a yes holds for, and what stands in place of what was asked; or why it cannot be taken."""
    fields = request.fields
    text, edited, error = _read_edit(one, fields)
    if not can_allow(one, rank_visitor(request, one)):
        return Attempted(WEAK_TEXT, text, fields)
    choices, number = list_choices(request, one), fields.get("remember", "")
    choice = GrantChoice("once", "once")
    if number:
        if not number.isdecimal() or len(number) > 3 or int(number) >= len(choices):
            raise RequestRefused("Choose one of the actions on this page.")
        choice = choices[int(number)]
    if error:
        return Attempted(f"Nothing was decided: {error}.", text, fields)
    if fields.get("sure") != "yes":
        if one.risk == "high" and not isinstance(one.payload, FormAsked):
            return Attempted(TWICE_TEXT, text, fields)
        if choice.remember == "tool_always":
            return Attempted(ALWAYS_TEXT, text, fields)
    return choice, edited


def _read_edit(
    one: Interaction, fields: Mapping[str, str]
) -> tuple[str | None, Any | UnsetType, str]:
    """The text that was edited, what it means (unset where it is as it was), and what is wrong."""
    if isinstance(one.payload, FormAsked):
        content, error = read_blanks(one.payload.params.requested_schema or {}, fields)
        return None, content, error
    editable, text = list_editable(one), fields.get("edited", "")
    if editable is UNSET or not text.strip():
        return None, UNSET, ""
    draft = read_draft(text, editable)
    same = not draft.error and is_same_json(draft.value, editable)
    return (None, UNSET, "") if same else (text, draft.value, draft.error)


def make_decision(
    request: ConsoleRequest,
    one: Interaction,
    verdict: Verdict,
    choice: GrantChoice,
    edited: Any | UnsetType = UNSET,
) -> Decision:
    """The decision of a visitor."""
    visitor = request.visitor
    return Decision(
        verdict=verdict,
        edited=edited,
        remember=choice.remember,
        until=None if choice.seconds is None else request.now() + choice.seconds,
        by=f"console ({visitor.name})",
        assurance=rank_visitor(request, one),
        reason=request.fields.get("reason", "")[:MAX_REASON_CHARS],
        principal=visitor.principal,
    )
