"""A server with a login refuses and admits the same requests under fastmcp itself and under the façade."""

import json
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from interop import connections
from isthmus.auth.client.grants.bearer_token import BearerToken
from isthmus.auth.net.challenge import parse_challenges
from isthmus.client import Client
from support.compat.facades import UNDER_FACADE, declare_installed
from support.http.messages import INITIALIZE, legacy_head

pytestmark = pytest.mark.interop

PROGRAM = Path(__file__).parent / "programs" / "fastmcp_logins.py"
TOKENS = [None, "unknown", "late", "weak", "some", "good"]
COMPARED = ("error", "resource_metadata")


def ask(port, token):
    """The status of a handshake with a token, and what the challenge says, without the port."""
    head = {**legacy_head(), "host": f"127.0.0.1:{port}"}
    if token is not None:
        head["authorization"] = f"Bearer {token}"
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/mcp", json.dumps(INITIALIZE).encode(), head
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - of our own making
            return answer.status, {}
    except urllib.error.HTTPError as refusal:
        told = parse_challenges(refusal.headers.get_all("www-authenticate"))[0].params
        return refusal.code, {
            name: told[name].replace(str(port), "PORT") for name in COMPARED if name in told
        }


def read_metadata(port):
    """The page of metadata, without the port; its status where there is none."""
    url = f"http://127.0.0.1:{port}/.well-known/oauth-protected-resource/mcp"
    try:
        with urllib.request.urlopen(url, timeout=30) as page:
            return json.loads(page.read().replace(str(port).encode(), b"PORT"))
    except urllib.error.HTTPError as refusal:
        return refusal.code


async def ask_who(port):
    """What the tool says of the caller."""
    url = f"http://127.0.0.1:{port}/mcp"
    async with Client(url, auth=BearerToken("good"), revision="2025-11-25") as client:
        return json.loads((await client.call_tool("who")).text)


@pytest.mark.parametrize("kind", ["static", "remote"])
async def test_a_login_refuses_and_admits_as_under_fastmcp(python_of, tmp_path, kind):
    """Ours: statuses, errors, metadata, and who calls are the same."""
    python = str(python_of("fastmcp"))
    declared = declare_installed(tmp_path, python, "fastmcp")
    theirs = connections.start_program([python, str(PROGRAM)], kind)
    ours = connections.start_program(
        [sys.executable, "-c", UNDER_FACADE, str(PROGRAM), declared], kind
    )

    assert [ask(theirs, token) for token in TOKENS] == [ask(ours, token) for token in TOKENS]
    assert read_metadata(theirs) == read_metadata(ours)
    assert await ask_who(theirs) == await ask_who(ours)
