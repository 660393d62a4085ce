"""A tool that takes a while: serve it in several processes (isthmus run --workers)."""

from isthmus import Context, Server

server = Server("counter", version="1.0")


@server.tool
async def count(up_to: int, ctx: Context) -> str:
    """Count, and say so at every step."""
    for number in range(up_to):
        await ctx.progress(number + 1, total=up_to)
    return f"counted to {up_to}"
