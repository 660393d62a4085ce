"""Prompts of servers written for fastmcp: a missing argument."""

import pytest

from isthmus import Client
from isthmus.compat.fastmcp import FastMCP
from isthmus.compat.fastmcp.prompts import Prompt
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


def test_an_argument_whose_annotation_is_text_has_the_note_of_its_schema():
    """As in fastmcp: with ``from __future__ import annotations`` an annotation is no ``str`` but ``"str"``."""

    def ask(topic: "str", length: str) -> str:
        return topic

    later, now = Prompt.from_function(ask).arguments
    assert '{"type":"string"}' in later.description
    assert now.description is None
