"""Form fields of an elicitation on a page: an input for each blank, and what its values mean."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from isthmus.cards.markup import Markup, Verbatim, element
from isthmus.core.encoding import is_same_json
from isthmus.core.form_fields import FormField, format_answer, list_fields
from isthmus.core.text import show_invisible

TEXT_ROWS = 6
INPUT_TYPES = {"email": "email", "date": "date", "uri": "url"}


def make_blanks(schema: Mapping[str, Any], given: Mapping[str, str]) -> Iterator[Markup]:
    """The blanks of a form.

    Args:
        schema: the form, in the subset that elicitation may ask with.
        given: what was filled in before, by the name of its field.
    """
    for number, blank in enumerate(list_fields(schema)):
        yield element(
            "fieldset",
            {"class": "blank"},
            element("legend", {}, blank.title, " (needed)" if blank.required else ""),
            [element("p", {"class": "soft"}, line) for line in _list_explanations(blank)],
            _make_input(blank, f"field-{number}", given),
        )


def _list_explanations(blank: FormField) -> list[str]:
    described = blank.schema.get("description")
    bounds = [] if blank.choices else [", ".join(map(str, blank.describe_value()))]
    return [*([str(described)] if described else []), *bounds]


def _make_input(blank: FormField, name: str, given: Mapping[str, str]) -> Markup | list[Markup]:
    if blank.many and blank.choices:
        return [*_list_ticks(blank, name, given)]
    if blank.choices or blank.kind == "boolean":
        return _make_select(blank, name, given.get(name))
    kind = INPUT_TYPES.get(str(blank.schema.get("format")), "text")
    value = given.get(name, _show_default(blank))
    named: dict[str, str | int | bool | None] = {
        "id": name, "name": name, "aria-label": blank.title
    }  # fmt: skip
    if _has_lines(blank):
        return element("textarea", {**named, "rows": TEXT_ROWS}, value)
    return element("input", {**named, "type": kind, "value": value})


def _has_lines(blank: FormField) -> bool:
    """Whether a text of several lines is suggested, for which an input has no place."""
    return isinstance(blank.default, str) and "\n" in blank.default


def _show_default(blank: FormField) -> str:
    """What a field is filled with before anybody has written in it: marks stand for what is invisible."""
    if blank.default is None:
        return ""
    text = format_answer(blank.default).replace("\r\n", "\n")
    return show_invisible(text, line=not _has_lines(blank))


def _make_select(blank: FormField, name: str, given: str | None) -> Markup:
    pairs = [(str(at), one.title) for at, one in enumerate(blank.choices, 1)]
    if not pairs:
        pairs = [("y", "yes"), ("n", "no")]
    chosen = given
    if chosen is None and blank.default is not None:
        values = [one.value for one in blank.choices]
        at = _find_value(values, blank.default)
        if at is not None:
            chosen = str(at + 1)
        elif isinstance(blank.default, bool):
            chosen = format_answer(blank.default)
    options = [
        element("option", {"value": value, "selected": value == chosen}, title)
        for value, title in [("", "(choose)"), *pairs]
    ]
    return element("select", {"id": name, "name": name, "aria-label": blank.title}, options)


def _find_value(values: Sequence[Any], wanted: Any) -> int | None:
    """The place of a value, which may be any JSON: true is not 1."""
    return next((at for at, one in enumerate(values) if is_same_json(one, wanted)), None)


def _list_ticks(blank: FormField, name: str, given: Mapping[str, str]) -> Iterator[Markup]:
    begun = any(key.startswith(f"{name}-") for key in given)
    default = blank.default if isinstance(blank.default, list) else []
    for at, one in enumerate(blank.choices, 1):
        field = f"{name}-{at}"
        ticked = field in given if begun else _find_value(default, one.value) is not None
        box: dict[str, str | int | bool | None] = {
            "type": "checkbox",
            "id": field,
            "name": field,
            "value": "yes",
            "checked": ticked,
        }
        yield element("p", {}, element("input", box), element("label", {"for": field}, one.title))
    yield element("input", {"type": "hidden", "name": f"{name}-shown", "value": Verbatim("yes")})


def read_blanks(schema: Mapping[str, Any], fields: Mapping[str, str]) -> tuple[Any, str]:
    """The content that was filled in, and what is wrong with it; empty where nothing is."""
    content: dict[str, Any] = {}
    for number, blank in enumerate(list_fields(schema)):
        try:
            value = _read_blank(blank, f"field-{number}", fields)
        except ValueError as error:
            return None, f"{blank.title}: {error}"
        if value is not None:
            content[blank.name] = value
    return content, ""


def _read_blank(blank: FormField, name: str, fields: Mapping[str, str]) -> Any:
    if blank.many and blank.choices:
        chosen = [
            one.value
            for at, one in enumerate(blank.choices, 1)
            if fields.get(f"{name}-{at}") == "yes"
        ]
        return blank.accept(chosen if chosen or blank.required else None)
    text = fields.get(name, "").replace("\r\n", "\n")
    suggested = isinstance(blank.default, str) and not blank.choices
    if suggested and text and text == _show_default(blank):  # nobody has written marks in it
        return blank.accept(blank.default)
    # an empty field is left out: the page shows a default as its value, and somebody has emptied it
    if not text.strip() and not blank.required:
        return None
    if not text.strip():
        raise ValueError("an answer is required here")
    return blank.accept(_find_chosen(blank, text)) if blank.choices else blank.read(text)


def _find_chosen(blank: FormField, text: str) -> Any:
    """The choice of a number, as the options of the page have it; a value may look like another's number."""
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 9 else 0
    if not 0 < number <= len(blank.choices):
        raise ValueError("choose one of the values in the list")
    return blank.choices[number - 1].value


# From one version of a form to the next


def carry_blanks(
    before: Mapping[str, Any], after: Mapping[str, Any], fields: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Take what was filled in from one form to another, by the names of the fields.

    Args:
        before: the form that it was written in.
        after: the form that is asked now.
        fields: as they were sent.

    Returns:
        The fields of the other form, and what has no place there, by its title. What was left as it was
        suggested is not taken along.
    """
    places = {blank.name: (f"field-{at}", blank) for at, blank in enumerate(list_fields(after))}
    carried: dict[str, str] = {}
    left: dict[str, str] = {}
    for number, blank in enumerate(list_fields(before)):
        written = _list_written(blank, f"field-{number}", fields)
        if written is None or written == _list_suggested(blank):
            continue
        place = places.get(blank.name)
        placed = None if place is None else _place_written(place[1], place[0], written)
        if placed is not None:
            carried |= placed
        elif any(one != "" for one in written):
            left[blank.title] = ", ".join(map(format_answer, written))
    return carried, left


def _list_written(blank: FormField, name: str, fields: Mapping[str, str]) -> list[Any] | None:
    """The values that a blank was filled in with; None where it was not sent."""
    if blank.many and blank.choices:
        ticked = [one.value for at, one in enumerate(blank.choices, 1) if f"{name}-{at}" in fields]
        return ticked if ticked or f"{name}-shown" in fields else None
    text = fields.get(name)
    if text is None:
        return None
    if blank.choices and text:
        try:
            return [_find_chosen(blank, text)]
        except ValueError:
            return [text]
    return [text.replace("\r\n", "\n")]


def _list_suggested(blank: FormField) -> list[Any]:
    default = blank.default
    if blank.many and blank.choices:
        given = default if isinstance(default, list) else []
        return [one.value for one in blank.choices if _find_value(given, one.value) is not None]
    if blank.choices:
        at = _find_value([one.value for one in blank.choices], default)
        return [""] if at is None else [blank.choices[at].value]
    return [_show_default(blank)]


def _place_written(blank: FormField, name: str, written: Sequence[Any]) -> dict[str, str] | None:
    """The fields of a blank that hold values; None where it cannot hold them."""
    if blank.choices:
        values = [one.value for one in blank.choices]
        places = [_find_value(values, one) for one in written if one != ""]
        if None in places or (len(places) > 1 and not blank.many):
            return None
        numbers = [at + 1 for at in places if at is not None]
        if blank.many:
            ticks = {f"{name}-{number}": "yes" for number in numbers}
            return {f"{name}-shown": "yes", **ticks}
        return {name: str(numbers[0]) if numbers else ""}
    if len(written) != 1 or not isinstance(written[0], str):
        return None
    if blank.kind == "boolean" and written[0] not in {"", "y", "n"}:
        return None
    return {name: written[0]}
