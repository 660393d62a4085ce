"""``isthmus login`` and ``logout``, as processes, and what the other commands do with the tokens."""

import importlib.util
import json
from pathlib import Path

import aiohttp
import pytest

from isthmus.auth import StoreBroken
from isthmus.cli.commands.login import LoginOptions, make_oauth
from isthmus.cli.targets import CliTarget
from isthmus.cli.terminal_client import make_authorization
from isthmus.errors import UsageError
from isthmus.transports.command import Command
from support.auth.oauth_town import open_town
from support.cli.user_shell import UserShell
from support.http.loopback_pages import json_page, serve_pages

pytestmark = pytest.mark.usefixtures("secret_watch")


@pytest.fixture
def shell(tmp_path):
    """The shell of a user who has not logged in anywhere."""
    return UserShell(tmp_path)


async def test_after_a_login_every_command_has_the_tokens(shell):
    """Ours: login says who, what and until when; then nobody is asked again, until logout."""
    async with open_town() as place:
        entered = await shell("login", place.url)
        secrets = {*place.authority.tokens, *place.authority.refreshes}
        called = await shell("call", place.url, "hello")
        checked = await shell("list", place.url, "--json")
        left = await shell("logout", place.url)
        refused = await shell("call", place.url, "hello")
        asked = len(place.authority.asked)

    assert (0, "") == (entered[0], entered[2])
    lines = entered[1].splitlines()
    assert f"logged in to {place.url}" == lines[0]
    said = dict(line.split(maxsplit=1) for line in lines[1:])
    assert (place.authority.issuer, "client-1", "read") == (
        said["issuer"], said["client"], said["scopes"],
    )  # fmt: skip
    assert "by itself" == said["renewed"]
    assert (0, "hello\n", "") == called
    assert 0 == checked[0]
    assert (0, "", "forgot 1 record(s)\n") == left
    assert (4, f"isthmus: {place.url} wants a login: isthmus login {place.url}\n") == (
        refused[0], refused[2],
    )  # fmt: skip
    assert 1 == asked
    assert [] == [s for s in secrets if s in entered[1] + called[1] + left[2] + refused[2]]


async def test_tokens_that_are_over_are_renewed_by_any_command(shell):
    """Ours: a command that runs a day later needs no login."""
    async with open_town() as place:
        place.authority.life = 1e-6  # over before it is used, however fast the machine is
        await shell("login", place.url)
        place.authority.life = 3600
        called = await shell("call", place.url, "hello")

    assert (0, "hello\n", "") == called
    assert 1 == len(place.authority.asked)
    assert 1 <= place.authority.counts["refresh_token"]


@pytest.mark.covers("auth.client.parent-by-setting")
async def test_a_resource_above_the_server_is_named_at_the_login_and_counts_for_that_server(shell):
    """Ours: the other commands renew such a token without being told again, and show it nowhere else."""
    async with open_town() as place:
        place.resource["resource"] = place.origin
        refused = await shell("login", place.url)
        entered = await shell("login", place.url, "--resource", place.origin)
        called = await shell("call", place.url, "hello")
        place.revoked |= set(place.authority.tokens)
        renewed = await shell("call", place.url, "hello")
        below = await shell("call", f"{place.url}/mallory", "hello")
        left = await shell("logout", place.url)
        shown = [path for _, path, headers in place.seen if "authorization" in headers]

    assert 4 == refused[0]
    assert f"isthmus login --resource {place.origin}" in refused[2]
    assert f"logged in to {place.origin}\n" in entered[1]
    assert [(0, "hello\n", "")] * 2 == [called, renewed]
    assert 1 == place.authority.counts["refresh_token"]
    assert 0 != below[0]
    assert {"/mcp"} == set(shown)
    assert (0, "", "forgot 1 record(s)\n") == left


async def test_scopes_and_json_are_as_they_were_asked_for(shell):
    """Ours: --scope asks for more than the server does, and --json is for programs."""
    async with open_town() as place:
        code, out, _ = await shell("login", place.url, "--scope", "write", "--json")

    assert 0 == code
    assert ["read", "write"] == json.loads(out)["scopes"]
    assert place.url == json.loads(out)["resource"]


async def test_more_scopes_are_named_by_the_error(shell):
    """Ours: where they are not enough the error is the command that helps, and loses none of them."""
    async with open_town() as place:
        place.needs = {"write": {"write"}}
        await shell("login", place.url)
        code, _, err = await shell("call", place.url, "write")
        again, out, _ = await shell("login", place.url, "--scope", "write")
        called = await shell("call", place.url, "write")

    assert 4 == code
    assert f"isthmus login {place.url} --scope read --scope write" in err
    assert 0 == again
    assert (0, "written\n", "") == called
    assert "read, write" in out


async def test_the_address_may_be_pasted_instead(shell):
    """Ours: on a machine without a browser the address is shown, and the one it ends at pasted."""
    async with open_town() as place:
        process = await shell.begun("login", place.url, "--no-browser", BROWSER="false")
        shown = b""
        while not shown.startswith(b"http"):
            shown = await process.stderr.readline()
        async with aiohttp.ClientSession() as session:
            url = shown.decode().strip()
            async with session.get(url, allow_redirects=False) as page:
                pasted = page.headers["Location"]
        out, _ = await process.communicate(f"{pasted}\n".encode())
        called = await shell("call", place.url, "hello")

    assert 0 == process.returncode
    assert b"logged in" in out
    assert (0, "hello\n", "") == called


async def test_a_way_that_ends_before_the_login_points_to_the_doctor(shell):
    """Ours: where a server's documents are wrong the error says so, and what says more."""
    async with open_town() as place:
        place.resource["resource"] = "https://other.example/mcp"
        code, _, err = await shell("login", place.url)

    assert 4 == code
    assert "does not cover" in err
    assert f"isthmus auth doctor {place.url}" in err


async def test_nothing_pasted_is_nobody_logged_in(shell):
    """Ours: the end of the input ends the login."""
    async with open_town() as place:
        code, _, err = await shell("login", place.url, "--no-browser")

    assert 4 == code
    assert "no address was pasted" in err


async def test_a_registered_client_is_remembered(shell):
    """Ours: --client-id is said once; no registration is made, and renewing works later."""
    async with open_town() as place:
        place.authority.life = 1e-6  # over before it is used, however fast the machine is
        entered = await shell("login", place.url, "--client-id", "by-hand")
        called = await shell("call", place.url, "hello")

    assert 0 == entered[0]
    assert (0, "hello\n", "") == called
    assert [] == place.authority.registered
    assert {"by-hand"} == {form["client_id"] for form in place.authority.forms}


async def test_a_clients_secret_is_for_one_issuer(shell):
    """C24: a secret is not shown to whomever a server names."""
    async with open_town() as place:
        words = ("login", place.url, "--client-id", "by-hand", "--client-secret-env", "SECRET")
        refused = await shell(*words, SECRET="secret-of-by-hand")
        issuer = ("--issuer", place.authority.issuer)
        entered = await shell(*words, *issuer, SECRET="secret-of-by-hand")
        missing = await shell(*words, *issuer)

    assert (2, 0, 2) == (refused[0], entered[0], missing[0])
    assert "name it by --issuer" in refused[2]
    assert "secret-of-by-hand" not in "".join(entered[1:])
    assert place.authority.forms[0]["Authorization"].startswith("Basic ")


async def test_without_a_place_for_tokens_nobody_logs_in(shell):
    """X5: tokens are never written in clear; the error says how to have a place for them."""
    del shell.environ["ISTHMUS_STORE_KEY"]
    shell.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"
    async with open_town() as place:
        code, _, err = await shell("login", place.url)

    assert 2 == code
    assert "set ISTHMUS_STORE_KEY" in err
    assert [] == place.authority.asked
    assert [] == [each for each in shell.path.parent.rglob("*.json") if each.is_file()]


async def test_logging_out_revokes_where_that_can_be_done(shell):
    """RFC 7009: the refresh token is told to the authorization server, which ends it."""
    async with open_town() as place, serve_pages() as more:
        more.pages["/revoke"] = lambda _: json_page({})
        place.authority.metadata["revocation_endpoint"] = f"{more.url}/revoke"
        await shell("login", place.url)
        left = await shell("logout", place.url, "--registration")
        again = await shell("logout", place.url)

    assert [*place.authority.refreshes] == [asked.form["token"] for asked in more.asked]
    assert "forgot 2 record(s)" in left[2]
    assert (0, "", f"nothing is kept for {place.url}\n") == again


async def test_logging_out_takes_away_what_was_changed(shell):
    """T37: a record that does not open stands in nobody's way once it is logged out of."""
    async with open_town() as place:
        await shell("login", place.url)
        sheet = json.loads(shell.path.read_bytes())
        [text] = [each for each in sheet["records"] if place.url in each]
        sealed = sheet["records"][text]
        sheet["records"][text] = sealed[:-8] + ("A" * 8)
        shell.path.write_text(json.dumps(sheet))
        with pytest.raises(StoreBroken):
            await shell.records()
        refused = await shell("call", place.url, "hello")
        left = await shell("logout", place.url)
        entered = await shell("login", place.url)

    assert 4 == refused[0]
    assert "isthmus logout" in refused[2]
    assert (0, 0) == (left[0], entered[0])


async def test_a_server_that_wants_no_login_gets_none(shell):
    """Ours: login says so, and no command looks for a keyring or makes a file."""
    async with open_town() as place:
        place.authority.tokens[""] = frozenset()  # whoever has no token
        entered = await shell("login", place.url)
        called = await shell("call", place.url, "hello")

    assert (0, "") == entered[:2]
    assert "nothing to log in to" in entered[2]
    assert (0, "hello\n", "") == called
    assert not shell.path.exists()


async def test_a_websocket_has_the_same_tokens(shell):
    """Ours: one login does for both ways to a server, whichever was typed."""
    async with open_town() as place:
        socket = place.url.replace("http:", "ws:")
        entered = await shell("login", socket)
        called = [await shell("call", url, "hello") for url in (socket, place.url)]
        left = await shell("logout", socket)

    assert 0 == entered[0]
    assert [(0, "hello\n", "")] * 2 == called
    assert (0, "", "forgot 1 record(s)\n") == left
    assert 1 == len(place.authority.asked)


async def test_a_token_may_be_in_a_variable(shell):
    """Ours: a fixed token is named by its variable and never stands on the command line."""
    async with open_town() as place:
        place.authority.tokens["token-of-a-variable"] = frozenset({"read"})
        words = ("call", place.url, "hello", "--token-env", "TOKEN")
        called = await shell(*words, TOKEN="token-of-a-variable")
        refused = await shell(*words, TOKEN="token-that-is-over")
        missing = await shell(*words)

    assert (0, "hello\n", "") == called
    assert 4 == refused[0]
    assert "does not take the token" in refused[2]
    assert "token-that-is-over" not in refused[2]
    assert 2 == missing[0]
    assert "no such variable" in missing[2]


def test_a_header_of_ones_own_is_left_alone():
    """Ours: what an mcp.json says about Authorization is what is sent."""
    own = CliTarget("x", "https://mcp.example/mcp", {"authorization": "Bearer of my own"})
    launched = CliTarget("x", Command("server"))

    assert make_authorization(own, None, {}) is None
    assert make_authorization(launched, None, {}) is None
    with pytest.raises(UsageError, match="from its environment"):
        make_authorization(launched, "TOKEN", {"TOKEN": "t"})


async def test_a_launched_server_has_no_login(shell):
    """X2: a server on stdio takes its credentials from its environment."""
    shop = str(Path(__file__).parents[1] / "support" / "cli" / "shop.py")
    codes = [(await shell(word, shop))[0] for word in ("login", "logout")]

    assert [2, 2] == codes


async def test_without_the_extra_it_is_what_is_told_first(monkeypatch):
    """Ours: no key for a file of tokens would help, and nobody is sent to make one."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    with pytest.raises(UsageError, match=r"takes filelock: pip install 'isthmus\[auth\]'"):
        await make_oauth(CliTarget("s", "https://mcp.example.com/mcp"), LoginOptions())
