"""Step 2, types and validation: a loan has a length in weeks, and errors tell the model what to do."""

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


LOANS: list[Loan] = []


@server.tool(read_only=True)
def count_copies(title: str) -> int:
    """Count the copies of a book that are on the shelf."""
    return SHELF.get(title, 0)


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
