"""Takers on the Inbox: a question that somebody has taken to answer is shown by name, and taken over."""

from collections.abc import Iterator
from hashlib import sha256

from isthmus.cards.lines import display_name
from isthmus.cards.markup import Markup, element
from isthmus.console.requests import ConsoleRequest
from isthmus.host.model.interaction import Interaction, QuestionTaker

TAKE, FREE = "take", "free"  # verdicts of a form that decide nothing
TAKEN_TEXT = "{} has taken this question. Nothing was decided: take it over first."
OWN_TEXT = "You have taken this question; others see that."


def make_taker(request: ConsoleRequest) -> QuestionTaker:
    """The visitor as a taker; each login is one."""
    holder = sha256(f"taker {request.visitor.session}".encode()).hexdigest()[:32]
    return QuestionTaker(f"console ({request.visitor.name})", holder)


def find_other_taker(request: ConsoleRequest, one: Interaction) -> QuestionTaker | None:
    """Somebody else who has taken a question."""
    taker = request.view.takers().get(one.id)
    return None if taker is None or taker.holder == make_taker(request).holder else taker


def has_taken(request: ConsoleRequest, one: Interaction) -> bool:
    """Whether this visitor has taken a question."""
    taker = request.view.takers().get(one.id)
    return taker is not None and taker.holder == make_taker(request).holder


async def take_question(request: ConsoleRequest, one: Interaction) -> None:
    """Take a question, also from somebody else: the page has said who has it."""
    await request.view.take_question(one.id, make_taker(request), over=True)


async def free_question(request: ConsoleRequest, one: Interaction) -> None:
    """Give a question back."""
    await request.view.free_question(one.id, make_taker(request).holder)


async def renew_takes(request: ConsoleRequest) -> None:
    """Say that a visitor is still there, for each question that they have taken."""
    taker = make_taker(request)
    for id, one in request.view.takers().items():
        if one.holder == taker.holder:
            await request.view.take_question(id, taker)


async def free_all(request: ConsoleRequest) -> None:
    """Give back all that a visitor has taken: they sign out."""
    holder = make_taker(request).holder
    for id, one in request.view.takers().items():
        if one.holder == holder:
            await request.view.free_question(id, holder)


def list_take_parts(request: ConsoleRequest, one: Interaction) -> Iterator[Markup]:
    """The button that takes a question, or gives it back."""
    if has_taken(request, one):
        yield element("p", {"class": "soft"}, OWN_TEXT)
        yield _make_button(FREE, "Give it back")
    else:
        yield _make_button(TAKE, "Take it")


def list_over_parts(taker: QuestionTaker) -> Iterator[Markup]:
    """The name of whoever has taken a question, and the button that takes it over."""
    yield element(
        "p", {"class": "warn"}, "Taken by ", element("bdi", {}, display_name(taker.by)), "."
    )
    yield _make_button(TAKE, "Take over")


def _make_button(verdict: str, label: str) -> Markup:
    return element(
        "button",
        {"type": "submit", "name": "verdict", "value": verdict, "data-key": "t"},
        label,
    )


def make_taken_mark(taker: QuestionTaker | None) -> Markup | None:
    """The name of a taker in the list."""
    if taker is None:
        return None
    return element(
        "span", {"class": "soft"}, " taken by ", element("bdi", {}, display_name(taker.by))
    )
