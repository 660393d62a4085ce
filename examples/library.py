"""A library: a folder of documents, what stands in them, and who borrows how much.

``isthmus run examples/library.py`` serves it; ``isthmus read examples/library.py docs://README.md``
reads a page. What strangers may ask of it is limited, and nothing leads out of its folder.
"""

from pathlib import Path
from typing import Annotated

from isthmus import Context, Server, ToolError
from isthmus.server import Limits, Rate, Redact, Sanitise, mirrored

DOCUMENTS = Path(__file__).parents[1] / "docs"

server = Server(
    "library",
    version="1.0",
    page_size=50,
    list_ttl_ms={"resources/list": 60_000},
    limits=Limits(tool_calls=Rate(60, seconds=60), file_size=256 * 1024),
    sanitise=Sanitise(most=20_000),
    redact=Redact(names=["card number"]),
)
server.add_directory(DOCUMENTS, "docs://", pattern="**/*.md", title="Documentation")

SHELVES = ("guide", "concepts", "decisions")


@server.tool(read_only=True)
def search(
    words: str, ctx: Context, shelf: Annotated[str, mirrored("Shelf")] = "guide"
) -> list[str]:
    """Find the pages that hold some words.

    Args:
        words: what to look for.
        shelf: where: guide, concepts or decisions.
    """
    if shelf not in SHELVES:
        raise ToolError(f"there is no shelf {shelf!r}: take one of {', '.join(SHELVES)}")
    pages = sorted((DOCUMENTS / shelf).glob("*.md"))
    found = []
    for read, page in enumerate(pages, 1):
        if words.casefold() in page.read_text(encoding="utf-8").casefold():
            found.append(f"docs://{shelf}/{page.name}")
        ctx.wait(ctx.progress(read, len(pages), page.stem))
    ctx.log.info("searched", words=words, pages=len(found), card_number="0042")
    return found


@server.prompt(completes={"shelf": lambda: SHELVES})
def summarise(shelf: str) -> str:
    """Ask for a summary of a shelf."""
    return f"Read every page at docs://{shelf}/ and say in three sentences what they are about."


if __name__ == "__main__":
    server.run()
