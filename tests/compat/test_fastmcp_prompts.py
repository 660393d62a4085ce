"""Prompts of servers written for fastmcp: a missing argument."""

import pytest

from isthmus import Client
from isthmus.compat.fastmcp import FastMCP
from isthmus.errors import Refused


async def test_a_missing_argument_of_a_prompt_is_an_error_of_the_request():
    """As in fastmcp 4.2: the text alone, and the code of invalid params."""
    server = FastMCP("prompts")

    @server.prompt
    def ask(topic: str) -> str:
        return topic

    async with Client(server.server) as client:
        with pytest.raises(Refused) as caught:
            await client.get_prompt("ask", {})
    assert caught.value.code == -32602
    assert caught.value.message == "Missing required arguments: {'topic'}"
