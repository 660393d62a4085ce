"""A server made of servers: mounts, a transformed tool, tags, versions, and tools that open in a session.

isthmus run examples/composed.py            over stdio
isthmus run --http examples/composed.py     over HTTP
"""

from isthmus import Context, Server


def make_stock() -> Server:
    """The stock: a server that could be served by itself."""
    stock = Server("stock", version="1.0")

    @stock.tool
    async def count(item: str) -> int:
        """Count what there is of an item."""
        return {"tea": 12, "cups": 3}.get(item, 0)

    @stock.tool(tags={"staff"}, destructive=True)
    async def write_off(item: str) -> str:
        """Write off what is broken."""
        return f"{item} written off"

    @stock.tool(version="2.0")
    async def find_shelf(item: str, warehouse: str = "main") -> str:
        """Find the shelf of an item in a warehouse."""
        return f"{warehouse}/{item[:1]}"

    @stock.tool(name="find_shelf", version="1.0")
    async def find_old_shelf(item: str) -> str:
        """Find the shelf of an item; for clients that know one warehouse."""
        return item[:1]

    @stock.resource("stock://{item}")
    async def card(item: str) -> str:
        """The card of an item."""
        return f"{item}: {await count(item)}"

    return stock


async def search(q: str, tenant: str, limit: int = 5) -> str:
    """Search all catalogues."""
    return f"the first {limit} of {tenant} for {q}"


server = Server("shop", version="1.0")
server.mount(make_stock(), "stock")
server.include(
    search,
    name="find_products",
    hide={"tenant": "our-shop"},
    rename={"q": "query"},
    describe={"query": "What the customer is looking for."},
)
server.visibility(sessions=True)


@server.tool
async def serve_customers(ctx: Context) -> str:
    """Hide the tools of the staff, for this session."""
    await ctx.session.disable(tags={"staff"})
    return "Good morning!"


if __name__ == "__main__":
    server.run()
