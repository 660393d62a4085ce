"""Results of tools as markup: text, structured content, links, and media by their type and size."""

from collections.abc import Iterator

import msgspec

from isthmus.cards.markup import Markup, element
from isthmus.client.model.results import ToolResult
from isthmus.console.drawing.page_parts import (
    draw_badge,
    draw_block,
    draw_empty,
    draw_fold,
    draw_value,
    format_bytes,
)
from isthmus.console.drawing.plots import format_seconds
from isthmus.wire import (
    AudioContent,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
)


def draw_result(result: ToolResult, seconds: float) -> Markup:
    """The whole result of a call. Nothing in it is loaded, played or followed."""
    verdict = draw_badge("failed" if result.is_error else "ok")
    head = element(
        "p",
        {"class": "result-head"},
        verdict,
        f" after {format_seconds(seconds)}",
        " - the tool reported an error" if result.is_error else "",
    )
    parts = list(_draw_parts(result))
    body = parts or [draw_empty("The tool returned nothing.")]
    whole = draw_fold("Whole result", draw_value(msgspec.to_builtins(result.wire)))
    return element("div", {"class": "result"}, head, *body, whole)


def _draw_parts(result: ToolResult) -> Iterator[Markup]:
    for block in result.content:
        yield _draw_content(block)
    if result.structured is not None:
        yield element("h3", {}, "Structured content")
        yield draw_value(result.structured)


def _draw_content(block: ContentBlock) -> Markup:
    match block:
        case TextContent():
            return draw_block(block.text)
        case ImageContent() | AudioContent():
            kind = "image" if isinstance(block, ImageContent) else "audio"
            size = format_bytes(len(block.data) * 3 // 4)
            return element("p", {"class": "medium"}, f"{kind}: {block.mime_type}, {size}")
        case ResourceLink():
            name = block.title or block.name
            return element(
                "p", {"class": "medium"}, f"link: {name} ", element("code", {}, block.uri)
            )
        case EmbeddedResource():
            resource = block.resource
            head = element(
                "p", {"class": "medium"}, "resource: ", element("code", {}, resource.uri)
            )
            if isinstance(resource.text, str):
                return element("div", {}, head, draw_block(resource.text))
            size = format_bytes(len(resource.blob or "") * 3 // 4)
            return element("div", {}, head, element("p", {}, f"binary, {size}"))
        case _:
            return draw_value(block)
