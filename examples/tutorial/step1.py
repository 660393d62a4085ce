"""Step 1, a first tool: how many copies of a book are on the shelf."""

from isthmus import Server

server = Server("library", version="1.0")

SHELF = {"Emma": 2, "Middlemarch": 1, "Dracula": 0}


@server.tool(read_only=True)
def count_copies(title: str) -> int:
    """Count the copies of a book that are on the shelf.

    Args:
        title: the title of the book.
    """
    return SHELF.get(title, 0)


if __name__ == "__main__":
    server.run()
