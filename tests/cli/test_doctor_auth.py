"""``isthmus auth doctor``: what is printed, and what the exit code says."""

import json

import pytest

from support.auth.oauth_town import open_town
from support.cli.user_shell import UserShell

pytestmark = pytest.mark.usefixtures("secret_watch")


@pytest.fixture
def shell(tmp_path):
    """The shell of a user who has not logged in anywhere."""
    return UserShell(tmp_path)


async def test_every_hop_is_printed(shell):
    """Ours: each hop with its verdict and what was found; nobody registers or logs in."""
    async with open_town() as place:
        code, out, err = await shell("auth", "doctor", place.url)

    assert (0, "") == (code, err)
    for verdict, hop in (
        ("ok", "server"), ("ok", "challenge"), ("ok", "resource metadata"), ("ok", "registration"),
        ("ok", "issuer metadata"), ("skipped", "token"), ("skipped", "call"),
    ):  # fmt: skip
        assert f"{verdict:8} {hop}" in out
    assert "nothing stops a client" in out
    assert ([], [], []) == (
        place.authority.registered, place.authority.asked, place.authority.forms,
    )  # fmt: skip


async def test_the_failing_hop_and_its_clause_are_the_last_line(shell):
    """Ours: what to mend is said with the clause, and the exit code is 1."""
    async with open_town() as place:
        del place.authority.metadata["code_challenge_methods_supported"]
        code, out, _ = await shell("auth", "doctor", place.url)

    assert 1 == code
    last = out.splitlines()[-1]
    assert last.startswith("a client stops at: issuer metadata (")
    assert "authorization-code-protection" in last
    assert "add code_challenge_methods_supported with S256" in out


async def test_a_program_gets_it_as_json(shell):
    """Ours: the failing hop has a member of its own, and every fault its clause."""
    async with open_town() as place:
        place.resource["resource"] = "https://other.example/mcp"
        code, out, _ = await shell("auth", "doctor", place.url, "--json")
    report = json.loads(out)
    hops = {hop["name"]: hop for hop in report["hops"]}

    assert (1, place.url, "resource metadata") == (code, report["url"], report["failing"])
    assert "RFC 9728 3.3" == hops["resource metadata"]["faults"][0]["clause"]


async def test_with_login_the_way_is_walked_to_its_end(shell):
    """Ours: --login logs in and makes a call; no token is printed."""
    async with open_town() as place:
        code, out, _ = await shell("auth", "doctor", place.url, "--login")
        secrets = {*place.authority.tokens, *place.authority.refreshes}

    assert 0 == code
    assert "ok       token" in out
    assert "with the token it answers 200" in out
    assert [] == [secret for secret in secrets if secret in out]


async def test_a_token_of_a_variable_is_tried(shell):
    """Ours: a token that the server does not take fails at the call."""
    async with open_town() as place:
        words = ("auth", "doctor", place.url, "--token-env", "TOKEN")
        code, out, _ = await shell(*words, TOKEN="token-that-is-over")
        missing, _, err = await shell(*words)

    assert 1 == code
    assert "a client stops at: call" in out
    assert "token-that-is-over" not in out
    assert 2 == missing
    assert "no such variable" in err
