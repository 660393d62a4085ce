"""Recipes of others' servers: the package, its start, the calls made and the differences known."""

import json
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SERVERS = Path(__file__).resolve().parents[2] / "compat_servers" / "servers.toml"


@dataclass(frozen=True)
class Difference:
    """A known difference between a server's own library and isthmus.

    Attributes:
        where: a regular expression that matches the whole place, such as ``tools/list/.*/title``.
        why: the reason it is accepted.
        revisions: in which it is accepted; all by default.
        values: the own value and ours, as JSON, where only these are accepted; ``*`` is any.
    """

    where: str
    why: str
    revisions: tuple[str, ...] = ()
    values: tuple[str, str] | None = None

    def covers(self, revision: str, place: str, own: Any, ours: Any) -> bool:
        """Whether a difference at this place is this one."""
        if self.revisions and revision not in self.revisions:
            return False
        for wanted, value in zip(self.values or (), (own, ours), strict=False):
            if wanted not in ("*", json.dumps(value)):
                return False
        return re.fullmatch(self.where, place) is not None


@dataclass(frozen=True)
class Recipe:
    """A server of PyPI, and how its answers are asked for.

    Attributes:
        name: here.
        packages: requirements, pinned.
        start: ``module:function`` of its console script, or a module as ``python -m`` takes it.
        arguments: of the command line; ``{work}`` is a fresh folder.
        env: further environment variables, with ``{work}`` too.
        files: contents of files in that folder, by path.
        prepare: a command run in the folder first, with ``{python}``.
        calls: ``[method or tool name, arguments]``; ``{work}`` is replaced in strings.
        masks: regular expressions of what varies from run to run, such as times.
        timed: the tool and arguments of the calls that are counted per second.
        differences: accepted ones, each with its reason.
    """

    name: str
    packages: tuple[str, ...]
    start: str
    arguments: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    prepare: tuple[tuple[str, ...], ...] = ()
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    masks: tuple[str, ...] = ()
    timed: tuple[str, dict[str, Any]] | None = None
    differences: tuple[Difference, ...] = ()


def load_recipes(file: Path = SERVERS) -> list[Recipe]:
    """All recipes of a file; names of packages and accepted differences are those of the project's."""
    shared = tomllib.loads(SERVERS.read_text(encoding="utf-8"))
    common = [Difference(**one) for one in shared["difference"]]
    servers = tomllib.loads(file.read_text(encoding="utf-8"))["server"]
    return [_make_recipe(one, shared["packages"], common) for one in servers]


def _make_recipe(
    table: dict[str, Any], packages: dict[str, str], common: list[Difference]
) -> Recipe:
    listed = dict(table)
    listed["packages"] = tuple(packages.get(one, one) for one in table["packages"])
    listed["differences"] = (
        *common,
        *(Difference(**one) for one in table.get("differences", ())),
    )
    for name in ("arguments", "masks"):
        listed[name] = tuple(table.get(name, ()))
    for name in ("calls", "prepare"):
        listed[name] = tuple(tuple(one) for one in table.get(name, ()))
    if "timed" in table:
        listed["timed"] = tuple(table["timed"])
    return Recipe(**listed)
