"""MaxResult: large results of tools are cut, with a link to the whole."""

import hmac
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, structs

from isthmus.core.principal import owner_of
from isthmus.errors import StoreUnavailable, UsageError
from isthmus.revisions import METHODS
from isthmus.runtime.inbound import Inbound
from isthmus.server.middleware.hooks import CallNext, Middleware, MiddlewareContext, ToolOutcome
from isthmus.store.kv import KV, MemoryKV, StoreFull
from isthmus.wire import (
    AudioContent,
    BlobResourceContents,
    CallToolParams,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    InputRequiredResult,
    ReadResourceParams,
    ReadResourceResult,
    ResourceContents,
    ResourceLink,
    TextContent,
    TextResourceContents,
)
from isthmus.wire.jsonrpc import encode

if TYPE_CHECKING:
    from isthmus.server.middleware.hook_layer import ServerParts

SCHEME = "isthmus-result://"
TOKEN_BYTES = 24
MIN_RESULT_BYTES = 2_048
NOTE_BYTES = 1_024  # for the note and the link
MAX_ESCAPE = 6  # bytes of JSON that one byte of a text may become


class KeptResult(msgspec.Struct, frozen=True):
    """A whole result as it is kept.

    Attributes:
        owner: who may read it.
        result: a ``ReadResourceResult`` as JSON.
    """

    owner: str
    result: msgspec.Raw


class MaxResult(Middleware):
    """Cuts results of tools that are too large for a model, and links to the whole.

    Text is cut with a note, further blocks are left out, and a resource link leads to all of it. It
    is kept for a time, at a URI that cannot be guessed, and read by ``resources/read``: only by the
    principal who called, or without authorization by the session, where there is one.

    Structured content that fits stays as it is, since it must be what the output schema says. Where
    it does not fit, it is left out; a tool with an output schema then answers with ``is_error``, so
    that nobody takes what is left for its result.

    Put it outside of ``Caching``. Results of tasks do not pass it.

    Args:
        max_bytes: bytes of JSON that a result may have, 2,048 or more.
        keep: seconds that the whole is kept: in the server's store, where it has one.
        max_kept: results that are kept in this process, where there is no store.
        max_kept_bytes: the bytes of all of these. What finds no room is cut without a link.

    Raises:
        UsageError: a figure is none.
    """

    def __init__(
        self,
        max_bytes: int,
        *,
        keep: float = 600.0,
        max_kept: int = 1_000,
        max_kept_bytes: int = 64 * 1024 * 1024,
    ) -> None:
        if max_bytes < MIN_RESULT_BYTES or not keep > 0 or max_kept < 1:
            raise UsageError(
                f"MaxResult({max_bytes!r}, keep={keep!r}, max_kept={max_kept!r}): at least "
                f"{MIN_RESULT_BYTES} bytes, seconds above 0, and 1 or more"
            )
        self._max_bytes, self._keep = max_bytes, keep
        self._kv: KV = MemoryKV(max_kept, size=max_kept_bytes)

    def attach(self, server: "ServerParts") -> None:
        """Use the server's store, and declare that there are resources.

        Args:
            server: the parts of the server that a middleware may use.
        """
        if server.kv is not None:
            self._kv = server.kv
        server.offer_resources()

    async def on_call_tool(
        self,
        ctx: MiddlewareContext[CallToolParams],
        call_next: CallNext[CallToolParams, ToolOutcome],
    ) -> ToolOutcome:
        """Cut the result of a tool, if it is too large.

        Args:
            ctx: the request: its params, caller and server.
            call_next: ``await call_next(ctx)`` serves the request and gives its result.

        Returns:
            The result, cut where it was too large.
        """
        result = await call_next(ctx)
        if type(result) is not CallToolResult or not self._may_exceed(result):
            return result
        size = len(encode(result))
        if size <= self._max_bytes:
            return result
        uri = await self._store(ctx, result)
        return self._cut(ctx, result, size, uri)

    async def on_read_resource(
        self,
        ctx: MiddlewareContext[ReadResourceParams],
        call_next: CallNext[ReadResourceParams, ReadResourceResult | InputRequiredResult],
    ) -> ReadResourceResult | InputRequiredResult:
        """Read a resource; the whole of a result that was cut is given to its caller alone.

        Args:
            ctx: the request: its params, caller and server.
            call_next: ``await call_next(ctx)`` serves the request and gives its result.
        """
        uri = ctx.params.uri
        if uri.startswith(SCHEME):
            entry = await self._kv.get(make_store_key(uri))
            if entry is not None:
                kept = msgspec.json.decode(entry.value, type=KeptResult)
                if hmac.compare_digest(kept.owner.encode(), identify_reader(ctx.inbound).encode()):
                    read: ReadResourceResult = METHODS["resources/read"].decode_result(kept.result)
                    return read
        return await call_next(ctx)  # somebody else's is not found, like one that never was

    def _may_exceed(self, result: CallToolResult) -> bool:
        if result.structured_content is not UNSET:
            return True
        texts = [one.text for one in result.content if type(one) is TextContent]
        if len(texts) < len(result.content):
            return True
        return sum(map(len, texts)) * MAX_ESCAPE + 256 * len(texts) > self._max_bytes

    async def _store(self, ctx: MiddlewareContext[Any], result: CallToolResult) -> str | None:
        uri = SCHEME + secrets.token_urlsafe(TOKEN_BYTES)
        whole = ReadResourceResult(
            contents=list_contents(result, uri), ttl_ms=0, cache_scope="private"
        )
        kept = KeptResult(identify_reader(ctx.inbound), msgspec.Raw(encode(whole)))
        try:
            await self._kv.put(make_store_key(uri), msgspec.json.encode(kept), self._keep)
        except (StoreFull, StoreUnavailable):
            return None
        return uri

    def _cut(
        self, ctx: MiddlewareContext[Any], result: CallToolResult, size: int, uri: str | None
    ) -> CallToolResult:
        room = self._max_bytes - NOTE_BYTES
        structured = result.structured_content
        taken = 0 if structured is UNSET else len(encode(structured))
        fits = taken <= room
        tool = ctx.tool
        promised = tool is not None and tool.output_schema is not UNSET
        broken = not fits and promised
        where = f"; all of it is at {uri} for {self._keep:g} s" if uri else ""
        blocks = cut_blocks(result.content, room - taken if fits else room)
        note = TextContent(text=f"[cut: this result has {size} bytes{where}]")
        link = [] if uri is None else [ResourceLink(uri=uri, name="whole-result", size=size)]
        return structs.replace(
            result,
            content=[*blocks, note, *link],
            structured_content=structured if fits else UNSET,
            is_error=True if broken else result.is_error,
        )


def identify_reader(inbound: Inbound) -> str:
    """Name who may read a result: the principal, or else the session, or else whoever knows the URI."""
    owner = owner_of(inbound.principal)
    if owner is not None:
        return f"principal {owner}"
    session = inbound.origin.session
    return "" if session is None else f"session {session}"


def make_store_key(uri: str) -> str:
    """The key of a whole result in the store, whatever a client put into the URI."""
    from hashlib import sha256  # most servers keep none

    return f"results/{sha256(uri.encode('utf-8', 'surrogatepass')).hexdigest()}"


def list_contents(result: CallToolResult, uri: str) -> list[ResourceContents]:
    """A result as the contents of a resource: its blocks, then its structured content."""
    found: list[ResourceContents] = []
    for block in result.content:
        if isinstance(block, TextContent):
            found.append(TextResourceContents(uri=uri, mime_type="text/plain", text=block.text))
        elif isinstance(block, ImageContent | AudioContent):
            found.append(BlobResourceContents(uri=uri, mime_type=block.mime_type, blob=block.data))
        elif isinstance(block, EmbeddedResource):
            found.append(block.resource)
        else:
            found.append(_show_as_json(block, uri))
    if result.structured_content is not UNSET:
        found.append(_show_as_json(result.structured_content, uri))
    return found


def _show_as_json(value: Any, uri: str) -> TextResourceContents:
    return TextResourceContents(uri=uri, mime_type="application/json", text=encode(value).decode())


def cut_blocks(content: Sequence[ContentBlock], room: int) -> list[ContentBlock]:
    """The blocks that there is room for, in order, and the beginning of the text that does not fit."""
    kept: list[ContentBlock] = []
    for block in content:
        size = len(encode(block)) + 1
        if size <= room:
            kept.append(block)
            room -= size
            continue
        if isinstance(block, TextContent):
            text = cut_text(block.text, room - (size - len(encode(block.text))))
            if text:
                kept.append(structs.replace(block, text=text))
        break
    return kept


def cut_text(text: str, room: int) -> str:
    """The beginning of a text that has no more bytes than this, as JSON."""
    if room <= 2:  # the quotes
        return ""
    low, high = 0, min(len(text), room)
    while low < high:
        middle = (low + high + 1) // 2
        if len(encode(text[:middle])) <= room:
            low = middle
        else:
            high = middle - 1
    return text[:low]
