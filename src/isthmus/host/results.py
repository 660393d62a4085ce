"""Results that are too large to pass on: their beginning, and a link to the rest.

The rest is kept in memory for a while, and read a page at a time at the link's URI, which only the
host itself serves. Nothing of a result is lost to who wants it, and no result floods a model.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

from msgspec import UNSET, Struct, structs

from isthmus.host.attempt import Attempt
from isthmus.host.errors import Unknown
from isthmus.host.policy.facts import Facts
from isthmus.wire import (
    AudioContent,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ReadResourceResult,
    ResourceLink,
    TextContent,
    TextResourceContents,
)
from isthmus.wire.jsonrpc import encode

__all__ = ["HOST", "KeptResults"]

HOST = "isthmus"
"""The name under which the host's own resources are read, which no server can have."""

SCHEME = "isthmus"
MOST_BYTES = 64 * 1024 * 1024
"""Bytes of kept results; the oldest make room."""

OVERHEAD = 64
"""Bytes that a block costs beyond its text or data."""


Source: TypeAlias = tuple[Attempt, Facts]
"""What a result came of, and under which circumstances."""


class Rest(Struct, frozen=True):
    """One text that was too long.

    Attributes:
        principal: who may read it.
        text: the whole of it.
        page: bytes of a page.
        source: what it came of, for its labels; None where nobody knows.
    """

    principal: str
    text: bytes
    page: int
    source: Source | None


class KeptResults:
    """What was cut off results, for a while.

    Args:
        most: bytes in all; the oldest make room.
    """

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._size = 0
        self._kept: OrderedDict[str, Rest] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def cap(
        self,
        result: CallToolResult,
        most: int,
        *,
        call: str,
        principal: str,
        source: Source | None = None,
    ) -> CallToolResult:
        """A result of at most so many bytes; the same object where it is no larger.

        Text is cut where the limit is, and a link to the whole of it follows. Pictures, sounds and
        embedded resources that no longer fit become a line that says what they were. Structured
        content that is too large is left out, and linked as JSON.

        Args:
            result: as the server gave it.
            most: bytes of all content together.
            call: the attempt's id, which the links are made of.
            principal: who may follow them.
            source: what it came of: who reads the rest has read of that.
        """
        link = partial(self._link, principal, most, source)
        structured = result.structured_content
        data = b"" if structured is UNSET else encode(structured)
        sizes = [size_of(block) for block in result.content]
        if sum(sizes) + len(data) <= most:
            return result
        content: list[ContentBlock] = []
        left = most - len(data) if len(data) <= most // 2 else most
        for number, (block, size) in enumerate(zip(result.content, sizes, strict=True)):
            if size <= left:
                content.append(block)
                left -= size
                continue
            content += self._cut(block, max(0, left - OVERHEAD), f"{call}/{number}", link)
            left = 0
        if len(data) <= most // 2:
            return structs.replace(result, content=content)
        said = (
            f"[structured content of {len(data)} bytes, more than the {most} allowed, is left out]"
        )
        content += [TextContent(text=said), link(f"{call}/structured", data, "application/json")]
        return structs.replace(result, content=content, structured_content=UNSET)

    @staticmethod
    def _cut(
        block: Any, left: int, name: str, link: Callable[[str, bytes, str], ResourceLink]
    ) -> Sequence[ContentBlock]:
        """What takes the place of a block that does not fit."""
        if not isinstance(block, TextContent):
            return [TextContent(text=f"[{kind_of(block)} of {size_of(block)} bytes is left out]")]
        data = block.text.encode("utf-8", "surrogatepass")
        head = data[:left].decode("utf-8", "ignore")
        rest = len(data) - len(head.encode())
        said = f"{head}\n[{rest} of {len(data)} bytes are left out; the whole is at the link below]"
        return [structs.replace(block, text=said), link(name, data, "text/plain")]

    def _link(  # noqa: PLR0917 - the first three are given once for a result
        self,
        principal: str,
        page: int,
        source: Source | None,
        name: str,
        data: bytes,
        mime_type: str,
    ) -> ResourceLink:
        before = self._kept.pop(name, None)
        self._kept[name] = Rest(principal, data, page, source)
        self._size += len(data) - (0 if before is None else len(before.text))
        while self._size > self._most and len(self._kept) > 1:
            self._size -= len(self._kept.popitem(last=False)[1].text)
        return ResourceLink(
            uri=f"{SCHEME}://results/{name}",
            name=name,
            description=f"the whole text, {len(data)} bytes, a page at a time",
            mime_type=mime_type,
            size=len(data),
        )

    def read(self, uri: str, principal: str) -> ReadResourceResult:
        """A page of what was cut off; ``?from=BYTES`` says where it begins.

        Raises:
            Unknown: there is no such result, no longer, or it is somebody else's.
        """
        from urllib.parse import parse_qs, urlsplit  # few results are too large

        name, kept = self._found(uri, principal)
        said = parse_qs(urlsplit(uri).query).get("from", ["0"])[0]
        start = int(said) if said.isascii() and said.isdigit() else 0
        end = min(len(kept.text), start + kept.page)
        while start < end < len(kept.text) and kept.text[end] & 0xC0 == 0x80:
            end -= 1  # no character is cut in two
        text = kept.text[start:end].decode("utf-8", "replace")
        if end < len(kept.text):
            text += f"\n[it goes on at {SCHEME}://results/{name}?from={end}]"
        return ReadResourceResult(contents=[TextResourceContents(uri=uri, text=text)])

    def source(self, uri: str, principal: str) -> Source | None:
        """What it came of, and under which circumstances.

        Raises:
            Unknown: as :meth:`read`.
        """
        return self._found(uri, principal)[1].source

    def _found(self, uri: str, principal: str) -> tuple[str, Rest]:
        from urllib.parse import urlsplit  # as above

        parts = urlsplit(uri)
        name = parts.path.lstrip("/")
        kept = self._kept.get(name) if (parts.scheme, parts.netloc) == (SCHEME, "results") else None
        if kept is None or kept.principal != principal:
            raise Unknown(
                f"there is no result at {uri}: it is kept for a while only, so call the tool again"
            )
        return name, kept


def size_of(block: Any) -> int:
    """Bytes that a block takes."""
    match block:
        case TextContent():
            return len(block.text.encode("utf-8", "surrogatepass")) + OVERHEAD
        case ImageContent() | AudioContent():
            return len(block.data) + OVERHEAD
        case _:
            return len(encode(block))


def kind_of(block: Any) -> str:
    """What a block is, in words."""
    match block:
        case ImageContent() | AudioContent():
            return block.mime_type
        case EmbeddedResource():
            return f"the resource {block.resource.uri}"
        case ResourceLink():
            return f"a link to {block.uri}"
        case _:
            return "content of an unknown kind"
