r"""Tool output made safe to show: no control characters, no more than was asked for.

What a tool returns may come from anywhere: a web page, a log, another program's terminal. Control
characters in it can rewrite what a terminal shows, and a result of a hundred megabytes ends a
conversation.

spec 2026-07-28 server/tools#security-considerations: servers MUST sanitise tool outputs.
"""

import re
from collections.abc import Iterator
from operator import is_not
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, Raw, structs

from isthmus.errors import UsageError
from isthmus.runtime.inbound import Inbound
from isthmus.runtime.middleware import CallNext
from isthmus.wire import (
    AudioContent,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    TextContent,
    TextResourceContents,
)
from isthmus.wire.jsonrpc import encode

TERMINAL_SEQUENCES = (  # commands of terminals: colours, titles, movements of the cursor
    "\x1b(?:\\[[0-?]*+[ -/]*+[@-~]|[\\]P^_X][^\x07\x1b]*+(?:\x07|\x1b\\\\)?+|[ -/]*+[0-~])"
)

CONTROL_CHARS = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"  # but for tabs and ends of lines

ASCII_CONTROLS = [chr(code) for code in (*range(32), 127) if chr(code) not in "\t\n\r"]
ASCII_CONTROL_CODES = [*map(ord, ASCII_CONTROLS)]
UTF8_CONTROL = rb"\xc2[\x80-\x9f]"  # one of the others in UTF-8

MAX_SHORT_CHARS = 1_000  # of a text that is looked through at once, rather than for each control

R = TypeVar("R")


def has_controls(text: str) -> bool:
    """Whether there are control characters in a text, other than tabs and ends of lines."""
    if len(text) <= MAX_SHORT_CHARS:
        return not text.isprintable() and re.search(CONTROL_CHARS, text) is not None
    # Memory is searched for one byte much faster than for one of several.
    if text.isascii():
        return any(map(text.__contains__, ASCII_CONTROLS))
    data = text.encode(errors="surrogatepass")
    if any(map(data.__contains__, ASCII_CONTROL_CODES)):
        return True
    return b"\xc2" in data and re.search(UTF8_CONTROL, data) is not None


class Sanitise(msgspec.Struct, frozen=True, kw_only=True):
    """Sanitises tool output; ``Server(sanitise=Sanitise(most=100_000))``.

    A server sanitises by default; ``Server(sanitise=None)`` leaves everything as it is. One may
    also stand among the ``middleware``, for a server that has more than one idea of it.

    Structured content is never changed, since it must be what its schema says.

    Attributes:
        controls: what becomes of control characters in text: ``"replace"`` puts U+FFFD in their
            place, once the commands for terminals were taken out; ``"strip"`` takes them out;
            ``"keep"`` leaves them in.
        most: the most that one result may hold: characters of text and of base64, and bytes of
            structured JSON. None for any size.
        oversize: what becomes of a larger one: ``"cut"`` leaves out what is too much, and says so
            where it was; ``"refuse"`` answers with an error that says how large it was. Structured
            content cannot be cut, and is refused.

    Raises:
        UsageError: there is no such choice.
    """

    controls: Literal["replace", "strip", "keep"] = "replace"
    most: int | None = 32 * 1024 * 1024
    oversize: Literal["cut", "refuse"] = "cut"

    def __post_init__(self) -> None:
        if self.controls not in ("replace", "strip", "keep"):
            raise UsageError(f'controls= is "replace", "strip" or "keep", not {self.controls!r}')
        if self.oversize not in ("cut", "refuse"):
            raise UsageError(f'oversize= is "cut" or "refuse", not {self.oversize!r}')
        if self.most is not None and self.most < 1:
            raise UsageError(f"most= is a size or None, not {self.most!r}")

    async def __call__(self, inbound: Inbound, call_next: CallNext) -> Any:
        """Serve as a middleware: sanitise the results of tools, and nothing else."""
        return self.result(await call_next(inbound))

    def result(self, result: R) -> R | CallToolResult:
        """The result of a tool made safe; of anything else, itself.

        Args:
            result: the result of a handler.
        """
        return self._call_result(result) if isinstance(result, CallToolResult) else result

    def text(self, text: str) -> str:
        """``text`` without control characters, as ``controls`` of these settings says.

        Args:
            text: the text of a tool's output.
        """
        if self.controls == "keep" or not has_controls(text):
            return text
        text = re.sub(TERMINAL_SEQUENCES, "", text)
        return re.sub(CONTROL_CHARS, "" if self.controls == "strip" else "\ufffd", text)

    def _call_result(self, result: CallToolResult) -> CallToolResult:
        content = [self._block(block) for block in result.content]
        if any(map(is_not, content, result.content)):
            result = structs.replace(result, content=content)
        return result if self.most is None else self._bound_size(result, self.most)

    def _block(self, block: ContentBlock) -> ContentBlock:
        if isinstance(block, TextContent):
            text = self.text(block.text)
            return block if text == block.text else structs.replace(block, text=text)
        if isinstance(block, EmbeddedResource) and isinstance(block.resource, TextResourceContents):
            text = self.text(block.resource.text)
            if text != block.resource.text:
                return structs.replace(block, resource=structs.replace(block.resource, text=text))
        return block

    def _bound_size(self, result: CallToolResult, most: int) -> CallToolResult:
        structured = _measure_structured(result)
        size = structured + sum(map(_measure_block, result.content))
        if size <= most:
            return result
        if self.oversize == "refuse" or structured > most:
            text = f"The result is too large: {size} characters, and at most {most} are sent"
            return CallToolResult(content=[TextContent(text=text)], is_error=True)
        return structs.replace(result, content=list(_cut_blocks(result.content, most - structured)))


def _measure_structured(result: CallToolResult) -> int:
    content = result.structured_content
    if content is UNSET:
        return 0
    return len(memoryview(content)) if isinstance(content, Raw) else len(encode(content))


def _measure_block(block: ContentBlock) -> int:
    if isinstance(block, TextContent):
        return len(block.text)
    if isinstance(block, ImageContent | AudioContent):
        return len(block.data)
    if isinstance(block, EmbeddedResource):
        resource = block.resource
        return len(resource.text or resource.blob or "")
    return 0


def _cut_blocks(content: list[ContentBlock], room: int) -> Iterator[ContentBlock]:
    """The blocks, and the beginning of a text, that there is room for; notes for the rest."""
    for block in content:
        size = _measure_block(block)
        if size <= room:
            room -= size
            yield block
        elif isinstance(block, TextContent):
            note = f"\n[cut: {room} of {size} characters are shown]"
            yield structs.replace(block, text=block.text[:room] + note)
            room = 0
        else:
            kind = getattr(block, "mime_type", UNSET) or "a resource"
            yield TextContent(text=f"[left out: {kind} of {size} characters, for its size]")
