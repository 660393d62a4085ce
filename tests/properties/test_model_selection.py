"""What always holds of the choice of a model, whatever the catalog and the preferences."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.host.sampling.models import Model, Models, Weights
from isthmus.host.sampling.selection import Need, select
from isthmus.wire import ModelHint, ModelPreferences
from support.examples import count_examples

WORDS = ["claude", "gpt", "haiku", "opus", "mini", "llama"]
FIGURES = st.none() | st.integers(1, 6).map(float)
PRIORITIES = ("cost_priority", "speed_priority", "intelligence_priority")

MODELS = st.builds(
    Model,
    id=st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map("-".join),
    provider=st.sampled_from(["p", "q"]),
    aliases=st.lists(st.sampled_from(WORDS), max_size=1).map(tuple),
    context=st.sampled_from([10, 1000]),
    inputs=st.sampled_from([("text",), ("text", "image")]),
    tools=st.booleans(),
    cost_in=FIGURES,
    cost_out=FIGURES,
    tok_s=FIGURES,
    ttft_ms=FIGURES,
    intelligence=FIGURES,
    enabled=st.sampled_from([True, True, False]),
    tags=st.lists(st.sampled_from(["s", "m"]), max_size=1).map(tuple),
)
CATALOGS = st.builds(
    Models,
    st.lists(MODELS, max_size=7, unique_by=lambda model: model.id),
    weights=st.builds(
        Weights, cost=st.floats(0, 1), speed=st.floats(0, 1), intelligence=st.floats(0, 1)
    ),
    equivalents=st.sampled_from([{}, {"haiku": ["s"], "opus": ["m"]}]),
)
NEEDS = st.builds(
    Need,
    inputs=st.sampled_from([frozenset({"text"}), frozenset({"text", "image"})]),
    tools=st.booleans(),
    tokens=st.sampled_from([0, 500]),
)
HINTS = st.lists(st.sampled_from([*WORDS, "", "unheard-of"]), max_size=4)
WEIGHTS = st.fixed_dictionaries({}, optional=dict.fromkeys(PRIORITIES, st.floats(0, 1)))


def preferring(hints, weights):
    """Preferences of a server."""
    return ModelPreferences(hints=[ModelHint(name=name) for name in hints], **weights)


PREFERENCES = st.builds(preferring, HINTS, WEIGHTS)
BARRED = st.lists(st.sampled_from(WORDS)).map(lambda ids: dict.fromkeys(ids, "a rule"))


def figures(models, model):
    """What one wants little of, of a model: money, time and stupidity."""
    of = models.measured[model.id]
    return {
        "cost_priority": of.price,
        "speed_priority": of.seconds,
        "intelligence_priority": -of.intelligence,
    }


@given(CATALOGS, NEEDS, PREFERENCES, BARRED)
@settings(max_examples=count_examples(60))
def test_the_choice_is_the_same_each_time(models, need, preferences, forbidden):
    """We demand: selection is a function of what it is given."""
    first = select(models, need, preferences, forbidden=forbidden)
    assert first == select(models, need, preferences, forbidden=forbidden)
    again = Models(models.all, weights=models.weights, equivalents=models.equivalents)
    assert first == select(again, need, preferences, forbidden=forbidden)


@given(CATALOGS, NEEDS, PREFERENCES, BARRED)
@settings(max_examples=count_examples(60))
def test_what_is_excluded_is_never_chosen(models, need, preferences, forbidden):
    """We demand: policy, what is disabled and what cannot do it are out, and only those."""
    selection = select(models, need, preferences, forbidden=forbidden)
    fit = [
        model
        for model in models
        if model.enabled
        and model.id not in forbidden
        and need.inputs <= set(model.inputs)
        and (model.tools or not need.tools)
        and need.tokens + need.max_tokens <= model.context
    ]
    assert tuple(model.id for model in fit) == selection.possible
    assert (selection.model in fit) == bool(fit)


@pytest.mark.covers("hostsampling.selection.exchange")
@given(CATALOGS, NEEDS, HINTS, WEIGHTS, st.tuples(st.sampled_from(PRIORITIES), st.floats(0, 1)))
@settings(max_examples=count_examples(60))
def test_raising_one_priority_never_makes_that_worse(models, need, hints, weights, raised):
    """We demand: a higher cost priority alone never chooses a dearer model; likewise the others."""
    which, more = raised
    low = {**weights, which: weights.get(which, 0.0)}
    high = {**low, which: max(low[which], more)}
    before = select(models, need, preferring(hints, low)).model
    after = select(models, need, preferring(hints, high)).model
    assert (before is None) == (after is None)
    if before is not None and after is not None:
        assert figures(models, after)[which] <= figures(models, before)[which]


@pytest.mark.covers("hostsampling.selection.permutation")
@given(CATALOGS, NEEDS, PREFERENCES, st.randoms(use_true_random=False))
@settings(max_examples=count_examples(60))
def test_the_order_of_the_catalog_decides_between_equals_only(models, need, preferences, random):
    """We demand: another order chooses a model of the same score, or the same."""
    shuffled = list(models)
    random.shuffle(shuffled)
    other = Models(shuffled, weights=models.weights, equivalents=models.equivalents)
    one, two = select(models, need, preferences), select(other, need, preferences)
    assert {each.id: each for each in one.considered} == {each.id: each for each in two.considered}
    scores = {each.id: each.score for each in one.considered}
    assert scores.get(one.model and one.model.id) == scores.get(two.model and two.model.id)


@pytest.mark.covers("hostsampling.selection.hints-in-order")
@given(
    CATALOGS, NEEDS, HINTS, WEIGHTS,
    st.tuples(st.integers(0, 4), st.sampled_from(["", "unheard-of"])),
)  # fmt: skip
@settings(max_examples=count_examples(60))
def test_a_hint_that_means_nothing_changes_nothing(models, need, hints, weights, added):
    """We demand: it does not matter where it stands."""
    place, nothing = added
    more = [*hints[:place], nothing, *hints[place:]]
    one = select(models, need, preferring(hints, weights))
    assert one == select(models, need, preferring(more, weights))


@pytest.mark.covers("hostsampling.selection.hints-in-order")
@given(CATALOGS, NEEDS, HINTS, WEIGHTS, WEIGHTS)
@settings(max_examples=count_examples(60))
def test_an_earlier_hint_that_means_something_beats_later_ones(models, need, hints, one, other):
    """The spec: hints are evaluated in order; priorities choose among candidates only."""
    for count in range(1, len(hints) + 1):
        alone = select(models, need, preferring(hints[count - 1 : count], one))
        if alone.hint:
            meant = {each.id for each in alone.considered if each.hinted}
            model = select(models, need, preferring(hints, other)).chosen()
            assert model.id in meant
            return
