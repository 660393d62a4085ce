"""Context builder: gathers pieces, fits them into a budget, has policy agree, and keeps the manifest."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs

from isthmus.core.redaction.values import Redactor
from isthmus.host.catalog.names import Viewer
from isthmus.host.context.fitting import FittedContext, fit_pieces
from isthmus.host.context.gatherer import (
    ContextGatherer,
    ContextParts,
    GatheredContext,
    InstructionChoice,
    make_dropped,
)
from isthmus.host.context.pieces import ContextManifest, ContextPiece, PlacedPiece
from isthmus.host.model.errors import Denied
from isthmus.host.model.framing import frame_text
from isthmus.host.model.tokens import TokenCounter
from isthmus.host.pipeline.acts.server_acts import ShareAct, ShareAgreement, SharedContext
from isthmus.wire import AudioContent, ImageContent, SamplingMessage, TextContent

if TYPE_CHECKING:
    from isthmus.host.catalog.catalog import HostCatalog
    from isthmus.host.model.attempt import Attempt
    from isthmus.host.model.facts import Facts
    from isthmus.host.pipeline.runs import Run
    from isthmus.host.questions.answers import ServerQuestion

LIST_TIMEOUT_S = 10.0


class BuiltContext(Struct, frozen=True):
    """A context for a model, and its manifest.

    Attributes:
        messages: for a model, one of the user's; none where there is nothing to give.
        manifest: every candidate, what became of it, and why.
    """

    messages: tuple[SamplingMessage, ...]
    manifest: ContextManifest


class ContextBuilder:
    """Builds contexts from what servers have.

    Args:
        parts: of the host.
    """

    def __init__(self, parts: ContextParts) -> None:
        self._parts = parts
        self._redactor = Redactor()

    async def build(
        self,
        query: str = "",
        *,
        budget_tokens: int,
        to: str,
        run: "Run | str | None" = None,
        principal: str = "user:local",
        pins: Iterable[str] = (),
        templates: Mapping[str, Mapping[str, Any]] | None = None,
        prompts: Mapping[str, Mapping[str, str]] | None = None,
        instructions: InstructionChoice = True,
        resources: bool = False,
        links: bool = True,
        media: bool = False,
        share: float = 0.5,
        counter: TokenCounter | None = None,
    ) -> BuiltContext:
        """Build a context: gather pieces, choose those that fit, and have them agreed to.

        What is read is read through the pipeline, and before anything is given away policy, and
        where it says so a person, agrees to it: one question about all of it.

        Args:
            query: what it is for, in words.
            budget_tokens: tokens that it may take, frames included.
            to: who gets it: ``provider/model``.
            run: in which run; what is included labels it.
            principal: for whom.
            pins: resources that come first: ``server+uri``, or a URI that one server lists. A person
                may be asked about these, and about nothing else, before they are read.
            templates: values of templates, by ``server+template``; pinned likewise.
            prompts: arguments of prompts, by their names in the catalog.
            instructions: what servers say of themselves: all, none, or by server.
            resources: whether whatever servers list is a candidate, too.
            links: whether what tools gave links to in this run is.
            media: whether pictures and sounds are included.
            share: how much of the budget one server may take, from 0 to 1.
            counter: counts tokens; an estimator of the model by default.
        """
        parts = self._parts
        viewer = Viewer(principal, parts.runs.find_id(run))
        await load_lists(parts.catalog, viewer)
        gatherer = ContextGatherer(parts, viewer, query)
        gatherer.add_instructions(instructions)
        gatherer.add_pinned(pins)
        gatherer.add_templates(templates or {})
        if links:
            gatherer.add_links()
        if resources:
            gatherer.add_resources()
        await gatherer.add_prompts(prompts or {})
        gathered = self._redact(await gatherer.gather())
        count = counter or parts.estimators.of(to)

        def choose(pieces: Sequence[ContextPiece]) -> FittedContext:
            return fit_pieces(pieces, budget_tokens, count, query=query, share=share, media=media)

        return await build_agreed(_ContextSharing(parts, viewer, to), gathered, choose)

    async def gather(
        self, asking: "ServerQuestion", *, everybody: bool, budget: int
    ) -> Sequence[SharedContext]:
        """Gather context for a server whose request asks for it: the server's own, or everybody's.

        What policy keeps from being shared is not in it; the sampler asks about the rest.

        Args:
            asking: the server, and in the course of what it asks.
            everybody: of all servers.
            budget: tokens that it may take.
        """
        parts = self._parts
        principal = "user:local" if asking.parent is None else asking.parent.principal
        viewer = Viewer(principal, asking.run)
        servers = None if everybody else [asking.entry.name]
        gatherer = ContextGatherer(parts, viewer, "")
        gatherer.add_instructions(True, servers)
        gatherer.add_resources(servers)
        gathered = self._redact(await gatherer.gather())
        share = _ContextSharing(parts, viewer, asking.principal)
        pieces = [
            piece
            for piece in gathered.pieces
            if piece.server == asking.entry.name or not await share.is_denied(piece.server)
        ]
        fitted = fit_pieces(
            pieces, budget, parts.estimators.of(""), share=0.5 if everybody else 1.0
        )
        share.label({piece.server for piece in fitted.pieces})
        return [
            SharedContext(server=one.server, what=one.title or one.uri, text=one.text)
            for one in fitted.pieces
        ]

    def _redact(self, gathered: GatheredContext) -> GatheredContext:
        hide = self._redactor.text
        pieces = tuple(
            structs.replace(
                piece,
                uri=hide(piece.uri),
                title=hide(piece.title),
                text=piece.text if piece.media else hide(piece.text),
            )
            for piece in gathered.pieces
        )
        return structs.replace(gathered, pieces=pieces)


class _ContextSharing:
    """Decides what may be shared with somebody, server by server.

    Args:
        parts: of the host.
        viewer: whose context it is.
        to: who gets it.
    """

    def __init__(self, parts: ContextParts, viewer: Viewer, to: str) -> None:
        self._parts = parts
        self._viewer = viewer
        self._to = to
        self._asking: set[str] = set()

    async def filter_shared(
        self, pieces: Sequence[ContextPiece]
    ) -> tuple[list[ContextPiece], list[PlacedPiece]]:
        """Split the pieces into those that policy lets be shared, and the others."""
        barred: dict[str, str] = {}
        for server in sorted({piece.server for piece in pieces}):
            if await self.is_denied(server):
                barred[server] = (
                    await self._run(server, (), ShareAgreement()) or "it may not be shared"
                )
        kept = [piece for piece in pieces if piece.server not in barred]
        gone = [
            make_dropped(piece.server, piece.uri, piece.kind, barred[piece.server])
            for piece in pieces
            if piece.server in barred
        ]
        return kept, gone

    async def is_denied(self, server: str) -> bool:
        """Whether policy denies all sharing of a server's data."""
        attempt, facts = self._attempt(server, ())
        trace = await self._parts.pipeline.explain(attempt, ShareAct(facts, self._to, ()))
        if trace.effect == "ask":
            self._asking.add(server)
        return trace.effect == "deny"

    async def ask_agreement(self, manifest: ContextManifest) -> Mapping[str, str]:
        """Have policy and people agree: the servers of which nothing may be shared, and why."""
        lines: dict[str, list[str]] = {}
        for one in manifest.placed:
            if one.state != "dropped":
                cut = ", in part" if one.state == "truncated" else ""
                title = f" ({one.title})" if one.title else ""
                said = f"{one.server}: {one.uri}{title}, {one.tokens} tokens{cut}"
                lines.setdefault(one.server, []).append(said)
        question = [
            said for server in sorted(lines) if server in self._asking for said in lines[server]
        ]
        refused: dict[str, str] = {}
        answer, no = ShareAgreement(), ""
        for server in sorted(lines):
            asking = server in self._asking
            what = question if asking else lines[server]
            why = no if asking and no else await self._run(server, what, answer)
            if why:
                refused[server] = why
                no = why if asking else no
        return refused

    def label(self, servers: Iterable[str]) -> None:
        """Label the run with what it has read of these servers."""
        run = self._parts.runs.find(self._viewer.run)
        for server in sorted(servers) if run is not None else ():
            run.taken.take(*self._attempt(server, ()))  # type: ignore[union-attr]  # see above

    async def _run(self, server: str, what: Sequence[str], answer: ShareAgreement) -> str:
        """Have the pipeline decide about a server; the reason where it is a no."""
        attempt, facts = self._attempt(server, what)
        try:
            await self._parts.pipeline.run(attempt, ShareAct(facts, self._to, what, answer))
        except Denied as error:
            return str(error)
        return ""

    def _attempt(self, server: str, what: Sequence[str]) -> "tuple[Attempt, Facts]":
        servers, viewer = self._parts.servers, self._viewer
        isolation = servers.isolation(server, viewer.principal, viewer.run)
        attempt = self._parts.attempt(
            "context.share",
            server,
            self._to,
            {"to": self._to, "what": list(what)},
            viewer.principal,
            viewer.run or None,
        )
        facts = servers.facts(server, isolation)
        # It is not the server that anything is sent to.
        return attempt, structs.replace(facts, target=structs.replace(facts.target, egress=False))


async def load_lists(catalog: "HostCatalog", viewer: Viewer) -> None:
    """Load the lists of servers of which nothing is known yet, and wait for them a while."""
    try:
        async with asyncio.timeout(LIST_TIMEOUT_S):
            await catalog.load(isolation=viewer)
    except TimeoutError:
        pass  # who has not answered has nothing to give


async def build_agreed(
    share: _ContextSharing,
    gathered: GatheredContext,
    choose: Callable[[Sequence[ContextPiece]], FittedContext],
) -> BuiltContext:
    """Fit the pieces that may be shared, and have it agreed to."""
    pieces, barred = await share.filter_shared(gathered.pieces)
    fitted = choose(pieces)
    refused = await share.ask_agreement(fitted.manifest)
    share.label(list_included_servers(fitted) - refused.keys())
    manifest = account_refused(fitted.manifest, refused, (*barred, *gathered.dropped))
    return BuiltContext(make_messages(fitted, refused), manifest)


def list_included_servers(fitted: FittedContext) -> set[str]:
    """List the servers of which something is included."""
    return {one.server for one in fitted.manifest.placed if one.state != "dropped"}


def make_messages(fitted: FittedContext, refused: Mapping[str, str]) -> tuple[SamplingMessage, ...]:
    """Make the messages for a model, without what must not be shared."""
    content: list[Any] = [
        TextContent(text=frame_text(piece.server, piece.uri, piece.text))
        for piece in fitted.pieces
        if piece.server not in refused
    ]
    for piece in fitted.media:
        if piece.server not in refused:
            kind = ImageContent if piece.mime_type.startswith("image/") else AudioContent
            content.append(kind(data=piece.text, mime_type=piece.mime_type))
    return (SamplingMessage(role="user", content=content),) if content else ()


def account_refused(
    manifest: ContextManifest, refused: Mapping[str, str], others: Iterable[PlacedPiece]
) -> ContextManifest:
    """Add what must not be shared, and what could not be had, to the manifest."""
    placed = [
        structs.replace(one, state="dropped", tokens=0, reason=refused[one.server])
        if one.server in refused and one.state != "dropped"
        else one
        for one in manifest.placed
    ]
    placed += others
    return structs.replace(manifest, placed=tuple(placed), tokens=sum(one.tokens for one in placed))
