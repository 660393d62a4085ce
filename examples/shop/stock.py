"""The stock of the shop: a server of its own, which the shop mounts."""

from msgspec import Struct

from isthmus import Server, ToolError

server = Server("stock", version="1.0")


class Item(Struct):
    """Something that is sold.

    Attributes:
        name: what it is called.
        price: in cents.
        left: how many there are.
    """

    name: str
    price: int
    left: int


ITEMS = {
    item.name: item for item in (Item("tea", 450, 12), Item("honey", 720, 3), Item("mug", 1150, 0))
}


def find_item(name: str) -> Item:
    """Find an item by its name."""
    if name not in ITEMS:
        raise ToolError(f"there is no {name!r}; there are: {', '.join(ITEMS)}")
    return ITEMS[name]


@server.tool(read_only=True, tags={"public"})
def search(words: str = "", limit: int = 10) -> list[Item]:
    """Find items by words in their name."""
    return [item for item in ITEMS.values() if words.lower() in item.name][:limit]


@server.tool(tags={"staff"})
def refill(name: str, count: int) -> int:
    """Add to what there is of an item."""
    item = find_item(name)
    item.left += count
    server.notify_resource_updated(f"stock://{name}")
    return item.left


@server.resource("stock://{name}")
def item(name: str) -> Item | None:
    """One item."""
    return ITEMS.get(name)
