"""Model selection, and the reasons about the other models."""

import pytest

from isthmus.host.sampling.models import Model, Models, Weights
from isthmus.host.sampling.selection import Need, NoModel, select
from isthmus.wire import ModelHint, ModelPreferences

CHEAP = Model(
    id="claude-haiku", provider="p", cost_in=1, cost_out=1, tok_s=200, intelligence=10, tags=("s",)
)
MIDDLE = Model(
    id="claude-sonnet", provider="p", cost_in=5, cost_out=5, tok_s=100, intelligence=50, tools=True
)
CLEVER = Model(
    id="gpt-big", provider="q", cost_in=9, cost_out=9, tok_s=20, intelligence=90,
    inputs=("text", "image"), aliases=("Giant",), family="gpt", context=100,
)  # fmt: skip
ALL = Models([CHEAP, MIDDLE, CLEVER], equivalents={"mini": ["s"], "opus": ["gpt-big"]})


def preferring(*hints, **priorities):
    """Preferences of a server."""
    given = {"hints": [ModelHint(name=name) for name in hints]} if hints else {}
    return ModelPreferences(**given, **priorities)


def chosen(*hints, **priorities):
    """The id of the model chosen from all."""
    return select(ALL, Need(), preferring(*hints, **priorities)).chosen().id


@pytest.mark.covers("hostsampling.selection.priorities")
def test_priorities_choose():
    """The spec: the three priorities say what matters in the choice of a model."""
    assert "claude-haiku" == chosen(cost_priority=1.0)
    assert "claude-haiku" == chosen(speed_priority=1.0)
    assert "gpt-big" == chosen(intelligence_priority=1.0, cost_priority=0.1)


@pytest.mark.covers("hostsampling.selection.hints-are-substrings")
def test_a_hint_is_part_of_a_models_name_whatever_its_case():
    """The spec: hints are treated as substrings; aliases and families are names, too."""
    assert "claude-sonnet" == chosen("SONNET", cost_priority=1.0)
    assert "gpt-big" == chosen("giant", cost_priority=1.0)
    assert "gpt-big" == chosen("gpt", cost_priority=1.0)


@pytest.mark.covers("hostsampling.selection.hints-are-substrings")
def test_a_model_is_not_meant_because_its_name_lies_in_the_hint():
    """We demand: the hint lies in the name, never the other way round."""
    assert "claude-haiku" == chosen("gpt-big-and-bigger", cost_priority=1.0)


@pytest.mark.covers("hostsampling.selection.hints-in-order")
def test_hints_count_in_their_order_and_priorities_choose_among_what_they_mean():
    """The spec: several hints are evaluated in order, priorities choose among candidates."""
    assert "gpt-big" == chosen("nobody", "gpt", "claude", cost_priority=1.0)
    assert "claude-sonnet" == chosen("claude", "gpt", intelligence_priority=1.0)
    assert "claude-haiku" == chosen("", " ", cost_priority=1.0)


@pytest.mark.covers("hostsampling.selection.equivalents")
def test_a_hint_may_mean_models_that_do_as_well():
    """The spec: clients MAY map hints to equivalent models, by tag or by id."""
    assert "claude-haiku" == chosen("gpt-4o-mini", intelligence_priority=1.0)
    selection = select(ALL, Need(), preferring("claude-opus-9", cost_priority=1.0))
    assert "gpt-big" == selection.chosen().id
    assert selection.equivalent
    assert "hint (models that do as well): claude-opus-9" == selection.lines()[0]


def test_an_equivalent_that_cannot_be_used_leaves_the_next_hint_its_turn():
    """We demand: a hint whose equivalents are excluded counts for nothing."""
    preferences = preferring("opus", "sonnet", cost_priority=1.0)
    assert "claude-sonnet" == select(ALL, Need(tools=True), preferences).chosen().id


def test_where_nothing_is_said_the_weights_of_the_catalog_count():
    """We demand: missing priorities are nothing, and all missing are the configured ones."""
    clever = Models(ALL.all, weights=Weights(cost=0, speed=0, intelligence=1))
    assert "gpt-big" == select(clever, Need()).chosen().id
    assert "gpt-big" == select(clever, Need(), preferring("g")).chosen().id
    assert "claude-haiku" == select(clever, Need(), preferring(cost_priority=1)).chosen().id


def test_of_equals_the_first_in_the_catalog_is_chosen():
    """We demand: ties are broken by the order of the file."""
    twins = Models([Model(id="b", provider="p"), Model(id="a", provider="p")])
    assert "b" == select(twins, Need()).chosen().id


@pytest.mark.covers("hostsampling.selection.excluded")
def test_every_model_that_is_left_out_has_its_reason():
    """We demand: who finds no permitted model learns why, of each."""
    off = Model(id="off", provider="p", enabled=False)
    models = Models([*ALL, off, Model(id="mute", provider="p", outputs=("audio",))])
    selection = select(
        models,
        Need(inputs=frozenset({"text"}), tokens=90, max_tokens=20),
        forbidden={"claude-haiku": "rule 'no-haiku'"},
        unhealthy={"nowhere": "no answer"},
    )
    assert "claude-sonnet" == selection.chosen().id
    assert {
        "claude-haiku": "policy: rule 'no-haiku'",
        "claude-sonnet": "",
        "gpt-big": "context of 100 tokens, and about 90 are read and up to 20 written",
        "off": "disabled in the catalog",
        "mute": "it writes no text",
    } == {one.id: one.excluded for one in selection.considered}
    assert ("claude-sonnet",) == selection.possible


def test_no_model_is_an_error_with_all_reasons():
    """We demand: "no permitted model" lists each exclusion."""
    need = Need(inputs=frozenset({"text", "audio"}), tools=True)
    selection = select(ALL, need, unhealthy={"q": "it said 503"})
    with pytest.raises(NoModel, match=r"claude-haiku: it reads no audio; .*'q': it said 503"):
        selection.chosen()
    assert None is selection.model
    with pytest.raises(NoModel, match="the catalog of models is empty"):
        select(Models(), Need()).chosen()
    tools = select(Models([CHEAP]), Need(tools=True))
    assert "claude-haiku: not possible: it cannot ask for tools" == tools.lines()[-1]


def test_the_lines_say_how_it_came_about():
    """We demand: a person can check the choice."""
    selection = select(ALL, Need(), preferring("claude", cost_priority=1))
    assert (
        "hint: claude",
        "weights: cost 1, speed 0, intelligence 0",
        "claude-haiku: 1.000 (cost 1.00, speed 1.00, intelligence 0.00)",
        "claude-sonnet: 0.500 (cost 0.50, speed 0.50, intelligence 0.50)",
        "gpt-big: 0.000 (cost 0.00, speed 0.00, intelligence 1.00); not what the hint means",
    ) == selection.lines()
    assert "no hint counted" == select(ALL, Need()).lines()[0]


def test_priorities_beyond_the_ends_are_cut():
    """We demand: nothing that a server sends upsets the choice."""
    assert "claude-haiku" == chosen(cost_priority=7, intelligence_priority=-3)
    assert "claude-haiku" == chosen(cost_priority=float("nan"))
