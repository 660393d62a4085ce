"""Markup of the approval pages: the card that every surface shows, and plain forms."""

from collections.abc import Sequence

from msgspec import UNSET

from isthmus.cards.cards import list_editable, make_card
from isthmus.cards.drafts import count_form_bytes, to_editor_json
from isthmus.cards.markup import Markup, element, join_markup, make_lines_markup
from isthmus.host.model.interaction import Interaction, wants_answer

MAX_EDITOR_BYTES = 12 * 1024  # of arguments in a form: one longer than 16 KiB is refused


def make_layout(title: str, content: Markup, style: str) -> bytes:
    """A page."""
    head = [
        element("meta", {"charset": "utf-8"}),
        element("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        element("meta", {"name": "robots", "content": "noindex"}),
        element("title", {}, title),
        element("link", {"rel": "stylesheet", "href": style}),
    ]
    main = element("main", {}, element("h1", {}, title), content)
    page = element(
        "html",
        {"lang": "en", "dir": "ltr"},
        element("head", {}, head),
        element("body", {}, main),
    )
    return f"<!DOCTYPE html>\n{page}\n".encode("utf-8", "replace")


def make_text_markup(texts: Sequence[str], links: Sequence[tuple[str, str]] = ()) -> Markup:
    """Sentences, and a list of links to pages of ours."""
    items = [element("li", {}, element("a", {"href": path}, text)) for path, text in links]
    return join_markup(
        [element("p", {}, text) for text in texts], element("ul", {}, items) if items else None
    )


def make_login_markup(path: str, notice: str) -> Markup:
    """The form for the token that the gateway printed."""
    form = element(
        "form",
        {"method": "post", "action": path},
        element("label", {"for": "token"}, "Token that the gateway printed, after #"),
        element(
            "input",
            {
                "id": "token", "name": "token", "type": "password", "autocomplete": "off",
                "required": True, "autofocus": True,
            },
        ),
        element(
            "div",
            {"class": "choice"},
            element("button", {"class": "main", "type": "submit"}, "Sign in"),
        ),
    )  # fmt: skip
    return join_markup(element("p", {"class": "notice"}, notice) if notice else None, form)


def make_card_markup(asked: Interaction, action: str, token: str) -> Markup:
    """The whole card of a question, with the form to decide it.

    Args:
        asked: the question.
        action: where the form goes.
        token: of the form.
    """
    return join_markup(
        element("h2", {}, make_card(asked).title),
        make_lines_markup(make_card(asked).lines),
        element(
            "form",
            {"method": "post", "action": action},
            element("input", {"type": "hidden", "name": "form", "value": token}),
            _make_editor(asked),
            _make_yes(asked),
            element("label", {"for": "reason"}, "Reason (if you deny)"),
            element("input", {"id": "reason", "name": "reason"}),
            element("button", {"type": "submit", "name": "verdict", "value": "deny"}, "Deny"),
        ),
    )


def _make_editor(asked: Interaction) -> Markup | None:
    if asked.attempt.action != "tool.call":
        return None
    editable = list_editable(asked)
    text = "" if editable is UNSET else to_editor_json(editable)
    if not text or count_form_bytes(text) > MAX_EDITOR_BYTES:
        return None
    return join_markup(
        element("label", {"for": "arguments"}, "Arguments; you may edit them"),
        element("textarea", {"id": "arguments", "name": "arguments", "rows": 12}, text),
    )


def _make_yes(asked: Interaction) -> Markup:
    if not can_allow(asked):
        text = "Answer this question in a terminal of the host. Here you can only deny it."
        return element("p", {}, text)
    return element(
        "button",
        {"class": "main", "type": "submit", "name": "verdict", "value": "allow"},
        "Allow once",
    )


def can_allow(asked: Interaction) -> bool:
    """Whether a yes is all that a question wants; others want a text, or a model."""
    return not wants_answer(asked.attempt)
