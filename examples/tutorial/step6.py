"""Step 6, progress and changes: an inventory reports progress, and `give_back` exists while books are out."""

import asyncio
import itertools
from typing import Annotated, Literal

from msgspec import Meta, Struct

from isthmus import Accepted, Context, Server, ToolError

server = Server("library", version="1.0")

SHELF = {"Emma": 2, "Middlemarch": 1, "Dracula": 0}


class Loan(Struct):
    """A book that somebody has borrowed."""

    number: int
    title: str
    weeks: int
    reader: str


class Book(Struct):
    """A title, and what there is of it."""

    title: str
    copies: int
    loans: list[Loan]


class Wishes(Struct):
    """The form that the user fills in."""

    reader: Annotated[str, Meta(min_length=1, description="Name on the library card.")]
    weeks: Annotated[int, Meta(ge=1, le=8, description="Length of the loan.")] = 4


LOANS: dict[int, Loan] = {}
NUMBERS = itertools.count(1)


@server.resource("library://books", mime_type="application/json")
def catalogue() -> dict[str, int]:
    """All titles, with the number of copies on the shelf."""
    return SHELF


@server.resource("library://books/{title}", mime_type="application/json")
def book(title: str) -> Book | None:
    """One book, and who has borrowed it."""
    if title not in SHELF:
        return None  # the client reads that there is no such resource
    return Book(title, SHELF[title], [loan for loan in LOANS.values() if loan.title == title])


@server.prompt
def recommend(title: str, length: Literal["short", "long"] = "short") -> str:
    """Ask for books like one that the reader knows."""
    return (
        f"Read library://books. The reader liked {title!r}. Recommend two other titles, "
        f"with a {length} reason for each, and say which of them are on the shelf."
    )


@recommend.completes("title")
@book.completes("title")
def titles() -> list[str]:
    """Titles for a client that completes what its user types."""
    return sorted(SHELF)


def check(title: str) -> None:
    """Refuse a title that cannot be borrowed now."""
    if title not in SHELF:
        raise ToolError(f"We do not have {title!r}. Titles: {', '.join(SHELF)}.")
    if SHELF[title] == 0:
        raise ToolError(f"All copies of {title!r} are lent.")


def lend(title: str, wishes: Wishes) -> Loan:
    """Record a loan, and tell clients what has changed."""
    loan = Loan(next(NUMBERS), title, wishes.weeks, wishes.reader)
    LOANS[loan.number] = loan
    SHELF[title] -= 1
    server.notify_resource_updated(f"library://books/{title}")
    if len(LOANS) == 1:
        server.add_tool(give_back)
    return loan


def give_back(number: int) -> str:
    """Give a book back, by the number of its loan."""
    if number not in LOANS:
        raise ToolError(f"There is no loan {number}. Open: {', '.join(map(str, LOANS))}.")
    loan = LOANS.pop(number)
    SHELF[loan.title] += 1
    server.notify_resource_updated(f"library://books/{loan.title}")
    if not LOANS:
        server.remove_tool("give_back")
    return f"Thank you for {loan.title}."


@server.tool(read_only=True)
async def take_inventory(ctx: Context) -> dict[str, int]:
    """Count all books, one title after the other."""
    counted = {}
    for done, title in enumerate(SHELF, 1):
        await asyncio.sleep(0.2)  # stands for walking along the shelves
        counted[title] = SHELF[title] + sum(loan.title == title for loan in LOANS.values())
        await ctx.progress(done, len(SHELF), title)
    return counted


@server.tool
async def borrow(title: str, ctx: Context) -> Loan:
    """Borrow a book. The user is asked who borrows it, and for how long."""
    check(title)
    match await ctx.elicit(f"Who borrows {title}?", Wishes):
        case Accepted(wishes):
            check(title)  # somebody may have been faster
            return lend(title, wishes)
        case _:
            raise ToolError("Nothing is lent: the user does not want to.")


if __name__ == "__main__":
    server.run()
