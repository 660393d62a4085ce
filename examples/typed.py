"""Types of parameters and results, and faults in calls: ``python typed.py``."""

import asyncio
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, TypedDict

from msgspec import Meta, Struct

from isthmus import Server
from isthmus.testing import connect

server = Server("types", version="1.0")


class Size(Enum):
    SMALL = "S"
    LARGE = "L"


@dataclass
class Address:
    street: str
    city: str


class Gift(TypedDict):
    text: str


class Receipt(Struct):
    """What was bought.

    Attributes:
        total: in euro.
    """

    total: float
    city: str


@server.tool
def buy(
    count: Annotated[int, Meta(ge=1, le=9, description="How many.")],
    to: Address,
    size: Size = Size.SMALL,
    pay: Literal["card", "cash"] = "card",
    gift: Gift | None = None,
    tags: list[str] | None = None,
) -> Receipt:
    """Buy shirts."""
    return Receipt(total=12.5 * count, city=to.city)


@server.tool(input_schema={"type": "object", "properties": {"x": {"type": "number", "maximum": 9}}})
def free(arguments: dict[str, Any]) -> str:
    """Take what a hand-written schema allows."""
    return str(sorted(arguments))


HOME = {"street": "Elm Street 1", "city": "Ulm"}


async def show_schema() -> None:
    """Print what clients read of the parameters."""
    async with connect(server) as client:
        tool, _ = await client.list_tools()
        schema = tool.input_schema["properties"]
        print(schema["count"]["maximum"], schema["count"]["description"])  # 9 How many.
        print(schema["size"])  # {'type': 'string', 'enum': ['S', 'L'], 'default': 'S'}
        print(schema["tags"])  # {'type': 'array', 'items': {'type': 'string'}}
        print(tool.input_schema["required"])  # ['count', 'to']


async def parse_result() -> None:
    """Read a result into a type."""
    async with connect(server) as client:
        receipt = (await client.call_tool("buy", {"count": 2, "to": HOME})).parse(Receipt)
        print(receipt)  # Receipt(total=25.0, city='Ulm')


async def show_faults() -> None:
    """Print all faults of a call."""
    async with connect(server) as client:
        wrong = await client.call_tool("buy", {"count": 20, "size": "XL", "to": HOME, "tag": []})
        for fault in wrong.text.splitlines()[1:]:
            print(fault[:60])
            # - count: expected an integer from 1 to 9, got 20
            # - size: expected one of "S", "L", got "XL"; did you mean "L
            # - tag: unknown; did you mean "tags"?; known are: count, to,


async def mend_call() -> None:
    """Send lists and numbers as text."""
    async with connect(server) as client:
        mended = await client.call_tool("buy", {"count": "3", "to": HOME, "tags": '["new"]'})
        print(mended.parse(Receipt).total)  # 37.5


async def call_by_hand() -> None:
    """Call the tool with a schema of its own."""
    async with connect(server) as client:
        print((await client.call_tool("free", {"x": 1, "y": 2})).text)  # ['x', 'y']
        print((await client.call_tool("free", {"x": 10})).is_error)  # True


async def main() -> None:
    """Run all parts."""
    for part in (show_schema, parse_result, show_faults, mend_call, call_by_hand):
        await part()


if __name__ == "__main__":
    asyncio.run(main())
