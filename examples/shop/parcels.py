"""The parcel service: another company's server, which speaks 2025-11-25 only. The shop proxies it."""

from isthmus import Accepted, Context, Server, ToolError

server = Server("parcels", version="3.2", revisions=["2025-11-25"])


@server.tool
async def send(order: str, ctx: Context) -> str:
    """Send a parcel; the customer chooses when it comes."""
    ctx.log.info("a parcel is packed", order=order)
    await ctx.progress(1, 2, "packed")
    answer = await ctx.elicit("When shall it come: morning or evening?", str)
    if not isinstance(answer, Accepted):
        raise ToolError("no parcel was sent")
    await ctx.progress(2, 2, "sent")
    return f"{order} comes in the {answer.value}"


@server.prompt
def complain(order: str) -> str:
    """Complain about a parcel."""
    return f"Write a friendly complaint about the parcel of order {order}."


if __name__ == "__main__":
    server.run()
