"""Surface of a server: its tools, resources and prompts as a snapshot, and what a change of it breaks.

:func:`read_surface` reads it through a client, :func:`compare_surfaces` says field by field what is
different, and whether callers of the server notice.
"""

import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET

from isthmus.client.client import Client
from isthmus.core.text import show_invisible
from isthmus.errors import CapabilityMissing, Refused

Surface: TypeAlias = dict[str, dict[str, Any]]
"""Items that a server offers: by their kind (``tools``, …), then by name or URI, as on the wire."""

Effect: TypeAlias = Literal["breaking", "may break", "compatible"]
"""Meaning of a change for callers that know the surface as it was."""

METHOD_NOT_FOUND = -32601
MAX_SHOWN_CHARS = 70
PLAIN_WORD = re.compile(r"[\w./:+-]{1,70}")
PLAIN_STEP = re.compile(r"[\w/:{}$+-]+")

NUMERIC_FLOORS = {"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"}
NUMERIC_CEILINGS = {"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"}
WORDING = {"title", "description", "examples", "icons", "$comment", "lastModified", "priority"}


class SurfaceChanged(AssertionError):
    """A server does not offer what its snapshot says; the message has each difference."""


class SurfaceChange(msgspec.Struct, frozen=True):
    """One difference between two surfaces.

    Attributes:
        where: its path, such as ``tools.add.inputSchema.properties.a.type``.
        was: what stood there, or UNSET.
        now: what stands there, or UNSET.
        effect: what it means for callers.
        whole: it is about a tool, resource or prompt as such, which came or went.
    """

    where: str
    was: Any
    now: Any
    effect: Effect
    whole: bool = False

    def __str__(self) -> str:
        was, now = show_pair(self.was, self.now)
        return f"{self.where}: {was} → {now}"


async def read_surface(client: Client) -> Surface:
    """The surface of a server: all its tools, resources and prompts, read anew.

    Args:
        client: an open connection to the server.

    Raises:
        Refused: the server refused to list what it declared.
    """
    read: tuple[tuple[str, str, Callable[..., Awaitable[Sequence[Any]]]], ...] = (
        ("tools", "name", client.list_tools),
        ("resources", "uri", client.list_resources),
        ("resourceTemplates", "uriTemplate", client.list_resource_templates),
        ("prompts", "name", client.list_prompts),
    )
    surface: Surface = {}
    for kind, key, list_items in read:
        try:
            items = await list_items(fresh=True)
        except CapabilityMissing:
            continue
        except Refused as error:
            if error.code != METHOD_NOT_FOUND:  # resources need not have templates
                raise
            continue
        for item in map(msgspec.to_builtins, items):
            surface.setdefault(kind, {})[item.pop(key)] = item
    return surface


def encode_surface(surface: Surface) -> str:
    """A surface as it stands in a snapshot file: JSON, sorted, one member per line."""
    return json.dumps(surface, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def compare_surfaces(before: Surface, after: Surface) -> list[SurfaceChange]:
    """Differences of two surfaces, names first.

    Args:
        before: the surface that clients know.
        after: the surface as it is now.

    Example:
        >>> old = {"tools": {"add": {"inputSchema": {"type": "object"}}}}
        >>> [change] = compare_surfaces(old, {})
        >>> change.where, change.effect
        ('tools.add', 'breaking')
    """
    names: list[SurfaceChange] = []
    fields: list[SurfaceChange] = []
    for kind in dict.fromkeys((*before, *after)):
        old, new = before.get(kind, {}), after.get(kind, {})
        for name in dict.fromkeys((*old, *new)):
            where = join_path(kind, name)
            if name not in new:
                names.append(SurfaceChange(where, old[name], UNSET, "breaking", whole=True))
            elif name not in old:
                names.append(SurfaceChange(where, UNSET, new[name], "compatible", whole=True))
            else:
                fields += _compare_items(where, old[name], new[name])
    return [*names, *fields]


def describe_changes(changes: Sequence[SurfaceChange]) -> str:
    """Changes for people, with what each means for callers."""
    lines = []
    for change in changes:
        if change.whole and change.now is UNSET:
            lines.append(f"  - {change.where}  (breaking: it is gone)")
        elif change.whole:
            lines.append(f"  + {change.where}  (compatible: it is new)")
        else:
            lines.append(f"  {change}  ({change.effect})")
    broken = sum(change.effect == "breaking" for change in changes)
    doubtful = sum(change.effect == "may break" for change in changes)
    if broken:
        lines.append(f"{_count(broken, 'change breaks', 'changes break')} callers.")
    elif doubtful:
        lines.append(f"{_count(doubtful, 'change', 'changes')} may break callers.")
    else:
        lines.append("No caller breaks by it.")
    return "\n".join(lines)


def _count(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"


# One item


def _compare_items(where: str, was: Any, now: Any) -> Iterator[SurfaceChange]:
    """A tool, resource, template or prompt that is still there."""
    for name in dict.fromkeys((*was, *now)):
        old, new, path = was.get(name, UNSET), now.get(name, UNSET), join_path(where, name)
        if old == new:
            continue
        if name in {"inputSchema", "outputSchema"}:
            if isinstance(old, dict) and isinstance(new, dict):
                yield from compare_schemas(path, old, new, incoming=name == "inputSchema")
            else:  # an outputSchema comes or goes: structured content with it
                effect: Effect = "breaking" if new is UNSET else "compatible"
                yield SurfaceChange(path, old, new, effect)
        elif name == "arguments":
            yield from _compare_arguments(path, old or [], new or [])
        else:
            yield SurfaceChange(path, old, new, "compatible" if name in WORDING else "may break")


def _compare_arguments(where: str, was: Any, now: Any) -> Iterator[SurfaceChange]:
    """The arguments of a prompt, as those of an object's schema."""

    def as_schema(listed: Any) -> dict[str, Any]:
        given = {one["name"]: one for one in listed} if listed is not UNSET else {}
        wording = {
            name: {k: v for k, v in one.items() if k not in {"name", "required"}}
            for name, one in given.items()
        }
        required = [name for name, one in given.items() if one.get("required")]
        return {"properties": wording, "required": required}

    for change in compare_schemas(where, as_schema(was), as_schema(now), incoming=True):
        yield msgspec.structs.replace(change, where=change.where.replace(".properties.", ".", 1))


def compare_schemas(where: str, was: Any, now: Any, *, incoming: bool) -> Iterator[SurfaceChange]:
    """Differences of two JSON Schemas.

    Args:
        where: the path of the schema.
        was: as it was.
        now: as it is.
        incoming: it is of what callers send, where less breaks them; else of what they get.
    """
    for key in dict.fromkeys((*was, *now)):
        old, new, path = was.get(key, UNSET), now.get(key, UNSET), join_path(where, key)
        if old == new:
            continue
        if key in {"properties", "$defs", "definitions", "patternProperties"}:
            yield from _compare_members(path, old, new, incoming=incoming)
        elif isinstance(old, dict) and isinstance(new, dict):
            yield from compare_schemas(path, old, new, incoming=incoming)
        else:
            yield SurfaceChange(path, old, new, _judge_keyword(key, old, new, incoming=incoming))


def _compare_members(where: str, was: Any, now: Any, *, incoming: bool) -> Iterator[SurfaceChange]:
    old, new = ({} if one is UNSET else one for one in (was, now))
    for name in dict.fromkeys((*old, *new)):
        path = join_path(where, name)
        if name not in new:
            yield SurfaceChange(path, old[name], UNSET, "breaking")
        elif name not in old:
            yield SurfaceChange(path, UNSET, new[name], "compatible")
        elif isinstance(old[name], dict) and isinstance(new[name], dict):
            yield from compare_schemas(path, old[name], new[name], incoming=incoming)
        elif old[name] != new[name]:
            yield SurfaceChange(path, old[name], new[name], "may break")


# What a keyword allowed before, and allows now

Allowance: TypeAlias = Literal["more", "less", "other", "same"]


def _judge_keyword(key: str, was: Any, now: Any, *, incoming: bool) -> Effect:
    if key in WORDING:
        return "compatible"
    allowance = _compare_allowance(key, was, now)
    if allowance is None:
        return "may break"
    if allowance == "same":
        return "compatible"
    return "compatible" if allowance == ("more" if incoming else "less") else "breaking"


def _compare_allowance(key: str, was: Any, now: Any) -> Allowance | None:
    """Whether more values are valid now, or fewer; None where that cannot be told."""
    if key in NUMERIC_FLOORS | NUMERIC_CEILINGS:
        return _compare_bounds(was, now, ceiling=key in NUMERIC_CEILINGS)
    if key == "required":  # what is demanded, and not what is allowed
        return _compare_sets(_list_values(now, ()), _list_values(was, ()))
    if key in {"pattern", "format", "const", "uniqueItems"}:
        return "less" if was is UNSET else "more" if now is UNSET else "other"
    read = ALLOWED_SETS.get(key)
    return None if read is None else _compare_sets(read(was), read(now))


def _compare_bounds(was: Any, now: Any, *, ceiling: bool) -> Allowance | None:
    if was is UNSET or now is UNSET:
        return "less" if was is UNSET else "more"
    if not isinstance(was, int | float) or not isinstance(now, int | float):
        return None  # draft-04 had booleans here, and anything may stand there
    return "more" if (now > was) is ceiling else "less"


def _compare_sets(was: frozenset[str] | None, now: frozenset[str] | None) -> Allowance:
    """Sets of what is allowed, None being everything."""
    if was == now:
        return "same"
    if now is None:
        return "more"
    if was is None:
        return "less"
    return "more" if was <= now else "less" if was >= now else "other"


def _list_types(given: Any) -> frozenset[str] | None:
    if given is UNSET:
        return None
    types = frozenset([given] if isinstance(given, str) else map(str, given))
    return types | {"integer"} if "number" in types else types


def _list_values(given: Any, default: Any = None) -> frozenset[str] | None:
    if given is UNSET:
        return None if default is None else frozenset(default)
    return frozenset(json.dumps(one, sort_keys=True) for one in given)


def _list_openness(given: Any) -> frozenset[str]:
    return frozenset() if given is False else frozenset({"open"})


ALLOWED_SETS: Mapping[str, Callable[[Any], frozenset[str] | None]] = {
    "type": _list_types,
    "enum": _list_values,
    "additionalProperties": _list_openness,
}


# For people


def join_path(path: str, step: str) -> str:
    """A path with one step more, quoted where it is not a plain name."""
    return f"{path}.{step if PLAIN_STEP.fullmatch(step) else json.dumps(step)}"


def show_pair(was: Any, now: Any) -> tuple[str, str]:
    """Two values, short, from where they begin to differ."""
    texts = [_show_value(was), _show_value(now)]
    if max(map(len, texts)) > MAX_SHOWN_CHARS:
        begin = next(
            (i for i, (a, b) in enumerate(zip(*texts, strict=False)) if a != b),
            min(map(len, texts)),
        )
        begin = max(begin - 20, 0)
        texts = [f"{'…' if begin else ''}{text[begin:]}" for text in texts]
    one, other = (t if len(t) <= MAX_SHOWN_CHARS else f"{t[:MAX_SHOWN_CHARS]}…" for t in texts)
    return one, other


def _show_value(value: Any) -> str:
    if value is UNSET:
        return "(none)"
    if isinstance(value, str) and PLAIN_WORD.fullmatch(value):
        return value
    if isinstance(value, Mapping) and not value:
        return "{}"
    return show_invisible(json.dumps(value, ensure_ascii=False), line=True)
