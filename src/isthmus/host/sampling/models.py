"""Models file (``models.toml``): what each model can do, what it costs and how fast it is.

The file belongs to the user. Figures that it leaves out count as the median of those it has, so that
a model nobody measured is neither favoured nor avoided.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from isthmus.host.model import toml
from isthmus.host.model.errors import ConfigError
from isthmus.host.providers.provider import ProviderEntry

Modality: TypeAlias = Literal["text", "image", "audio"]

T = TypeVar("T", bound=Struct)
SPEED_ANSWER_TOKENS = 256  # the time of such an answer is a model's speed

# its figures show the form; they are nobody's prices
EXAMPLE_FILE = Path(__file__).with_name("models.example.toml")


class Weights(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Weights of cost, speed and intelligence where a server says nothing, from 0 to 1.

    Attributes:
        cost: the weight of a low price.
        speed: the weight of a fast answer.
        intelligence: the weight of ability.
    """

    cost: float = 0.3
    speed: float = 0.3
    intelligence: float = 0.4


DEFAULT_WEIGHTS = Weights()


class Model(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One model.

    Attributes:
        id: its name here, and in the catalog's file.
        provider: the name of the provider that has it.
        remote: the provider's own name of it; empty where that is ``id``.
        aliases: other names that a server's hint may mean it by.
        family: what it is one of, such as ``claude``.
        context: tokens it can read and write together.
        max_output: tokens it can write at once.
        inputs: what it reads, and ``outputs`` what it writes.
        outputs: the kinds of content that it writes.
        tools: whether it can ask for tools.
        structured: whether it can be made to obey a JSON schema.
        cost_in: dollars for a million tokens read; ``cost_out`` written; None where unknown.
        cost_out: dollars for a million tokens written; None where unknown.
        tok_s: tokens it writes in a second; None where unknown.
        ttft_ms: milliseconds until the first one; None where unknown.
        intelligence: from 0 to 100, on whatever scale the user keeps; None where unknown.
        enabled: whether it may be used at all.
        tags: words of the user's own, for rules and equivalents.
    """

    id: str
    provider: str
    remote: str = ""
    aliases: tuple[str, ...] = ()
    family: str = ""
    context: int = 8192
    max_output: int | None = None
    inputs: tuple[Modality, ...] = ("text",)
    outputs: tuple[Modality, ...] = ("text",)
    tools: bool = False
    structured: bool = False
    cost_in: float | None = None
    cost_out: float | None = None
    tok_s: float | None = None
    ttft_ms: float | None = None
    intelligence: float | None = None
    enabled: bool = True
    tags: tuple[str, ...] = ()

    def wrong(self) -> tuple[str, str] | None:
        """The key whose value cannot be, and why; None where all is well."""
        if not self.id.strip():
            return "id", "a model has a name"
        for key in ("context", "max_output", "tok_s"):
            value = getattr(self, key)
            if value is not None and not 0 < value < float("inf"):
                return key, f"{value} is not more than 0"
        for key in ("cost_in", "cost_out", "ttft_ms"):
            value = getattr(self, key)
            if value is not None and not 0 <= value < float("inf"):
                return key, f"{value} is negative or infinite"
        if self.intelligence is not None and not 0 <= self.intelligence <= 100:
            return "intelligence", f"{self.intelligence} is not between 0 and 100"
        return None

    @property
    def called(self) -> str:
        """The provider's own name of it."""
        return self.remote or self.id

    def cost(self, tokens_in: int, tokens_out: int) -> int | None:
        """The cost of a request in micro-dollars; None where a price is not known.

        Args:
            tokens_in: tokens that the model reads.
            tokens_out: tokens that it writes.
        """
        if self.cost_in is None or self.cost_out is None:
            return None
        # dollars for a million tokens are micro-dollars for one
        return round(self.cost_in * tokens_in + self.cost_out * tokens_out)


class ModelFigures(Struct, frozen=True, gc=False):
    """Figures of a model that selection compares, with medians for unknown ones.

    Attributes:
        price: dollars for a million tokens, three read for one written.
        seconds: how long an answer takes.
        intelligence: from 0 to 100.
        names: its id, aliases and family in lower case.
    """

    price: float
    seconds: float
    intelligence: float
    names: tuple[str, ...]


class Models:
    """The catalog of models, in the order of its file.

    Args:
        models: the models.
        weights: what matters where a server says nothing.
        equivalents: by a word in a server's hint, the tags or ids of models that do as well.
        providers: how they are reached, by name.
        source: where they come from, for messages.

    Raises:
        ConfigError: two models have one id, or a figure cannot be.
    """

    def __init__(
        self,
        models: Iterable[Model] = (),
        *,
        weights: Weights = DEFAULT_WEIGHTS,
        equivalents: Mapping[str, Sequence[str]] | None = None,
        providers: Mapping[str, ProviderEntry] | None = None,
        source: str = "models",
    ) -> None:
        self.all = tuple(models)
        self.weights = weights
        self.equivalents = {word.lower(): tuple(to) for word, to in (equivalents or {}).items()}
        self.providers = dict(providers or {})
        self.source = source
        self.by_id: dict[str, Model] = {}
        for model in self.all:
            wrong = model.wrong()
            if wrong:
                raise ConfigError(f"{source}: model {model.id!r}, {wrong[0]}: {wrong[1]}")
            if model.id in self.by_id:
                raise ConfigError(f"{source}: two models are called {model.id!r}: rename one")
            self.by_id[model.id] = model
        self.measured = compute_figures(self.all)

    def __iter__(self) -> Iterator[Model]:
        return iter(self.all)

    def __len__(self) -> int:
        return len(self.all)

    def __getitem__(self, id: str) -> Model:
        return self.by_id[id]

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "Models":
        """The models that the file at ``path`` lists, in TOML.

        Args:
            path: the catalog's file, in TOML.

        Raises:
            ConfigError: there is no such file, or it says what cannot be: with line and key.
        """
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path}: the models cannot be read: {error}") from error
        return cls.parse(text, str(path))

    @classmethod
    def parse(cls, text: str, source: str = "models.toml") -> "Models":
        """The models that a text in TOML lists.

        Args:
            text: the text.
            source: name of the file in errors.

        Raises:
            ConfigError: it says what cannot be: with line and key.
        """
        try:
            data = toml.parse_toml(text)
        except toml.BadToml as error:
            raise ConfigError(f"{source}: {error}") from error
        unknown = set(data) - {"weights", "equivalents", "providers", "model"}
        if unknown:
            key = min(unknown)
            raise ConfigError(
                f"{source}, line {find_line(text, key)}: {key!r} is none of weights, equivalents, "
                "providers and [[model]]"
            )
        page = ModelsFile(text, source)
        tables = page.tables(data)
        return cls(
            [page.model(number, table) for number, table in enumerate(tables, 1)],
            weights=page.entry(data.get("weights", {}), Weights, "weights"),
            equivalents=page.entry(
                data.get("equivalents", {}), dict[str, list[str]], "equivalents"
            ),
            providers={
                name: page.entry(table, ProviderEntry, f"providers.{name}")
                for name, table in page.entry(
                    data.get("providers", {}), dict[str, dict[str, Any]], "providers"
                ).items()
            },
            source=source,
        )


class ModelsFile:
    """Reads a models file, and says where in it something is wrong."""

    def __init__(self, text: str, source: str) -> None:
        self._text = text
        self._source = source
        self._seen: dict[str, int] = {}

    def tables(self, data: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The tables of the models."""
        tables = data.get("model", [])
        if isinstance(tables, list) and all(isinstance(table, dict) for table in tables):
            return tables
        line = find_line(self._text, "model")
        raise ConfigError(f"{self._source}, line {line}: models are tables: [[model]] above each")

    def model(self, number: int, table: dict[str, Any]) -> Model:
        """The model of one table."""
        name = table.get("id")
        where = f"model {name!r}" if isinstance(name, str) else f"model {number}"
        model: Model = self._convert(table, Model, where, number)
        wrong = model.wrong()
        if wrong:
            raise self._error(where, wrong[0], wrong[1], number)
        if model.id in self._seen:
            raise self._error(
                where, "id", f"model {self._seen[model.id]} of the file has this id, too", number
            )
        self._seen[model.id] = number
        return model

    def entry(self, table: Any, kind: type[T] | Any, where: str) -> Any:
        """Another table of the file."""
        return self._convert(table, kind, where, 0)

    def _convert(self, table: Any, kind: Any, where: str, number: int) -> Any:
        try:
            return msgspec.convert(table, kind)
        except msgspec.ValidationError as error:
            said = str(error)
            key = re.search(r"`\$\.([\w-]+)|field `([\w-]+)`", said)
            known = key and (key[1] or key[2])
            words = said.split(" - at ", maxsplit=1)[0].replace("`", "'")
            words = words.replace("Object missing", "it is missing the").replace("Object", "it")
            if "unknown field" in said:
                words += f"; known are {', '.join(kind.__struct_fields__)}"
            raise self._error(where, known or "", words, number) from error

    def _error(self, where: str, key: str, words: str, number: int) -> ConfigError:
        line = find_line(self._text, key, where, number)
        keyed = f", {key}" if key else ""
        return ConfigError(f"{self._source}, line {line}: {where}{keyed}: {words}")


def find_line(text: str, key: str, table: str = "", number: int = 0) -> int:
    """Find the line that a key stands in, or its table; 1 where neither is found.

    Args:
        text: the file.
        key: the key.
        table: the header above it, where it is not one of the models.
        number: which of the models it belongs to, from 1; 0 for none.
    """
    header = r"\s*\[\[\s*model\s*\]\]" if number else rf"\s*\[\s*{re.escape(table)}\s*\]"
    began, count = (1, 0) if not number and not table else (0, 0)
    for line, words in enumerate(text.splitlines(), 1):
        if began and key and re.match(rf"\s*\[*\"?{re.escape(key)}\"?\s*[\]=.]", words):
            return line
        if re.match(header, words):
            count += 1
            began = line if count >= number and not began else began
        elif began > 1 and words.lstrip().startswith("["):
            break
        if count > number > 0:
            break
    return began or 1


def compute_figures(models: Sequence[Model]) -> dict[str, ModelFigures]:
    """Compute the figures of all models, by id."""
    prices = {model.id: blend_price(model) for model in models}
    price = compute_median(prices.values())
    speed, first = (
        compute_median(m.tok_s for m in models),
        compute_median(m.ttft_ms for m in models),
    )
    clever = compute_median(m.intelligence for m in models)
    found: dict[str, ModelFigures] = {}
    for model in models:
        rate = fill_unknown(model.tok_s, speed)
        wait = fill_unknown(model.ttft_ms, first) / 1000
        names = (model.id, *model.aliases, model.family)
        found[model.id] = ModelFigures(
            fill_unknown(prices[model.id], price),
            wait + (SPEED_ANSWER_TOKENS / rate if rate else 0.0),
            fill_unknown(model.intelligence, clever),
            tuple(name.lower() for name in names if name),
        )
    return found


def blend_price(model: Model) -> float | None:
    """One price for both ways: three tokens read for one written; None where one is unknown."""
    if model.cost_in is None or model.cost_out is None:
        return None
    return 0.75 * model.cost_in + 0.25 * model.cost_out


def compute_median(values: Iterable[float | None]) -> float:
    """Compute the median of the known values; 0.0 where there are none."""
    found = [value for value in values if value is not None]
    return median(found) if found else 0.0


def fill_unknown(value: float | None, otherwise: float) -> float:
    """Replace an unknown figure."""
    return otherwise if value is None else value
