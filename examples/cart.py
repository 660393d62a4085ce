"""A cart that each caller fills from call to call: session state, the same code in every revision.

isthmus run examples/cart.py            one cart for the host that launched it
isthmus run --http examples/cart.py     one for each session
"""

from isthmus import Accepted, Context, Server, ToolError

server = Server("cart", version="1.0")


@server.tool
async def add(item: str, ctx: Context, count: int = 1) -> dict[str, int]:
    """Put something into the cart."""
    cart = await ctx.session.get("cart", {}, type=dict[str, int])
    cart[item] = cart.get(item, 0) + count
    await ctx.session.set("cart", cart)
    return cart


@server.tool
async def order(ctx: Context) -> str:
    """Order what is in the cart, once the user agrees."""
    cart = await ctx.session.get("cart", {}, type=dict[str, int])
    if not cart:
        raise ToolError("The cart is empty: add something first.")
    # Nothing is changed before the question: the body runs again when it is answered.
    if await ctx.elicit(f"Order {sum(cart.values())} things?", bool) != Accepted(True):
        return "nothing was ordered"
    await ctx.session.delete("cart")
    return "ordered " + ", ".join(f"{count} {item}" for item, count in cart.items())


if __name__ == "__main__":
    server.run()
