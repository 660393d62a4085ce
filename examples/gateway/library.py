"""A server of up to 2025-11-25: it lends a book, and asks for how long. The gateway's example launches it."""

from isthmus import Accepted, Context, Server

server = Server("library", revisions=["2025-06-18", "2025-11-25"])


@server.tool
async def lend(title: str, ctx: Context) -> str:
    """Lend a book."""
    match await ctx.elicit(f"For how many days do you want {title!r}?", int):
        case Accepted(days):
            return f"{title!r} for {days} days"
    return "nothing is lent"


@server.prompt
async def recommend(taste: str) -> str:
    """Ask for a recommendation."""
    return f"Recommend a book to somebody who likes {taste}."


if __name__ == "__main__":
    server.run()
