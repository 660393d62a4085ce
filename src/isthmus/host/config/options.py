"""The member ``host`` of a file, and how those of several files become one."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from isthmus.host.config.document import Document
from isthmus.host.config.entries import HostOptions, Layer, RootEntry
from isthmus.host.config.forms import Misfit, fitted
from isthmus.host.config.variables import Scope, Unfilled, Variables
from isthmus.host.errors import ConfigError

__all__ = ["Options", "merged", "options_of"]

OF_WORKSPACE = ("policy", "roots")
"""What a workspace may say: rules that only tighten, and folders within itself."""

FILES = ("policy", "shadow", "models", "state")
"""Members that may be a file's path, which is relative to the file that names it."""

FILLED = (*FILES, "roots")
"""Members that variables are filled into; an error shows none of them."""


class Options(Struct, frozen=True):
    """What one file says.

    Attributes:
        value: all of it.
        named: the members that it has.
    """

    value: HostOptions
    named: frozenset[str]


def options_of(document: Document, layer: Layer, scope: Scope, notes: list[str]) -> Options:
    """The member ``host`` of a file.

    Args:
        document: the file.
        layer: where it stands.
        scope: where variables are looked up.
        notes: what is passed over is told here.

    Raises:
        ConfigError: it says what cannot be.
    """
    said = document.value.get("host")
    unknown: list[tuple[str | int, ...]] = []
    if not isinstance(said, dict):
        raise ConfigError(f"{document.place('host')}: host is an object of options")
    try:
        variables = Variables(scope)
        paths = {key: said[key] for key in FILLED if key in said}
        value = said | {key: variables.fill(one, "host", key) for key, one in paths.items()}
        options = fitted(HostOptions, value, ("host",), unknown)
        roots = tuple(
            _root(one, i, document, layer, scope.folder) for i, one in enumerate(options.roots)
        )
    except (Misfit, Unfilled) as error:
        way = ".".join(map(str, error.keys))
        raise ConfigError(f"{document.place(*error.keys)}: {way}: {error}") from None
    notes += (
        f"{document.place(*keys)}: nobody knows {'.'.join(map(str, keys))}, which is passed over"
        for keys in unknown
    )
    files = {name: _path(getattr(options, name), document) for name in FILES}
    policies: dict[Layer, str] = {layer: files["policy"] or ""} if options.policy else {}
    whole = msgspec.structs.replace(options, roots=roots, policies=policies, **files)
    named = {field.name for field in msgspec.structs.fields(whole) if field.encode_name in said}
    if layer == "workspace":
        for name in sorted(named.difference(OF_WORKSPACE)):
            notes.append(
                f"{document.place('host', name)}: a workspace has no say in host.{name}, which is "
                "passed over"
            )
        named = named.intersection(OF_WORKSPACE)
    return Options(whole, frozenset(named))


def merged(layers: Sequence[tuple[Layer, Options]]) -> HostOptions:
    """What all files say together: the first that names a member wins; roots are those of all."""
    chosen: dict[str, Any] = {}
    policies: dict[Layer, str] = {}
    roots: dict[str, RootEntry] = {}
    for layer, options in layers:
        policies |= {k: v for k, v in options.value.policies.items() if k not in policies}
        for root in options.value.roots:
            roots.setdefault(root.name, root)
        for name in options.named - {"roots", "policies"}:
            if not (name == "policy" and layer in {"managed", "workspace"}):
                chosen.setdefault(name, getattr(options.value, name))
    return HostOptions(**chosen, policies=policies, roots=tuple(roots.values()))


def _path(said: str | None, document: Document) -> str | None:
    """A file that is named, relative to the one that names it; a bare word is a name."""
    if not said or not (os.sep in said or "/" in said or "." in said or said.startswith("~")):
        return said
    return str(document.path.parent / Path(said).expanduser())


def _root(one: RootEntry, at: int, document: Document, layer: Layer, folder: str) -> RootEntry:
    keys = ("host", "roots", at)
    if not one.path:
        raise Misfit(keys, 'a root has a path, as in {"path": "~/work", "name": "Work"}')
    base = Path(folder) if layer == "workspace" else document.path.parent
    path = os.path.normpath(base / Path(one.path).expanduser())
    if layer == "workspace" and not Path(os.path.realpath(path)).is_relative_to(
        os.path.realpath(folder)
    ):
        raise Misfit(keys, "a workspace's roots lie within it; this one belongs into your own file")
    name = one.name or Path(path).name or path
    return msgspec.structs.replace(one, path=path, name=name)
