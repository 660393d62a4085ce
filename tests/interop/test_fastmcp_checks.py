"""Checks of single components let the same callers see and use the same under fastmcp and under the façade."""

import sys
from itertools import product
from pathlib import Path

import msgspec
import pytest

from interop import connections
from isthmus.auth.client.grants.bearer_token import BearerToken
from isthmus.client import Client
from isthmus.errors import IsthmusError
from support.compat.facades import UNDER_FACADE, declare_installed

pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]

PROGRAM = Path(__file__).parent / "programs" / "fastmcp_checks.py"

TOOLS = ["free", "write", "team", "nobody", "raw", "renamed", "sub_deep", "missing"]
URIS = ["data://secret", "data://x", "data://sub/deep", "data://sub/x"]
REVISIONS = ["2025-11-25", "2026-07-28"]
CALLERS = ["reader", "writer", "admin"]


async def record(client):
    """What a caller sees, and what it is answered when it uses all there is."""
    said = {
        "tools": [one.name for one in await client.list_tools()],
        "resources": [one.uri for one in await client.list_resources()],
        "templates": [one.uri_template for one in await client.list_resource_templates()],
        "prompts": [one.name for one in await client.list_prompts()],
    }
    uses = [
        *(
            (client.call_tool, (name, {"text": "t"} if name in ("write", "raw", "renamed") else {}))
            for name in TOOLS
        ),
        *((client.read_resource, (uri,)) for uri in URIS),
        (client.get_prompt, ("ask", {"topic": "t"})),
    ]
    for use, given in uses:
        try:
            answer = await use(*given)
            members = ("content", "is_error", "contents", "messages")
            said[str(given)] = msgspec.to_builtins(
                [getattr(answer, name, None) for name in members]
            )
        except IsthmusError as error:
            said[str(given)] = [type(error).__name__, str(error)]
    return said


@pytest.mark.parametrize("kind", ["own", "layer"])
async def test_checks_admit_the_same_callers_as_under_fastmcp(python_of, tmp_path, kind):
    """Ours: lists and answers are the same for each token in each revision, to the letter."""
    python = str(python_of("fastmcp"))
    declared = declare_installed(tmp_path, python, "fastmcp")
    expected, found = [], []
    programs = (
        [python, str(PROGRAM)],
        [sys.executable, "-c", UNDER_FACADE, str(PROGRAM), declared],
    )

    for argv, said in zip(programs, (expected, found), strict=True):
        url = f"http://127.0.0.1:{connections.start_program(argv, kind)}/mcp"
        for caller, revision in product(CALLERS, REVISIONS):
            async with Client(url, auth=BearerToken(caller), revision=revision) as client:
                said.append(await record(client))

    assert expected == found
