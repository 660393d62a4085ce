"""Loading of the configuration: files of several layers are read and merged.

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

from isthmus.core.text import show_invisible
from isthmus.host.config.files import (
    MAX_FILE_BYTES,
    MAX_UNTRUSTED_BYTES,
    ConfigDocument,
    list_files,
    read_document,
)
from isthmus.host.config.forms import BadMember, convert_member
from isthmus.host.config.layouts import RawServer, find_servers, read_inputs
from isthmus.host.config.servers import ServerReading, read_server
from isthmus.host.config.syntax import MemberKey
from isthmus.host.config.variables import (
    SecretSource,
    UnresolvedVariable,
    VariableFiller,
    VariableScope,
)
from isthmus.host.model.entries import HostConfig, HostOptions, Layer, RootEntry, ServerEntry
from isthmus.host.model.errors import ConfigError

HOST_MEMBER = "host"  # trust calls this part of a workspace's file ""; no server has that name

# a workspace may say these: rules that only tighten, and folders within itself
WORKSPACE_MEMBERS = ("policy", "roots")
# a path is relative to the file that names it
PATH_MEMBERS = ("policy", "shadow", "models", "state")
# variables are filled into these; an error shows none of them
VARIABLE_MEMBERS = (*PATH_MEMBERS, "roots")


class TrustSource(Protocol):
    """Knows which parts of a workspace's files the user trusts."""

    def allows(self, path: str, name: str, digest: str) -> bool:
        """Whether a part of a file is trusted as it is."""
        ...


class LoadedConfig(Struct, kw_only=True):
    """The configuration, and the sources of its parts.

    Attributes:
        config: what it says.
        documents: the files, first the one that wins, each with its layer.
        origins: the way to each server and the file it is in, by its name.
        used: variables that were filled in, by server and the way to where they stand.
    """

    config: HostConfig
    documents: tuple[tuple[Layer, ConfigDocument], ...] = ()
    origins: dict[str, tuple[ConfigDocument, tuple[MemberKey, ...]]] = {}
    used: dict[str, dict[tuple[MemberKey, ...], list[str]]] = {}


def load_config(
    paths: "Sequence[str | os.PathLike[str]] | str | os.PathLike[str] | None" = None,
    *,
    folder: "str | os.PathLike[str] | None" = None,
    environ: Mapping[str, str] | None = None,
    secrets: SecretSource | None = None,
    trusted: TrustSource | None = None,
    managed: "str | os.PathLike[str] | None" = None,
) -> HostConfig:
    """Load the configuration.

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
    layers, notes = read_config_layers(paths, folder=folder, environ=environ, managed=managed)
    return merge_documents(
        layers, notes, folder=folder, environ=environ, secrets=secrets, trusted=trusted
    ).config


def read_config_layers(
    paths: "Sequence[str | os.PathLike[str]] | str | os.PathLike[str] | None" = None,
    *,
    folder: "str | os.PathLike[str] | None" = None,
    environ: Mapping[str, str] | None = None,
    managed: "str | os.PathLike[str] | None" = None,
) -> tuple[list[tuple[Layer, ConfigDocument]], list[str]]:
    """Read the files without merging them, and note those that are passed over.

    A workspace's file that is no configuration is passed over: who wrote it is not the user, and
    must not keep the host from starting.

    Raises:
        ConfigError: as :func:`load_config`.
    """
    named = resolve_paths(paths)
    found: list[tuple[Layer, ConfigDocument]] = []
    notes: list[str] = []
    place = Path(folder or ".").absolute()
    known = os.environ if environ is None else environ
    for layer, path in list_files(named, place, known, None if managed is None else Path(managed)):
        if layer != "command_line" and not path.is_file():
            continue
        try:
            found.append(
                (
                    layer,
                    read_document(
                        path, MAX_UNTRUSTED_BYTES if layer == "workspace" else MAX_FILE_BYTES
                    ),
                )
            )
        except ConfigError as error:
            if layer != "workspace":
                raise
            notes.append(f"{error}; the file is passed over")
    return found, notes


def resolve_paths(
    paths: "Sequence[str | os.PathLike[str]] | str | os.PathLike[str] | None",
) -> tuple[Path, ...] | None:
    """Resolve the files that somebody named; None where nobody named any."""
    if paths is None:
        return None
    several = [paths] if isinstance(paths, str | os.PathLike) else paths
    return tuple(Path(path).expanduser().absolute() for path in several)


def merge_documents(
    layers: Sequence[tuple[Layer, ConfigDocument]],
    notes: Sequence[str] = (),
    *,
    folder: "str | os.PathLike[str] | None" = None,
    environ: Mapping[str, str] | None = None,
    secrets: SecretSource | None = None,
    trusted: TrustSource | None = None,
) -> LoadedConfig:
    """Merge files that were read.

    Raises:
        ConfigError: a member ``host`` says what cannot be.
    """
    known = os.environ if environ is None else environ
    place = str(Path(folder or ".").absolute())
    if secrets is None:
        from isthmus.host.state.secrets import UserSecrets

        secrets = UserSecrets(known)
    merger = _ConfigMerger(
        VariableScope(environ=known, secrets=secrets, folder=place), trusted, notes
    )
    for layer, document in layers:
        merger.add_options(layer, document)
    merger.merge_roots()
    for layer, document in layers:
        merger.add_servers(layer, document)
    return merger.make_loaded(layers)


def digest_part(value: Any, inputs: Mapping[str, Any]) -> str:
    """Digest a part of a file with its ``inputs``, which can change what variables stand for."""
    data = msgspec.json.encode([value, inputs], order="deterministic", enc_hook=str)
    return hashlib.sha256(data).hexdigest()


class _ConfigMerger:
    """Merges the layers; the first one wins."""

    def __init__(
        self, scope: VariableScope, trusted: TrustSource | None, notes: Sequence[str]
    ) -> None:
        self._scope = scope
        self._trusted = trusted
        self._options: list[tuple[Layer, FileOptions]] = []
        self._merged = HostOptions()
        self._servers: dict[str, ServerEntry] = {}
        self._broken: dict[str, str] = {}
        self._notes = list(notes)
        self._origins: dict[str, tuple[ConfigDocument, tuple[MemberKey, ...]]] = {}
        self._used: dict[str, dict[tuple[MemberKey, ...], list[str]]] = {}

    def add_options(self, layer: Layer, document: ConfigDocument) -> None:
        """Add the member ``host`` of a file."""
        said = document.value.get(HOST_MEMBER)
        if said is None:
            return
        if layer == "workspace" and not self._is_allowed(document, "", said):
            self._notes.append(
                f"{document.place(HOST_MEMBER)}: host is passed over until the workspace is trusted "
                "(isthmus config trust)"
            )
            return
        self._options.append((layer, read_options(document, layer, self._scope, self._notes)))

    def merge_roots(self) -> None:
        """Merge the options, so that servers can name the roots."""
        self._merged = merge_options(self._options)
        roots = {root.name: root.path for root in self._merged.roots}
        self._scope = msgspec.structs.replace(self._scope, roots=roots)

    def add_servers(self, layer: Layer, document: ConfigDocument) -> None:
        """Add the servers of a file."""
        inputs = read_inputs(document)
        for raw in find_servers(document, self._scope.folder):
            if raw.name in self._origins:
                first, keys = self._origins[raw.name]
                self._notes.append(
                    f"{document.place(*raw.keys)}: the server {raw.name!r} is passed over: "
                    f"{first.place(*keys)} has one of this name; give this one another"
                )
                continue
            self._origins[raw.name] = (document, raw.keys)
            self._add_server(raw, layer, document, inputs)

    def make_loaded(self, layers: Sequence[tuple[Layer, ConfigDocument]]) -> LoadedConfig:
        """The merged configuration."""
        config = HostConfig(
            servers=self._servers,
            broken=self._broken,
            options=self._merged,
            sources=tuple(str(document.path) for _, document in layers),
            notes=tuple(self._notes),
            folder=self._scope.folder,
        )
        return LoadedConfig(
            config=config, documents=tuple(layers), origins=self._origins, used=self._used
        )

    def _add_server(
        self,
        raw: RawServer,
        layer: Layer,
        document: ConfigDocument,
        inputs: Mapping[str, Mapping[str, Any]],
    ) -> None:
        allowed = layer != "workspace" or self._is_allowed(document, raw.name, raw.value)
        scope = msgspec.structs.replace(self._scope, inputs=inputs) if allowed else None
        workspace = layer == "workspace"
        reading = ServerReading(
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
            self._broken[raw.name] = describe_fault(
                document, raw.keys, f"it is defined twice, also in {doubled}"
            )
            return
        try:
            self._servers[raw.name] = read_server(raw, reading)
        except (BadMember, UnresolvedVariable) as error:
            self._broken[raw.name] = describe_fault(document, error.keys, str(error))
        self._notes += (
            f"{document.place(*keys)}: the unknown option {format_keys(keys)} is passed over"
            for keys in reading.unknown
        )
        self._notes += (
            f"{document.place(*keys)}: a workspace may not set {format_keys(keys)}, which is passed over; "
            "to trust the server, write it into your own file"
            for keys in reading.withheld
        )
        self._notes += (describe_fault(document, keys, said) for keys, said in reading.notes)
        if str(raw.keys[-1]) != raw.name and isinstance(raw.keys[-1], str):
            self._notes.append(
                f"{document.place(*raw.keys)}: {raw.keys[-1]!r} is called {raw.name!r} here"
            )
        self._used[raw.name] = reading.used

    def _is_allowed(self, document: ConfigDocument, name: str, value: Any) -> bool:
        if self._trusted is None:
            return False
        digest = digest_part(value, read_inputs(document))
        return self._trusted.allows(str(document.path), name, digest)


def format_keys(keys: Sequence[MemberKey]) -> str:
    """Format the way to a part as people write it."""
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)
    return show_invisible(text.removeprefix("."), line=True)


def describe_fault(document: ConfigDocument, keys: tuple[MemberKey, ...], message: str) -> str:
    """Describe a fault of a part, with its place."""
    return f"{document.place(*keys)}: {format_keys(keys)}: {message}"


class FileOptions(Struct, frozen=True):
    """The member ``host`` of one file.

    Attributes:
        value: all of it.
        named: the members that it has.
    """

    value: HostOptions
    named: frozenset[str]


def read_options(
    document: ConfigDocument, layer: Layer, scope: VariableScope, notes: list[str]
) -> FileOptions:
    """Read the member ``host`` of a file.

    Raises:
        ConfigError: it says what cannot be.
    """
    said = document.value.get("host")
    unknown: list[tuple[str | int, ...]] = []
    if not isinstance(said, dict):
        raise ConfigError(f"{document.place('host')}: host is an object of options")
    try:
        variables = VariableFiller(scope)
        paths = {key: said[key] for key in VARIABLE_MEMBERS if key in said}
        value = said | {key: variables.fill(one, "host", key) for key, one in paths.items()}
        options = convert_member(HostOptions, value, ("host",), unknown)
        roots = tuple(
            _resolve_root(one, i, document, layer, scope.folder)
            for i, one in enumerate(options.roots)
        )
    except (BadMember, UnresolvedVariable) as error:
        way = ".".join(map(str, error.keys))
        raise ConfigError(f"{document.place(*error.keys)}: {way}: {error}") from None
    notes += (
        f"{document.place(*keys)}: the unknown option {'.'.join(map(str, keys))} is passed over"
        for keys in unknown
    )
    files = {name: _resolve_path(getattr(options, name), document) for name in PATH_MEMBERS}
    policies: dict[Layer, str] = {layer: files["policy"] or ""} if options.policy else {}
    whole = msgspec.structs.replace(options, roots=roots, policies=policies, **files)
    named = {field.name for field in msgspec.structs.fields(whole) if field.encode_name in said}
    if layer == "workspace":
        for name in sorted(named.difference(WORKSPACE_MEMBERS)):
            notes.append(
                f"{document.place('host', name)}: a workspace may not set host.{name}, which is "
                "passed over"
            )
        named = named.intersection(WORKSPACE_MEMBERS)
    return FileOptions(whole, frozenset(named))


def merge_options(layers: Sequence[tuple[Layer, FileOptions]]) -> HostOptions:
    """Merge the options of all files: the first that names a member wins; roots add up."""
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


def _resolve_path(text: str | None, document: ConfigDocument) -> str | None:
    """Resolve a path relative to the file that names it; a bare word is a name."""
    if not text or not (os.sep in text or "/" in text or "." in text or text.startswith("~")):
        return text
    return str(document.path.parent / Path(text).expanduser())


def _resolve_root(
    one: RootEntry, at: int, document: ConfigDocument, layer: Layer, folder: str
) -> RootEntry:
    keys = ("host", "roots", at)
    if not one.path:
        raise BadMember(keys, 'a root has a path, as in {"path": "~/work", "name": "Work"}')
    base = Path(folder) if layer == "workspace" else document.path.parent
    path = os.path.normpath(base / Path(one.path).expanduser())
    if layer == "workspace" and not Path(os.path.realpath(path)).is_relative_to(
        os.path.realpath(folder)
    ):
        raise BadMember(
            keys, "a workspace's roots lie within it; this one belongs into your own file"
        )
    name = one.name or Path(path).name or path
    return msgspec.structs.replace(one, path=path, name=name)
