"""Step 3, resources: the catalogue and each book have a URI that clients can read."""

from typing import Annotated

from msgspec import Meta, Struct

from isthmus import Server, ToolError

server = Server("library", version="1.0")

SHELF = {"Emma": 2, "Middlemarch": 1, "Dracula": 0}


class Loan(Struct):
    """A book that somebody has borrowed."""

    number: int
    title: str
    weeks: int


class Book(Struct):
    """A title, and what there is of it."""

    title: str
    copies: int
    loans: list[Loan]


LOANS: list[Loan] = []


@server.resource("library://books", mime_type="application/json")
def catalogue() -> dict[str, int]:
    """All titles, with the number of copies on the shelf."""
    return SHELF


@server.resource("library://books/{title}", mime_type="application/json")
def book(title: str) -> Book | None:
    """One book, and who has borrowed it."""
    if title not in SHELF:
        return None  # the client reads that there is no such resource
    return Book(title, SHELF[title], [loan for loan in LOANS if loan.title == title])


@server.tool
def borrow(
    title: str, weeks: Annotated[int, Meta(ge=1, le=8, description="Length of the loan.")] = 4
) -> Loan:
    """Borrow a book."""
    if title not in SHELF:
        raise ToolError(f"We do not have {title!r}. Titles: {', '.join(SHELF)}.")
    if SHELF[title] == 0:
        raise ToolError(f"All copies of {title!r} are lent.")
    SHELF[title] -= 1
    LOANS.append(Loan(len(LOANS) + 1, title, weeks))
    return LOANS[-1]


if __name__ == "__main__":
    server.run()
