"""Context gatherer: the candidates of a context, read from servers through the pipeline."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import UNSET, Struct, structs

from isthmus.core.sampling import list_blocks
from isthmus.core.uri_template import BadTemplate, UriTemplate
from isthmus.errors import IsthmusError
from isthmus.host.catalog.names import APP_SCHEME, Viewer, split_uri
from isthmus.host.context.pieces import ContextPiece, PieceKind, PlacedPiece, rank_pieces
from isthmus.host.pipeline.acts.server_acts import ReadAct
from isthmus.wire import Annotations, EmbeddedResource, ResourceContents, TextContent

if TYPE_CHECKING:
    from isthmus.host.catalog.catalog import HostCatalog
    from isthmus.host.model.attempt import Attempt
    from isthmus.host.model.tokens import TokenEstimators
    from isthmus.host.pipeline.pipeline import Pipeline
    from isthmus.host.pipeline.runs import Runs
    from isthmus.host.pipeline.servers import KnownServers

# all or none; or by server: whether, or a text in place of the server's own
InstructionChoice: TypeAlias = bool | Mapping[str, bool | str]

MAX_READ_RESOURCES = 32  # for one context, besides those that are pinned
MAX_PARALLEL_READS = 8
READ_TIMEOUT_S = 20.0  # of one resource or prompt, people's time not counted
NOT_ASKED = "policy would ask before it is read: pin it, and you are asked"


class ContextParts(Struct, frozen=True, kw_only=True):
    """The parts of an open host that a context is made with.

    Attributes:
        catalog, servers, runs, pipeline, estimators: those of the host.
        attempt: makes an attempt, as :class:`~isthmus.host.pipeline.calls.HostCalls` does; ``read`` reads a
            resource, and ``prompt`` gets a prompt.
    """

    catalog: "HostCatalog"
    servers: "KnownServers"
    runs: "Runs"
    pipeline: "Pipeline"
    estimators: "TokenEstimators"
    attempt: "Callable[..., Attempt]"
    read: Callable[..., Awaitable[Any]]
    prompt: Callable[..., Awaitable[Any]]


class GatheredContext(Struct, frozen=True):
    """The gathered candidates, and those that could not be had."""

    pieces: tuple[ContextPiece, ...]
    dropped: tuple[PlacedPiece, ...]


class WantedResource(Struct, frozen=True, kw_only=True):
    """A resource that has not been read yet."""

    piece: ContextPiece
    pinned: bool = False


class ContextGatherer:
    """Gathers the candidates of one context.

    Args:
        parts: of the host.
        viewer: for whom, and in which run.
        query: what the context is for.
    """

    def __init__(self, parts: ContextParts, viewer: Viewer, query: str) -> None:
        self._parts = parts
        self._viewer = viewer
        self._query = query
        self._room = asyncio.Semaphore(MAX_PARALLEL_READS)
        self._pieces: list[ContextPiece] = []
        self._dropped: list[PlacedPiece] = []
        self._wanted: dict[tuple[str, str], WantedResource] = {}

    async def gather(self) -> GatheredContext:
        """Read the wanted resources, and return all candidates."""
        chosen = self._choose()
        async with asyncio.TaskGroup() as group:
            for one in chosen:
                group.create_task(self._read(one))
        return GatheredContext(tuple(self._pieces), tuple(self._dropped))

    # Candidates

    def add_instructions(
        self, choice: InstructionChoice, servers: Iterable[str] | None = None
    ) -> None:
        """Add the instructions of servers."""
        only = None if servers is None else set(servers)
        for server, text in self._parts.catalog.instructions(self._viewer).items():
            own = choice if isinstance(choice, bool) else choice.get(server, True)
            if own is False or (only is not None and server not in only):
                continue
            words = own if isinstance(own, str) else text
            self._pieces.append(
                ContextPiece(server=server, uri="its instructions", text=words, kind="instructions")
            )

    def add_pinned(self, texts: Iterable[str]) -> None:
        """Add resources that somebody named: ``server+uri``, or a URI that one server lists."""
        for text in texts:
            try:
                server, uri = self._parts.catalog.resolve_resource(text, self._viewer)
            except IsthmusError as error:
                self._drop("", text, "pinned", str(error))
                continue
            self._want(self._describe(server, uri, "pinned"), pinned=True)

    def add_templates(self, values: Mapping[str, Mapping[str, Any]]) -> None:
        """Add resources of templates: ``server+template`` and its values."""
        for text, given in values.items():
            server, template = split_uri(text) or ("", text)
            try:
                uri = UriTemplate(template).expand(given)
            except (BadTemplate, TypeError, ValueError) as error:
                self._drop(server, template, "pinned", f"the template cannot be filled in: {error}")
                continue
            if server:
                self._want(self._describe(server, uri, "pinned"), pinned=True)
            else:
                self._drop(server, uri, "pinned", "say SERVER+TEMPLATE")

    def add_links(self) -> None:
        """Add resources that tools linked to in this run, read from the server that gave it."""
        for server, link in self._parts.servers.links.of(self._viewer.run):
            title = link.title or link.name
            piece = ContextPiece(server=server, uri=link.uri, text="", kind="link", title=title)
            self._want(annotate_piece(piece, link.annotations, link.description or ""))

    def add_resources(self, servers: Iterable[str] | None = None) -> None:
        """Add every resource that is listed; pages of apps are for people."""
        only = None if servers is None else set(servers)
        for item in self._parts.catalog.resources(self._viewer):
            if item.what.uri.startswith(APP_SCHEME) or (
                only is not None and item.server not in only
            ):
                continue
            self._want(self._describe(item.server, item.what.uri, "resource"))

    async def add_prompts(self, wanted: Mapping[str, Mapping[str, str]]) -> None:
        """Add prompts with their arguments, by their names in the catalog."""
        for name, arguments in wanted.items():
            try:
                server, _ = await self._parts.catalog.find_prompt(name, self._viewer)
            except IsthmusError as error:
                self._drop("", name, "prompt", str(error))
                continue
            viewer = self._viewer
            get = partial(
                self._parts.prompt,
                name,
                arguments,
                principal=viewer.principal,
                run=viewer.run or None,
            )
            found = await self._await_result(get, server, name, "prompt")
            if found is not None:
                text = "\n\n".join(
                    f"{message.role}: {join_texts(message.content)}" for message in found.messages
                )
                self._pieces.append(ContextPiece(server=server, uri=name, text=text, kind="prompt"))

    def _want(self, piece: ContextPiece, *, pinned: bool = False) -> None:
        key = piece.server, piece.uri
        if pinned or key not in self._wanted:
            self._wanted[key] = WantedResource(piece=piece, pinned=pinned)

    def _describe(self, server: str, uri: str, kind: PieceKind) -> ContextPiece:
        """Make a piece of a resource, with its server's description for a text."""
        plain = ContextPiece(server=server, uri=uri, text="", kind=kind)
        for item in self._parts.catalog.resources(self._viewer):
            if (item.server, item.what.uri) == (server, uri):
                what = item.what
                piece = structs.replace(plain, title=what.title or what.name)
                return annotate_piece(piece, what.annotations, what.description or "")
        return plain

    def _choose(self) -> list[WantedResource]:
        """Choose the resources to read: the pinned ones, and the best by their descriptions."""
        pinned = [one for one in self._wanted.values() if one.pinned]
        others = [one.piece for one in self._wanted.values() if not one.pinned]
        order = [piece for piece, _ in rank_pieces(others, self._query)]
        for piece in order[MAX_READ_RESOURCES:]:
            self._drop(piece.server, piece.uri, piece.kind, "others fit better: it was not read")
        return [*pinned, *(WantedResource(piece=piece) for piece in order[:MAX_READ_RESOURCES])]

    # Reading resources

    async def _read(self, resource: WantedResource) -> None:
        about = resource.piece
        if about.audience and "assistant" not in about.audience:
            self._drop(
                about.server, about.uri, about.kind, "its server means it for the user alone"
            )
            return
        async with self._room:
            if not resource.pinned and (why := await self._find_objection(about)):
                self._drop(about.server, about.uri, about.kind, why)
                return
            viewer = self._viewer
            found = await self._await_result(
                lambda: self._parts.read(
                    about.uri,
                    server=about.server,
                    principal=viewer.principal,
                    run=viewer.run or None,
                ),
                about.server,
                about.uri,
                about.kind,
                patient=resource.pinned,
            )
        self._pieces += (make_piece(about, part) for part in found.contents) if found else ()

    async def _find_objection(self, about: ContextPiece) -> str:
        """The reason why an unnamed resource is not read; empty where nobody is asked about it."""
        parts, viewer = self._parts, self._viewer
        attempt = parts.attempt(
            "resource.read", about.server, about.uri, None, viewer.principal, viewer.run or None
        )
        try:
            trace = await parts.pipeline.explain(attempt, ReadAct(parts.servers))
        except IsthmusError as error:
            return str(error)
        if trace.effect == "deny":
            return f"policy denies it: {trace.reason}"
        return "" if trace.effect == "allow" else NOT_ASKED

    async def _await_result(
        self,
        get: Callable[[], Awaitable[Any]],
        server: str,
        uri: str,
        kind: PieceKind,
        *,
        patient: bool = True,
    ) -> Any:
        """Await a result; None, with the reason among the dropped, where it cannot be had."""
        try:
            async with asyncio.timeout(None if patient else READ_TIMEOUT_S):
                return await get()
        except TimeoutError:
            self._drop(
                server, uri, kind, f"its server did not give it within {READ_TIMEOUT_S:g} seconds"
            )
        except IsthmusError as error:
            self._drop(server, uri, kind, str(error))
        return None

    def _drop(self, server: str, uri: str, kind: PieceKind, reason: str) -> None:
        self._dropped.append(make_dropped(server, uri, kind, reason))


def make_dropped(server: str, uri: str, kind: PieceKind, reason: str) -> PlacedPiece:
    """Make the record of a piece that could not be had."""
    return PlacedPiece(
        server=server, uri=uri, title="", kind=kind, state="dropped", reason=reason[:500]
    )


def annotate_piece(piece: ContextPiece, annotations: Annotations | Any, about: str) -> ContextPiece:
    """Add a server's annotations and description to a piece."""
    text = f"{piece.title} {about}"[:2000]
    if annotations is UNSET:
        return structs.replace(piece, text=text)
    return structs.replace(
        piece,
        text=text,
        priority=None if annotations.priority is UNSET else annotations.priority,
        audience=() if annotations.audience is UNSET else tuple(annotations.audience),
        modified=parse_time(annotations.last_modified or ""),
    )


def parse_time(text: str) -> float | None:
    """Parse a time of ISO 8601 into seconds since the epoch; None where it is none."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        return None


def make_piece(about: ContextPiece, part: ResourceContents) -> ContextPiece:
    """Make a piece of what was read of a resource."""
    kind = part.mime_type or ("text/plain" if part.text is not UNSET else "bytes")
    uri = part.uri or about.uri
    if part.text is not UNSET:
        return structs.replace(about, uri=uri, text=part.text, mime_type=kind)
    blob = part.blob or ""
    if kind.startswith(("image/", "audio/")):
        return structs.replace(about, uri=uri, text=blob, mime_type=kind, media=True)
    size = len(blob) * 3 // 4
    return structs.replace(
        about, uri=uri, text=f"[{kind}, {size} bytes, not shown]", mime_type=kind
    )


def join_texts(content: Any) -> str:
    """Join the texts of a prompt's message."""
    parts: Sequence[Any] = list_blocks(content) if isinstance(content, list) else [content]
    return "\n".join(
        part.text
        if isinstance(part, TextContent)
        else (part.resource.text or f"[{part.resource.uri}]")
        if isinstance(part, EmbeddedResource)
        else "[what is no text is left out]"
        for part in parts
    )
