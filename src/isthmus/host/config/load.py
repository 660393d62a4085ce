"""The configuration as a whole: files of several layers, read and put together.

A server that is wrong is broken alone, and the others are there. A file that is no configuration at
all is an error, since it may be the one that says what is forbidden.
"""

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from isthmus.core.plain_text import visible
from isthmus.host.config.document import LARGEST, LARGEST_OF_OTHERS, Document, read
from isthmus.host.config.entries import HostConfig, HostOptions, Layer, ServerEntry
from isthmus.host.config.forms import Misfit
from isthmus.host.config.jsonc import Key
from isthmus.host.config.options import Options, merged, options_of
from isthmus.host.config.places import files
from isthmus.host.config.servers import Reading, server
from isthmus.host.config.shapes import Raw, inputs_of, servers_of
from isthmus.host.config.variables import Scope, Secrets, Unfilled
from isthmus.host.errors import ConfigError

__all__ = ["Loaded", "Trusted", "digest_of_part", "load", "load_documents", "read_layers"]

HOST = "host"
"""The part of a workspace's file that is no server, as trust calls it; no server has the name \"\"."""


class Trusted(Protocol):
    """Knows which parts of a workspace's files the user trusts."""

    def allows(self, path: str, name: str, digest: str) -> bool:
        """Whether a part of a file is trusted as it is.

        Args:
            path: the file.
            name: the server; empty for the member ``host``.
            digest: what it says.
        """
        ...


class Loaded(Struct, kw_only=True):
    """The configuration, and where it came from.

    Attributes:
        config: what it says.
        documents: the files, first the one that wins, each with its layer.
        origins: the way to each server and the file it is in, by its name.
        used: variables that were filled in, by server and the way to where they stand.
    """

    config: HostConfig
    documents: tuple[tuple[Layer, Document], ...] = ()
    origins: dict[str, tuple[Document, tuple[Key, ...]]] = {}
    used: dict[str, dict[tuple[Key, ...], list[str]]] = {}


def load(
    paths: "Sequence[str | os.PathLike[str]] | str | os.PathLike[str] | None" = None,
    *,
    folder: "str | os.PathLike[str] | None" = None,
    environ: Mapping[str, str] | None = None,
    secrets: Secrets | None = None,
    trusted: Trusted | None = None,
    managed: "str | os.PathLike[str] | None" = None,
) -> HostConfig:
    """Read the configuration.

    Example::

        config = load("mcp.json")
        for name, why in config.broken.items():
            print(name, why)

    Args:
        paths: the files; the user's own and the workspace's by default.
        folder: the workspace; the current folder by default.
        environ: where ``${NAME}`` is looked up; the environment by default.
        secrets: where ``${secret:…}`` is looked up; the user's own by default.
        trusted: knows what of a workspace's files is trusted; nothing is, by default.
        managed: the folder of whoever looks after the machine; the system's by default.

    Raises:
        ConfigError: a file is not there, or is no configuration, or its member ``host`` says what
            cannot be. A server that is wrong is in ``broken`` instead.
    """
    layers, notes = read_layers(paths, folder=folder, environ=environ, managed=managed)
    return load_documents(
        layers, notes, folder=folder, environ=environ, secrets=secrets, trusted=trusted
    ).config


def read_layers(
    paths: "Sequence[str | os.PathLike[str]] | str | os.PathLike[str] | None" = None,
    *,
    folder: "str | os.PathLike[str] | None" = None,
    environ: Mapping[str, str] | None = None,
    managed: "str | os.PathLike[str] | None" = None,
) -> tuple[list[tuple[Layer, Document]], list[str]]:
    """Read the files, without making anything of them, and tell what is passed over.

    A workspace's file that is no configuration is passed over: who wrote it is not the user, and
    must not keep the host from starting.

    Raises:
        ConfigError: as :func:`load`.
    """
    named = named_files(paths)
    found: list[tuple[Layer, Document]] = []
    notes: list[str] = []
    place = Path(folder or ".").absolute()
    known = os.environ if environ is None else environ
    for layer, path in files(named, place, known, None if managed is None else Path(managed)):
        if layer != "command_line" and not path.is_file():
            continue
        try:
            found.append(
                (layer, read(path, LARGEST_OF_OTHERS if layer == "workspace" else LARGEST))
            )
        except ConfigError as error:
            if layer != "workspace":
                raise
            notes.append(f"{error}; the file is passed over")
    return found, notes


def named_files(
    paths: "Sequence[str | os.PathLike[str]] | str | os.PathLike[str] | None",
) -> tuple[Path, ...] | None:
    """The files that somebody named; None where nobody named any."""
    if paths is None:
        return None
    several = [paths] if isinstance(paths, str | os.PathLike) else paths
    return tuple(Path(path).expanduser().absolute() for path in several)


def load_documents(
    layers: Sequence[tuple[Layer, Document]],
    notes: Sequence[str] = (),
    *,
    folder: "str | os.PathLike[str] | None" = None,
    environ: Mapping[str, str] | None = None,
    secrets: Secrets | None = None,
    trusted: Trusted | None = None,
) -> Loaded:
    """Put files together that were read.

    Raises:
        ConfigError: a member ``host`` says what cannot be.
    """
    known = os.environ if environ is None else environ
    place = str(Path(folder or ".").absolute())
    if secrets is None:
        from isthmus.host.secrets import UserSecrets

        secrets = UserSecrets(known)
    together = _Together(Scope(environ=known, secrets=secrets, folder=place), trusted, notes)
    for layer, document in layers:
        together.options(layer, document)
    together.roots()
    for layer, document in layers:
        together.servers(layer, document)
    return together.loaded(layers)


def digest_of_part(value: Any, inputs: Mapping[str, Any]) -> str:
    """What a part of a file says, as a digest; ``inputs`` can change what variables stand for."""
    data = msgspec.json.encode([value, inputs], order="deterministic", enc_hook=str)
    return hashlib.sha256(data).hexdigest()


class _Together:
    """Puts layers together, what is named first wins."""

    def __init__(self, scope: Scope, trusted: Trusted | None, notes: Sequence[str]) -> None:
        self._scope = scope
        self._trusted = trusted
        self._options: list[tuple[Layer, Options]] = []
        self._merged = HostOptions()
        self._servers: dict[str, ServerEntry] = {}
        self._broken: dict[str, str] = {}
        self._notes = list(notes)
        self._origins: dict[str, tuple[Document, tuple[Key, ...]]] = {}
        self._used: dict[str, dict[tuple[Key, ...], list[str]]] = {}

    def options(self, layer: Layer, document: Document) -> None:
        """Take the member ``host`` of a file."""
        said = document.value.get(HOST)
        if said is None:
            return
        if layer == "workspace" and not self._allowed(document, "", said):
            self._notes.append(
                f"{document.place(HOST)}: host is passed over until the workspace is trusted "
                "(isthmus config trust)"
            )
            return
        self._options.append((layer, options_of(document, layer, self._scope, self._notes)))

    def roots(self) -> None:
        """Put the options together, and let servers name the roots."""
        self._merged = merged(self._options)
        roots = {root.name: root.path for root in self._merged.roots}
        self._scope = msgspec.structs.replace(self._scope, roots=roots)

    def servers(self, layer: Layer, document: Document) -> None:
        """Take the servers of a file."""
        inputs = inputs_of(document)
        for raw in servers_of(document, self._scope.folder):
            if raw.name in self._origins:
                first, keys = self._origins[raw.name]
                self._notes.append(
                    f"{document.place(*raw.keys)}: the server {raw.name!r} is passed over: "
                    f"{first.place(*keys)} has one of this name; give this one another"
                )
                continue
            self._origins[raw.name] = (document, raw.keys)
            self._server(raw, layer, document, inputs)

    def loaded(self, layers: Sequence[tuple[Layer, Document]]) -> Loaded:
        """All of it."""
        config = HostConfig(
            servers=self._servers,
            broken=self._broken,
            options=self._merged,
            sources=tuple(str(document.path) for _, document in layers),
            notes=tuple(self._notes),
            folder=self._scope.folder,
        )
        return Loaded(
            config=config, documents=tuple(layers), origins=self._origins, used=self._used
        )

    def _server(
        self, raw: Raw, layer: Layer, document: Document, inputs: Mapping[str, Mapping[str, Any]]
    ) -> None:
        allowed = layer != "workspace" or self._allowed(document, raw.name, raw.value)
        scope = msgspec.structs.replace(self._scope, inputs=inputs) if allowed else None
        workspace = layer == "workspace"
        reading = Reading(
            scope=scope,
            layer=layer,
            source=str(document.path),
            base=Path(self._scope.folder) if workspace else document.path.parent,
            cwd=self._scope.folder if workspace else "",
            unknown=[],
            withheld=[],
            used={},
            notes=[],
        )
        doubled = document.twice(*raw.keys[:-1]).get(str(raw.keys[-1]))
        if doubled:
            self._broken[raw.name] = told(document, raw.keys, f"it stands twice, also in {doubled}")
            return
        try:
            self._servers[raw.name] = server(raw, reading)
        except (Misfit, Unfilled) as error:
            self._broken[raw.name] = told(document, error.keys, str(error))
        self._notes += (
            f"{document.place(*keys)}: nobody knows {dotted(keys)}, which is passed over"
            for keys in reading.unknown
        )
        self._notes += (
            f"{document.place(*keys)}: a workspace has no say in {dotted(keys)}, which is passed over; "
            "to trust the server, write it into your own file"
            for keys in reading.withheld
        )
        self._notes += (told(document, keys, said) for keys, said in reading.notes)
        if str(raw.keys[-1]) != raw.name and isinstance(raw.keys[-1], str):
            self._notes.append(
                f"{document.place(*raw.keys)}: {raw.keys[-1]!r} is called {raw.name!r} here"
            )
        self._used[raw.name] = reading.used

    def _allowed(self, document: Document, name: str, value: Any) -> bool:
        if self._trusted is None:
            return False
        digest = digest_of_part(value, inputs_of(document))
        return self._trusted.allows(str(document.path), name, digest)


def dotted(keys: Sequence[Key]) -> str:
    """The way to a part as people write it."""
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)
    return visible(text.removeprefix("."), line=True)


def told(document: Document, keys: tuple[Key, ...], message: str) -> str:
    """What is wrong with a part, with its place."""
    return f"{document.place(*keys)}: {dotted(keys)}: {message}"


def fail(document: Document, keys: tuple[Key, ...], message: str) -> ConfigError:
    """An error about a part of a file that nothing works without."""
    return ConfigError(told(document, keys, message))
