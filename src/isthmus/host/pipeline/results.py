"""Results of tools, cut where they are too large, and redacted where a rule hides something.

The rest of a cut result is kept in memory for a while, and read a page at a time at the link's URI, which only the
host itself serves. Nothing of a result is lost to who wants it, and no result floods a model.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, Struct, structs

from isthmus.core.redaction.values import Redactor
from isthmus.host.model.attempt import Attempt
from isthmus.host.model.errors import Unknown
from isthmus.host.model.facts import Facts
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

# the host's own resources are read under this name, which no server can have
HOST_SERVER = "isthmus"
RESULT_SCHEME = "isthmus"
MAX_KEPT_BYTES = 64 * 1024 * 1024  # the oldest results make room
BLOCK_OVERHEAD_BYTES = 64  # beyond its text or data


ResultSource: TypeAlias = tuple[Attempt, Facts]
"""What a result came of, and under which circumstances."""


class CutText(Struct, frozen=True):
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
    source: ResultSource | None


class KeptResults:
    """Results that were cut, kept whole for a while.

    Args:
        most: bytes in all; the oldest make room.
    """

    def __init__(self, most: int = MAX_KEPT_BYTES) -> None:
        self._most = most
        self._size = 0
        self._kept: OrderedDict[str, CutText] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def cap(
        self,
        result: CallToolResult,
        most: int,
        *,
        call: str,
        principal: str,
        source: ResultSource | None = None,
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
        sizes = list(map(measure_block, result.content))
        if sum(sizes) + len(data) <= most:
            return result
        content: list[ContentBlock] = []
        left = most - len(data) if len(data) <= most // 2 else most
        for number, (block, size) in enumerate(zip(result.content, sizes, strict=True)):
            if size <= left:
                content.append(block)
                left -= size
                continue
            content += self._cut(
                block, max(0, left - BLOCK_OVERHEAD_BYTES), f"{call}/{number}", link
            )
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
        """The blocks that take the place of one that does not fit."""
        if not isinstance(block, TextContent):
            return [
                TextContent(
                    text=f"[{describe_block(block)} of {measure_block(block)} bytes is left out]"
                )
            ]
        data = block.text.encode("utf-8", "surrogatepass")
        head = data[:left].decode("utf-8", "ignore")
        rest = len(data) - len(head.encode())
        said = f"{head}\n[{rest} of {len(data)} bytes are left out; the whole is at the link below]"
        return [structs.replace(block, text=said), link(name, data, "text/plain")]

    def _link(  # noqa: PLR0917 - the first three are given once for a result
        self,
        principal: str,
        page: int,
        source: ResultSource | None,
        name: str,
        data: bytes,
        mime_type: str,
    ) -> ResourceLink:
        before = self._kept.pop(name, None)
        self._kept[name] = CutText(principal, data, page, source)
        self._size += len(data) - (0 if before is None else len(before.text))
        while self._size > self._most and len(self._kept) > 1:
            self._size -= len(self._kept.popitem(last=False)[1].text)
        return ResourceLink(
            uri=f"{RESULT_SCHEME}://results/{name}",
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
            text += f"\n[it goes on at {RESULT_SCHEME}://results/{name}?from={end}]"
        return ReadResourceResult(contents=[TextResourceContents(uri=uri, text=text)])

    def source(self, uri: str, principal: str) -> ResultSource | None:
        """The attempt that a result came of, and its facts.

        Raises:
            Unknown: as :meth:`read`.
        """
        return self._found(uri, principal)[1].source

    def _found(self, uri: str, principal: str) -> tuple[str, CutText]:
        from urllib.parse import urlsplit  # as above

        parts = urlsplit(uri)
        name = parts.path.lstrip("/")
        kept = (
            self._kept.get(name)
            if (parts.scheme, parts.netloc) == (RESULT_SCHEME, "results")
            else None
        )
        if kept is None or kept.principal != principal:
            raise Unknown(
                f"there is no result at {uri}: it is kept for a while only, so call the tool again"
            )
        return name, kept


def measure_block(block: Any) -> int:
    """Bytes that a block takes."""
    match block:
        case TextContent():
            return len(block.text.encode("utf-8", "surrogatepass")) + BLOCK_OVERHEAD_BYTES
        case ImageContent() | AudioContent():
            return len(block.data) + BLOCK_OVERHEAD_BYTES
        case _:
            return len(encode(block))


def describe_block(block: Any) -> str:
    """Describe a block in words."""
    match block:
        case ImageContent() | AudioContent():
            return block.mime_type
        case EmbeddedResource():
            return f"the resource {block.resource.uri}"
        case ResourceLink():
            return f"a link to {block.uri}"
        case _:
            return "content of an unknown kind"


def redact_result(result: CallToolResult, pointers: Sequence[str]) -> CallToolResult:
    """A tool's result without what pointers hide, in both its forms.

    Args:
        result: the whole of it: of what was cut off nobody can say what it is.
        pointers: JSON pointers into the structured content, and into texts that are JSON.
    """
    hide, structured = Redactor(secrets=tuple), result.structured_content
    if structured is not UNSET:
        structured = hide.strip(structured, pointers)
    content = [redact_block(hide, block, pointers) for block in result.content]
    return structs.replace(result, structured_content=structured, content=content)


def redact_resource(result: ReadResourceResult, pointers: Sequence[str]) -> ReadResourceResult:
    """A resource without what pointers hide, where it is JSON."""
    hide = Redactor(secrets=tuple)
    contents = [redact_contents(hide, one, pointers) for one in result.contents]
    return structs.replace(result, contents=contents)


def redact_block(hide: Redactor, block: Any, pointers: Sequence[str]) -> Any:
    """One block of a result."""
    match block:
        case TextContent():
            return structs.replace(block, text=redact_text(hide, block.text, pointers))
        case EmbeddedResource():
            resource = redact_contents(hide, block.resource, pointers)
            return structs.replace(block, resource=resource)
        case _:
            return block


def redact_contents(hide: Redactor, contents: Any, pointers: Sequence[str]) -> Any:
    """Redact the contents of one resource."""
    if not isinstance(contents, TextResourceContents):
        return contents
    return structs.replace(contents, text=redact_text(hide, contents.text, pointers))


def redact_text(hide: Redactor, text: str, pointers: Sequence[str]) -> str:
    """A text without what pointers hide in it, where it is JSON."""
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
    if not isinstance(value, dict | list):
        return text
    return msgspec.json.encode(hide.strip(value, pointers)).decode()
