"""Step 7, HTTP with a token: only known readers call, and a loan belongs to who made it."""

import asyncio
import itertools
import os
from typing import Annotated, Literal

from msgspec import Meta, Struct

from isthmus import Accepted, Context, Server, ToolError
from isthmus.auth import Principal, ResourceAuth, StaticTokens

READERS = ("ada", "bob")  # the token of each is in a variable: ADA_TOKEN, BOB_TOKEN
TOKENS = {
    token: Principal(issuer="library", subject=name, scopes=frozenset({"loans"}))
    for name in READERS
    if (token := os.environ.get(f"{name.upper()}_TOKEN"))
}

server = Server(
    "library",
    version="1.0",
    auth=ResourceAuth(
        "http://127.0.0.1:8000/mcp",
        authorization_servers=["http://127.0.0.1:8000"],
        verifier=StaticTokens(TOKENS),
        scopes={"loans"},
    ),
)

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

    weeks: Annotated[int, Meta(ge=1, le=8, description="Length of the loan.")] = 4


LOANS: dict[int, Loan] = {}
NUMBERS = itertools.count(1)


@server.resource("library://books", mime_type="application/json")
def catalogue() -> dict[str, int]:
    """All titles, with the number of copies on the shelf."""
    return SHELF


@server.resource("library://books/{title}", mime_type="application/json")
def book(title: str, who: Principal) -> Book | None:
    """One book, and the caller's own loans of it."""
    if title not in SHELF:
        return None  # the client reads that there is no such resource
    mine = [loan for loan in LOANS.values() if (loan.title, loan.reader) == (title, who.subject)]
    return Book(title, SHELF[title], mine)


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


def lend(title: str, weeks: int, reader: str) -> Loan:
    """Record a loan, and tell clients what has changed."""
    loan = Loan(next(NUMBERS), title, weeks, reader)
    LOANS[loan.number] = loan
    SHELF[title] -= 1
    server.notify_resource_updated(f"library://books/{title}")
    if len(LOANS) == 1:
        server.add_tool(give_back)
    return loan


def give_back(number: int, who: Principal) -> str:
    """Give a book back, by the number of its loan."""
    loan = LOANS.get(number)
    if loan is None or loan.reader != who.subject:
        raise ToolError(f"You have no loan {number}.")
    del LOANS[number]
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
async def borrow(title: str, ctx: Context, who: Principal) -> Loan:
    """Borrow a book. The user is asked for how long."""
    check(title)
    match await ctx.elicit(f"How long do you want to keep {title}?", Wishes):
        case Accepted(wishes):
            check(title)  # somebody may have been faster
            return lend(title, wishes.weeks, who.subject)
        case _:
            raise ToolError("Nothing is lent: the user does not want to.")


if __name__ == "__main__":
    server.run("http", host="127.0.0.1", port=8000)
