"""Model selection: a pure function of the models, the need, and a server's preferences.

First what cannot or may not be used is left out, each with its reason. Then the first of the
server's hints that means any of what is left narrows it down, and the three priorities decide among
those. Scores are whole numbers, so that nothing depends on how floating point rounds.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from isthmus.host.model.errors import HostError
from isthmus.host.sampling.models import Modality, Model, Models
from isthmus.wire import ModelHint, ModelPreferences

WEIGHT_SCALE = 1_000_000  # a weight of 1 as a whole number


class NoModel(HostError):
    """No model may be used for the request; the message says why of each one."""


class Need(Struct, frozen=True, kw_only=True):
    """The abilities that a request needs of a model.

    Attributes:
        inputs: what it has to read.
        tools: whether it has to be able to ask for tools.
        tokens: how long the prompt is, about.
        max_tokens: the most that it is to write.
    """

    inputs: frozenset[Modality] = frozenset({"text"})
    tools: bool = False
    tokens: int = 0
    max_tokens: int = 1


class ConsideredModel(Struct, frozen=True, kw_only=True):
    """The outcome of one model in a selection.

    Attributes:
        id: the model.
        excluded: why it cannot be chosen; empty where it can.
        hinted: whether the hint that counted means it; True for all where none counted.
        cost: what part of the others is dearer, from 0 to 1; likewise ``speed`` and
            ``intelligence``: what part is slower, what part less intelligent.
        score: the sum of the three by weight.
    """

    id: str
    excluded: str = ""
    hinted: bool = False
    cost: float = 0.0
    speed: float = 0.0
    intelligence: float = 0.0
    score: float = 0.0

    def __str__(self) -> str:
        if self.excluded:
            return f"{self.id}: not possible: {self.excluded}"
        scores = f"cost {self.cost:.2f}, speed {self.speed:.2f}"
        scores = f"{scores}, intelligence {self.intelligence:.2f}"
        left = "" if self.hinted else "; not what the hint means"
        return f"{self.id}: {self.score:.3f} ({scores}){left}"


class Selection(Struct, frozen=True, kw_only=True):
    """A selected model, and the reasons.

    Attributes:
        model: the model; None where there is none.
        hint: the hint that counted; empty for none.
        equivalent: whether it counted for models that do as well.
        weights: of cost, speed and intelligence.
        considered: every model of the catalog, in its order.
    """

    model: Model | None
    hint: str = ""
    equivalent: bool = False
    weights: tuple[float, float, float] = (0.0, 0.0, 0.0)
    considered: tuple[ConsideredModel, ...] = ()

    @property
    def possible(self) -> tuple[str, ...]:
        """The ids of all models that may be used."""
        return tuple(one.id for one in self.considered if not one.excluded)

    def chosen(self) -> Model:
        """The model.

        Raises:
            NoModel: there is none.
        """
        if self.model is not None:
            return self.model
        reasons = "; ".join(f"{one.id}: {one.excluded}" for one in self.considered)
        raise NoModel(f"no permitted model: {reasons or 'the catalog of models is empty'}")

    def lines(self) -> tuple[str, ...]:
        """The reasons of the selection, a line each, for a person."""
        cost, speed, clever = self.weights
        weights = f"weights: cost {cost:g}, speed {speed:g}, intelligence {clever:g}"
        kind = "hint (models that do as well)" if self.equivalent else "hint"
        head = [f"{kind}: {self.hint}"] if self.hint else ["no hint counted"]
        return (*head, weights, *(str(one) for one in self.considered))


def select(
    models: Models,
    need: Need,
    preferences: ModelPreferences | None = None,
    *,
    forbidden: Mapping[str, str] | None = None,
    unhealthy: Mapping[str, str] | None = None,
) -> Selection:
    """Select a model.

    Args:
        models: the catalog.
        need: what it has to be able to do.
        preferences: what the server prefers.
        forbidden: models that policy does not allow, with the reason.
        unhealthy: providers that do not answer at the moment, with the reason.
    """
    forbidden, unhealthy = forbidden or {}, unhealthy or {}
    why = {model.id: find_exclusion(model, need, forbidden, unhealthy) for model in models}
    possible = [model for model in models if not why[model.id]]
    hint, pool, equivalent = apply_hints(models, possible, list_hints(preferences))
    weights = choose_weights(models, preferences)
    ranks = rank_models(models, possible)
    best: Model | None = None
    most = -1
    for model in pool:
        score = sum(w * r for w, r in zip(weights, ranks[model.id], strict=True))
        if score > most:  # of equals, the first in the catalog
            best, most = model, score
    within = {model.id for model in pool}
    scale = max(len(possible) - 1, 1)
    return Selection(
        model=best,
        hint=hint,
        equivalent=equivalent,
        weights=(weights[0] / WEIGHT_SCALE, weights[1] / WEIGHT_SCALE, weights[2] / WEIGHT_SCALE),
        considered=tuple(
            ConsideredModel(id=model.id, excluded=why[model.id])
            if why[model.id]
            else score_model(model.id, ranks[model.id], weights, scale, hinted=model.id in within)
            for model in models
        ),
    )


def score_model(
    id: str, ranks: tuple[int, int, int], weights: tuple[int, int, int], scale: int, *, hinted: bool
) -> ConsideredModel:
    """Score a model that can be chosen."""
    score = sum(w * r for w, r in zip(weights, ranks, strict=True))
    cost, speed, clever = (rank / scale for rank in ranks)
    return ConsideredModel(
        id=id,
        hinted=hinted,
        cost=cost,
        speed=speed,
        intelligence=clever,
        score=score / WEIGHT_SCALE / scale,
    )


def find_exclusion(
    model: Model, need: Need, forbidden: Mapping[str, str], unhealthy: Mapping[str, str]
) -> str:
    """The reason why a model cannot be used; empty where it can."""
    if not model.enabled:
        return "disabled in the catalog"
    if model.id in forbidden:
        return f"policy: {forbidden[model.id]}"
    if model.provider in unhealthy:
        return f"provider {model.provider!r}: {unhealthy[model.provider]}"
    return find_incapability(model, need)


def find_incapability(model: Model, need: Need) -> str:
    """The ability that a model lacks; empty where it lacks none."""
    missing = need.inputs.difference(model.inputs)
    if missing:
        return f"it reads no {' and no '.join(sorted(missing))}"
    if "text" not in model.outputs:
        return "it writes no text"
    if need.tools and not model.tools:
        return "it cannot ask for tools"
    if need.tokens + need.max_tokens > model.context:
        return (
            f"context of {model.context} tokens, and about {need.tokens} are read and up to "
            f"{need.max_tokens} written"
        )
    return ""


def list_hints(preferences: ModelPreferences | None) -> Sequence[str]:
    """The server's hints in their order, empty ones left out."""
    given: Sequence[ModelHint] = (preferences.hints or ()) if preferences else ()
    # spec 2025-11-25 client/sampling#model-hints: substrings, evaluated in order of preference
    return [hint.name for hint in given if hint.name and hint.name.strip()]


def apply_hints(
    models: Models, possible: list[Model], names: Sequence[str]
) -> tuple[str, list[Model], bool]:
    """The first hint that means any of the possible models, those models, and in which way."""
    for hint in names:
        low = hint.strip().lower()
        # the hint in the model's name, never the name in the hint
        pool = [m for m in possible if any(low in name for name in models.measured[m.id].names)]
        if pool:
            return hint, pool, False
        # spec 2025-11-25 client/sampling#model-hints: clients MAY map hints to equivalent models
        pool = [m for m in possible if stands_for(models, low, m)]
        if pool:
            return hint, pool, True
    return "", possible, False


def stands_for(models: Models, hint: str, model: Model) -> bool:
    """Whether a model is an equivalent of a hint: by the first word that is in the hint."""
    for word, does in models.equivalents.items():
        if word in hint:
            return model.id in does or not set(does).isdisjoint(model.tags)
    return False


def choose_weights(models: Models, preferences: ModelPreferences | None) -> tuple[int, int, int]:
    """Choose the weights of cost, speed and intelligence, as whole numbers."""
    given = (
        (preferences.cost_priority, preferences.speed_priority, preferences.intelligence_priority)
        if preferences
        else ()
    )
    if not any(isinstance(value, int | float) for value in given):
        own = models.weights
        given = (own.cost, own.speed, own.intelligence)
    cost, speed, clever = (to_whole_number(value) for value in given)
    return cost, speed, clever


def to_whole_number(value: object) -> int:
    """Convert a weight to a whole number; a missing one is 0, one beyond 0 and 1 is cut."""
    if not isinstance(value, int | float) or value != value:  # noqa: PLR0124 - only NaN differs
        return 0
    return round(min(max(value, 0), 1) * WEIGHT_SCALE)


def rank_models(models: Models, possible: Sequence[Model]) -> dict[str, tuple[int, int, int]]:
    """Count how many of the possible models are dearer, slower and less intelligent than each.

    Among all that are possible, whatever the hint: scores do not depend on it.
    """
    figures = [models.measured[model.id] for model in possible]
    dearer = count_beaten([-one.price for one in figures])
    slower = count_beaten([-one.seconds for one in figures])
    duller = count_beaten([one.intelligence for one in figures])
    return {model.id: (dearer[at], slower[at], duller[at]) for at, model in enumerate(possible)}


def count_beaten(values: Sequence[float]) -> list[int]:
    """Count for each value how many others are less."""
    below: dict[float, int] = {}
    for place, value in enumerate(sorted(values)):
        below.setdefault(value, place)
    return [below[value] for value in values]
