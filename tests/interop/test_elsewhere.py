"""The five servers of ``examples/elsewhere``: with this library and with fastmcp, a client sees the same."""

import sys

import pytest

from isthmus import Client, Command
from support.docs.blocks import EXAMPLES

pytestmark = [pytest.mark.interop, pytest.mark.timeout(180)]

FOLDER = EXAMPLES / "elsewhere"
SERVERS = ("booking", "cart", "notes", "office", "pets")


def list_surface(tools, resources, prompts):
    """What a client sees: each tool with its arguments, resources, prompts."""
    shown = {
        tool.name: (
            sorted(tool.input_schema.get("properties", {})),
            sorted(tool.input_schema.get("required", [])),
        )
        for tool in tools
    }
    return shown, sorted(one.uri for one in resources), sorted(one.name for one in prompts)


async def read_surface(target):
    """What a server offers over stdio."""
    async with Client(target, timeout=60) as client:
        has = client.capabilities
        return list_surface(
            await client.list_tools(),
            await client.list_resources() if has.resources else [],
            await client.list_prompts() if has.prompts else [],
        )


@pytest.mark.parametrize("name", SERVERS)
async def test_both_libraries_offer_the_same(name, python_of):
    """Ours: a client cannot tell which of the two it talks to."""
    here = await read_surface(Command(sys.executable, str(FOLDER / f"{name}_isthmus.py")))
    there = await read_surface(
        Command(str(python_of("fastmcp")), str(FOLDER / f"{name}_fastmcp.py"))
    )

    assert here == there
