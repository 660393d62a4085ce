"""match(expand(x)) == x wherever the template tells its variables apart; no input is an exception."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.core.uri_template import (
    BadTemplate,
    UriTemplate,
    _join_neighbours,
    _quote,
    _search_spans,
)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


def has_dots(text):
    """Whether a value has a dot segment, which no template gives back."""
    return not {".", ".."}.isdisjoint(re.split(r"[/\\]", text))


paths = texts.filter(lambda text: not has_dots(text))
segments = paths.filter(lambda text: "/" not in text)
some_path = paths.filter(lambda text: text and not re.search("%[0-9A-Fa-f]{2}", text))
some_segment = segments.filter(bool)

# expressions by name of their variable, and the values that can be given back
EXPRESSIONS = {
    "{%s}": some_segment,
    "{%s*}": st.lists(some_segment, min_size=1, max_size=3),
    "{/%s}": segments,
    "{/%s*}": st.lists(segments, min_size=1, max_size=3),
    "{;%s}": segments,
    "{?%s}": texts,
    "{?%s*}": st.lists(texts, min_size=1, max_size=3),
}
LAST = {
    "{+%s}": some_path,
    "{#%s}": texts.filter(lambda text: not re.search("%[0-9A-Fa-f]{2}", text)),
    "{.%s}": segments,
    "{&%s}": texts,
}


@st.composite
def cases(draw):
    """A template whose variables are told apart, and values for them, some left out."""
    template, values = "test:", {}
    for index in range(draw(st.integers(0, 3))):
        expression = draw(st.sampled_from(sorted(EXPRESSIONS)))
        template += f"/{index}#" + expression % f"v{index}" + "#"
        if draw(st.booleans()) or not expression.startswith(("{/", "{;", "{?", "{.")):
            values[f"v{index}"] = draw(EXPRESSIONS[expression])
    expression = draw(st.sampled_from(sorted(LAST)))
    values["last"] = draw(LAST[expression])
    return template + "/" + expression % "last", values


@given(cases())
def test_matching_inverts_expansion(case):
    """We demand it of every value that its place in the template allows."""
    template, values = case
    made = UriTemplate(template)
    assert values == made.match(made.expand(values))


@given(st.text(), st.text(st.characters()))
def test_any_text_is_a_template_or_refused_and_matches_or_not(template, uri):
    """Templates come from authors and servers, URIs from whomever."""
    try:
        made = UriTemplate(template)
    except BadTemplate:
        return
    values = made.match(uri)
    assert values is None or set(values) <= set(made.names)
    assert isinstance(made.expand(values or {}), str)


pieces = st.lists(
    st.sampled_from(
        ["{a}", "{b}", "{+a}", "{/a}", "{/a*}", "{.a,b}", "{?a}", "{&b}", "{#a}", "{;a}", "/", "-"]
    ),
    max_size=5,
).map("".join)
uris = st.text(st.sampled_from("ab/-.?&#;=,%2"), max_size=12)


@given(pieces, uris)
def test_what_is_matched_expands_to_something_that_matches_alike(template, uri):
    """Whatever reading is chosen, it is a reading, where no two expressions share a variable."""
    made = UriTemplate(template)
    values = made.match(uri)
    if values and len(re.findall("[ab]", template)) == len(made.names) and "%2" not in uri:
        assert values == made.match(made.expand(values))


@given(pieces, uris)
def test_both_ways_of_matching_agree(template, uri):
    """The fast one is a possessive expression, the thorough one tries everything at once."""
    made = UriTemplate(template)
    parts = _join_neighbours(made._parts)
    text = _quote(uri, reserved=True)
    fast, slow = made._spans(text), _search_spans(parts, text)
    assert (None if fast is None else list(fast)) == slow


@pytest.mark.covers("resources.templates.places")
@given(pieces, uris)
def test_no_value_leads_anywhere_else(template, uri):
    """A matched path never climbs, and a segment never holds a slash."""
    values = UriTemplate(template).match(uri) or {}
    queries = {name for name in ("a", "b") if re.search(r"\{[?&#][^}]*" + name, template)}
    for name in values.keys() - queries:
        found = values[name] if isinstance(values[name], list) else [values[name]]
        assert not any(has_dots(value) for value in found)
        assert "{+" in template or not any("/" in value for value in found)
