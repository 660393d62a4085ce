"""Forms and their answers, whichever they are."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.client.features.elicitation import fill_form
from isthmus.core.elicitation import find_form_flaw
from isthmus.errors import Misbehaved, UsageError
from support.examples import count_examples

texts = st.text(max_size=5)
choices = st.lists(st.text(min_size=1, max_size=3), min_size=1, max_size=4, unique=True)


def blank(**members):
    return st.fixed_dictionaries(
        {name: each if isinstance(each, st.SearchStrategy) else st.just(each)
         for name, each in members.items()}
    )  # fmt: skip


def options(names):
    return [{"const": name, "title": name.upper()} for name in names]


BLANKS = st.one_of(
    blank(type="string", minLength=st.integers(0, 2)),
    blank(type="string", enum=choices),
    blank(type="string", oneOf=choices.map(options)),
    blank(type="array", items=blank(type="string", enum=choices)),
    blank(type="array", items=blank(anyOf=choices.map(options))),
    blank(type=st.sampled_from(["number", "integer"]), minimum=st.integers(-3, 3)),
    blank(type="boolean"),
)
ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-4, 4) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
FORMS = st.fixed_dictionaries(
    {
        "type": st.just("object"),
        "properties": st.dictionaries(texts, BLANKS, max_size=4),
    }
)


@settings(max_examples=count_examples(200), deadline=None)
@given(FORMS, st.dictionaries(texts, ANY, max_size=4))
def test_an_answer_is_sent_as_it_is_or_refused_with_member_and_rule(form, answer):
    """Spec 2026-07-28 client/elicitation#form-mode-security: nothing else can happen."""
    assert find_form_flaw(form) is None
    try:
        sent = fill_form(answer, form)
    except UsageError as wrong:
        assert "breaks" in str(wrong)  # noqa: PT017 - either outcome is a good one
    else:
        assert answer == sent


@settings(max_examples=count_examples(300), deadline=None)
@given(ANY | st.dictionaries(st.sampled_from(["type", "properties", "required", "anyOf"]), ANY))
def test_any_schema_is_a_form_or_is_explained(schema):
    """Ours: a server can send anything, and nothing of it raises."""
    wrong = find_form_flaw(schema)

    assert wrong is None or isinstance(wrong, str)
    if wrong is None:
        json.dumps(schema)
        try:
            fill_form({}, schema)
        except (UsageError, Misbehaved):
            return
