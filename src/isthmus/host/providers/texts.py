"""What a tool gave, as text: for models that read nothing else there."""

import msgspec

from isthmus.wire import (
    EmbeddedResource,
    ResourceLink,
    TextContent,
    TextResourceContents,
    ToolResultContent,
)

__all__ = ["told"]


def told(result: ToolResultContent) -> str:
    """The result of a tool in one text; what is no text is named."""
    texts: list[str] = []
    for part in result.content:
        if isinstance(part, TextContent):
            texts.append(part.text)
        elif isinstance(part, ResourceLink):
            texts.append(f"[{part.name}: {part.uri}]")
        elif isinstance(part, EmbeddedResource) and isinstance(part.resource, TextResourceContents):
            texts.append(part.resource.text)
        else:
            texts.append(f"[{getattr(part, 'mime_type', 'something')} left out]")
    if not texts and result.structured_content is not msgspec.UNSET:
        texts.append(msgspec.json.encode(result.structured_content).decode())
    text = "\n".join(texts)
    return f"The tool failed: {text}" if result.is_error else text
