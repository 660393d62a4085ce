"""Batch: several similar questions, their differences and each whole; one answer for all."""

from isthmus.auth.authorization_server.core.requests import RequestRefused
from isthmus.cards.cards import make_card
from isthmus.cards.choices import GrantChoice, can_allow
from isthmus.cards.lines import compare_arguments
from isthmus.cards.markup import Markup, Verbatim, element, join_markup, make_lines_markup
from isthmus.console.pages.inbox import (
    LIVE,
    SECTION,
    digest_question,
    find_question,
    list_alike,
    make_decision,
    rank_visitor,
    read_verdict,
)
from isthmus.console.requests import ConsoleReply, ConsoleRequest, PageRedirect, PageReply
from isthmus.host.model.interaction import Interaction


async def show_batch(request: ConsoleRequest) -> ConsoleReply:
    """The questions that may be answered together with one."""
    several = _list_several(request)
    if len(several) < 2:
        return PageRedirect(request.link("inbox", request.parameters["id"]))
    cards = [
        element(
            "article",
            {"class": f"card {one.risk}"},
            element("h2", {}, f"{number}. {card.title}"),
            make_lines_markup(card.lines),
        )
        for number, one in enumerate(several, 1)
        for card in [make_card(one)]
    ]
    body = join_markup(
        element("h2", {"class": "unseen"}, "Differences"),
        make_lines_markup(compare_arguments(several)),
        _make_answers(request, several),
        cards,
    )
    title = f"{len(several)} similar questions"
    return PageReply(title=title, body=body, section=SECTION, live=LIVE)


def _list_several(request: ConsoleRequest) -> list[Interaction]:
    chosen = find_question(request)
    return [] if chosen is None else list_alike(request, chosen)


def _make_answers(request: ConsoleRequest, several: list[Interaction]) -> Markup:
    shown = " ".join(f"{one.id}:{digest_question(one)}" for one in several)
    return request.make_form(
        request.link("inbox", request.parameters["id"], "batch"),
        element("input", {"type": "hidden", "name": "shown", "value": Verbatim(shown)}),
        element(
            "button",
            {
                "class": "main",
                "type": "submit",
                "name": "verdict",
                "value": "allow",
                "data-key": "a",
            },
            f"Allow these {len(several)}, once each",
        ),
        element(
            "button",
            {"type": "submit", "name": "verdict", "value": "deny", "data-key": "d"},
            "Deny all",
        ),
        attributes={"class": "answer", "data-guard": "answer"},
    )


async def decide_batch(request: ConsoleRequest) -> ConsoleReply:
    """Answer those that were shown, as far as they still wait and are what they were."""
    several = _list_several(request)
    if not several:
        return PageRedirect(request.link("inbox", request.parameters["id"]))
    verdict = read_verdict(request.fields, several[0])
    shown = set(request.fields.get("shown", "").split())
    meant = [one for one in several if f"{one.id}:{digest_question(one)}" in shown]
    if verdict == "allow":
        meant = [one for one in meant if can_allow(one, rank_visitor(request, one))]
    if not meant:
        raise RequestRefused("None of these questions waits any longer.", status=409)
    decided = 0
    for one in meant:
        decision = make_decision(request, one, verdict, GrantChoice("once", "once"))
        decided += await request.view.decide(one.id, decision)
    if not decided:
        raise RequestRefused("None of these questions waits any longer.", status=409)
    missed = {"missed": len(meant) - decided} if decided < len(meant) else {}
    return PageRedirect(request.link("inbox", done=verdict, **missed))
