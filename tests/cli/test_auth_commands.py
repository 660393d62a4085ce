"""``isthmus auth``: users, clients, grants and keys from the command line."""

import asyncio
import importlib.util
import io
import json
import os
import pty
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

from isthmus import Client, Server
from isthmus.auth import JWTVerifier, MemoryTokenStore, OAuth, Principal, ResourceAuth
from isthmus.auth.authorization_server.core.tokens import Keyring
from isthmus.auth.authorization_server.storage.clients import RegisteredClient
from isthmus.auth.authorization_server.storage.records import ClientGrant
from isthmus.auth.authorization_server.storage.store import SQLiteAuthStore
from isthmus.auth.authorization_server.users.passwords import PasswordUsers
from isthmus.cli.commands.auth.config import load_auth_config
from isthmus.cli.main import main
from isthmus.testing.connections import run_until_left
from isthmus.testing.person import Person
from isthmus.transports.http.serve import serve as http_serve
from support.auth.authority import request_url

pytestmark = pytest.mark.usefixtures("secret_watch")

KEY = "k" * 43
PASSWORD = "correct horse battery"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to work in, with a key in the environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ISTHMUS_AUTH_KEY", KEY)
    return tmp_path


@pytest.fixture
def run(folder, capsys, monkeypatch):
    """Runs ``isthmus auth`` in this process: its exit code, stdout and stderr."""

    def command(*words, typed=""):
        monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
        with pytest.raises(SystemExit) as ended:
            main(("auth", *words))
        out, err = capsys.readouterr()
        return ended.value.code or 0, out, err

    return command


def stored(folder, work):
    async def done():
        store = SQLiteAuthStore(folder / "auth.db")
        try:
            return await store.write(work)
        finally:
            await store.close()

    return asyncio.run(done())


def granted(grant_id, client="app", user="alice"):
    return ClientGrant(
        id=grant_id, client_id=client, user_id=user, scope="files:read", gen=0,
        resource="https://mcp.example/mcp", created_at=1e9, rotated_at=None, expires_at=1e10, ends_at=1e10,
        revoked_at=None, jkt=None, upstream_id=None,
    )  # fmt: skip


def test_a_user_is_added_with_a_password_from_standard_input(run, folder):
    """We demand that a password is never an argument, which every process could read."""
    code, out, err = run("add-user", "Alice", "--name", "Alice A.", typed=PASSWORD + "\n")
    assert (0, "") == (code, out)
    assert "alice can sign in" in err
    assert PASSWORD not in err
    users = PasswordUsers(folder / "users.db")
    assert ["alice"] == [user.id for user in users.all()]


def test_a_password_that_is_typed_is_typed_twice_and_not_shown(folder):
    """We demand that who looks over a shoulder sees nothing."""
    leader, terminal = pty.openpty()
    command = [sys.executable, "-m", "isthmus", "auth", "add-user", "alice"]
    with subprocess.Popen(
        command, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True
    ) as process:
        os.close(terminal)
        seen = b""
        for asked in (b"Password: ", b"Once more: "):
            while not seen.endswith(asked):
                seen += os.read(leader, 1024)
            os.write(leader, PASSWORD.encode() + b"\n")
        while b"can sign in" not in seen:
            seen += os.read(leader, 1024)
        assert 0 == process.wait()
    os.close(leader)
    assert PASSWORD.encode() not in seen


@pytest.mark.parametrize(
    ("words", "typed", "said"),
    [
        (("add-user", "alice"), "short\n", "12 to 1024"),
        (("add-user", "alice"), "", "no password came"),
        (("add-user", "a b"), PASSWORD, "account name"),
    ],
)
def test_a_user_that_cannot_be_is_refused_with_the_reason(run, folder, words, typed, said):
    """We demand that errors of usage end with 2 and say what to do."""
    code, _, err = run(*words, typed=typed)
    assert 2 == code
    assert said in err


def test_an_existing_user_gets_another_password_on_demand_only(run):
    """We demand that adding never changes somebody by accident."""
    run("add-user", "alice", typed=PASSWORD)
    code, _, err = run("add-user", "alice", typed=PASSWORD)
    assert 2 == code
    assert "--replace" in err
    code, _, err = run("add-user", "alice", "--replace", typed="another password")
    assert 0 == code
    assert "isthmus auth revoke user alice" in err


def test_a_clients_secret_is_printed_once_and_kept_nowhere(run, folder):
    """We demand that `secret=$(isthmus auth add-client …)` works, and that nothing else tells it."""
    code, secret, err = run("add-client", "nightly", "--grant", "client_credentials")
    assert 0 == code
    assert len(secret.strip()) >= 43
    assert secret.strip() not in err
    files = b"".join(path.read_bytes() for path in folder.glob("auth.db*"))
    assert secret.strip().encode() not in files
    assert secret.strip() not in run("list", "--json")[1]


def test_a_client_for_people_is_public_unless_told_otherwise(run):
    """We demand that the usual client needs a name and a redirect URI, no more."""
    code, out, _ = run("add-client", "app", "--redirect-uri", "https://app.example/cb", "--json")
    assert (0, {"client_id": "app", "client_secret": None}) == (code, json.loads(out))
    assert [
        {
            "id": "app",
            "name": "",
            "kind": "static",
            "auth_method": "none",
            "grant_types": ["authorization_code", "refresh_token"],
            "redirect_uris": ["https://app.example/cb"],
        }
    ] == json.loads(run("list", "clients", "--json")[1])["clients"]
    code, _, err = run("add-client", "app", "--redirect-uri", "https://app.example/cb")
    assert 2 == code
    assert "--replace" in err


def test_a_client_with_a_key_is_added_with_its_public_half_only(run, folder):
    """We demand that a private key that was given by mistake is not stored."""
    public = {"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}
    (folder / "public.json").write_text(json.dumps(public))
    (folder / "private.json").write_text(json.dumps({**public, "d": "secret"}))
    assert 0 == run("add-client", "robot", "--jwks", "public.json")[0]
    code, _, err = run("add-client", "robot2", "--jwks", "private.json")
    assert 2 == code
    assert "public keys only" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--grant", "password"), "--grant password"),
        (("--grant", "authorization_code"), "--redirect-uri goes with"),
        (("--auth-method", "tls"), "--auth-method tls"),
        (("--grant", "client_credentials", "--auth-method", "none"), "needs a client that auth"),
        (("--redirect-uri", "http://evil.example/cb"), "https, or http on this machine"),
        (("--redirect-uri", "javascript:alert(1)"), "a scheme that is not allowed"),
        (("--redirect-uri", "https://a.example/cb#x"), "no usable URL"),
        (("--auth-method", "private_key_jwt"), "--jwks goes with"),
        (("--jwks", "absent.json"), "cannot be read"),
    ],
)
def test_a_client_that_makes_no_sense_is_refused_with_the_option(run, words, said):
    """We demand that errors name the option to change."""
    code, _, err = run("add-client", "app", *words)
    assert (2, said) == (code, said if said in err else err)


def test_records_are_listed_for_people_and_for_programs(run, folder):
    """We demand tables that people can read, and the same as JSON."""
    run("add-user", "alice", "--name", "Alice", typed=PASSWORD)
    run("add-client", "app", "--redirect-uri", "https://app.example/cb")
    stored(folder, lambda records: records.add_grant(granted("g1")))
    code, out, _ = run("list")
    assert 0 == code
    for text in ("1 client", "1 user", "1 grant", "app", "alice", "g1", "files:read"):
        assert text in out
    found = json.loads(run("list", "grants", "users", "--json")[1])
    assert ["users", "grants"] == list(found)
    assert [{"id": "alice", "name": "Alice", "disabled": False}] == found["users"]
    assert ["g1"] == [grant["id"] for grant in found["grants"]]


def test_a_registered_name_moves_no_cursor_and_makes_no_row(run, folder):
    """We demand that names that strangers chose are shown as they are, in a pipe as on a terminal."""
    evil = "Good\x1b[2J\x1b]0;owned\x07\u202eAPP\n2 clients  trusted\x9b31m"
    client = RegisteredClient(
        client_id="app\x1b[1A", name=evil, redirect_uris=("https://app.example/\u202ecb",),
        grant_types=("authorization_code",), auth_method="none",
    )  # fmt: skip
    stored(folder, lambda records: records.save_client(client, None))
    code, out, _ = run("list", "clients")
    assert 0 == code
    assert [] == [c for c in out if c != "\n" and not c.isprintable()]
    assert 3 == len(out.splitlines())
    assert "Good<U+001B>[2J" in out
    assert "<U+202E>APP<U+000A>" in out


def test_limits_and_lifetimes_are_settings_of_the_file(folder):
    """We demand that whatever limits a server can be set where it is run."""
    (folder / "isthmus-auth.toml").write_text(
        'resources = ["https://mcp.example/mcp"]\nrotation_grace = 5.0\ncode_ttl = 30.0\n'
        "key_life = 86400.0\nlogin_idle = 60.0\nlogin_life = 600.0\nrequest_ttl = 120.0\n"
        "requests_per_minute = 10\ntoken_requests_per_minute = 20\nregistrations_per_hour = 2\n"
        "head_limit = 65536\nmax_token_bytes = 40000\n"
    )
    config = load_auth_config(None)
    authority = config.authority()
    settings, limits = authority.settings, config.limits()
    assert (5.0, 30.0, 86400.0) == (settings.rotation_grace, settings.code_ttl, settings.key_life)
    login = settings.login
    assert (60.0, 600.0, 120.0) == (login.idle, login.life, login.request_ttl)
    assert (40000, 65536) == (settings.max_token_bytes, config.head_limit)
    assert 10 == limits._addresses.rate.amount
    assert 20 == limits._clients.rate.amount
    assert 2 == limits._registrations.rate.amount


def test_an_unknown_kind_of_record_is_refused_with_those_there_are(run):
    """We demand that errors list the choices."""
    code, _, err = run("list", "tokens")
    assert 2 == code
    assert "clients, users, grants" in err


def test_a_store_that_is_not_there_is_not_made_by_looking(run, folder):
    """We demand that a mistyped path is an error, not an empty answer."""
    code, _, err = run("list", "--store", "other.db")
    assert 2 == code
    assert "there is no store other.db" in err
    assert not (folder / "other.db").exists()


def test_a_store_without_its_key_says_which_variable_to_set(run, folder, monkeypatch):
    """We demand that a missing key is explained."""
    run("add-client", "app", "--redirect-uri", "https://app.example/cb")
    monkeypatch.delenv("ISTHMUS_AUTH_KEY")
    code, _, err = run("list")
    assert 2 == code
    assert "ISTHMUS_AUTH_KEY" in err


def test_a_grant_ends(run, folder):
    """We demand that one grant can be ended, and that an unknown one is an error."""
    run("add-client", "app", "--redirect-uri", "https://app.example/cb")
    stored(folder, lambda records: records.add_grant(granted("g1")))
    assert 0 == run("revoke", "grant", "g1")[0]
    assert [] == json.loads(run("list", "grants", "--json")[1])["grants"]
    code, _, err = run("revoke", "grant", "g1")
    assert 2 == code
    assert "there is no grant g1" in err


def test_a_client_is_forgotten_with_its_grants(run, folder):
    """We demand that no token outlives its client."""
    run("add-client", "app", "--redirect-uri", "https://app.example/cb")
    stored(folder, lambda records: records.add_grant(granted("g1")))
    code, _, err = run("revoke", "client", "app")
    assert 0 == code
    assert "with 1 grant" in err
    assert {"clients": [], "grants": []} == json.loads(
        run("list", "clients", "grants", "--json")[1]
    )
    assert 2 == run("revoke", "client", "app")[0]


@pytest.mark.parametrize("what", [("grant", "g1"), ("client", "app"), ("user", "alice")])
def test_a_revoked_grant_has_to_be_approved_again(run, folder, what):
    """We demand that a remembered consent does not bring a revoked grant back in silence."""
    run("add-client", "app", "--redirect-uri", "https://app.example/cb")
    asked = ("app", "https://app.example/cb", "https://mcp.example/mcp")

    def approve(records):
        records.add_grant(granted("g1"))
        for user in ("alice", "bob"):
            records.save_consent(user, *asked, ["files:read"])

    stored(folder, approve)
    assert 0 == run("revoke", *what)[0]
    assert frozenset() == stored(folder, lambda records: records.consent("alice", *asked))
    others = stored(folder, lambda records: records.consent("bob", *asked))
    assert (what[0] != "client") is bool(others)


def test_a_user_is_disabled_and_their_grants_end(run, folder):
    """We demand that a user who has to go is gone at once, everywhere."""
    run("add-user", "alice", typed=PASSWORD)
    run("add-client", "app", "--redirect-uri", "https://app.example/cb")
    stored(folder, lambda records: records.add_grant(granted("g1")))
    assert 0 == run("revoke", "user", "alice")[0]
    found = json.loads(run("list", "users", "grants", "--json")[1])
    assert ([True], []) == ([user["disabled"] for user in found["users"]], found["grants"])
    assert 2 == run("revoke", "user", "nobody")[0]
    assert 2 == run("revoke", "token", "x")[0]


def test_keys_are_rotated_and_the_former_one_is_kept(run, folder):
    """We demand that tokens stay good over a change of keys."""
    ring = Keyring("ES256", life=1e9, overlap=1e9)
    before = stored(folder, ring.signing).kid
    code, out, _ = run("rotate-keys", "--json")
    keys = {key["state"]: key["kid"] for key in json.loads(out)}
    assert 0 == code
    assert {"current", "next", "previous"} == keys.keys()
    assert before == keys["previous"]


def test_paths_in_the_file_are_meant_from_where_it_is(run, folder):
    """We demand that a configuration works from any folder."""
    (folder / "etc").mkdir()
    (folder / "etc" / "auth.toml").write_text('users = "people.db"\n')
    assert 0 == run("add-user", "alice", "--config", "etc/auth.toml", typed=PASSWORD)[0]
    assert (folder / "etc" / "people.db").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("usrs = 'x'", "usrs"),
        ("resources = 'x'", "$.resources"),
        ("consent = 'never'", "$.consent"),
        ("issuer =", "is no TOML"),
        ("[proxy]\nheader = 'X-User'", "trusted"),
    ],
)
def test_a_file_that_is_not_understood_is_told_with_the_setting(run, folder, text, said):
    """We demand that a typing error in the file is not ignored."""
    (folder / "isthmus-auth.toml").write_text(text)
    code, _, err = run("serve")
    assert (2, said) == (code, said if said in err else err)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "--resource"),
        (("--resource", "https://m.example/mcp", "--scope", "a b"), "--scope a b"),
        (("--resource", "https://m.example/mcp", "--listen", "here"), "--listen here"),
        (("--config", "absent.toml"), "there is no file absent.toml"),
    ],
)
def test_a_server_that_lacks_something_says_what(run, words, said):
    """We demand that the first start tells what is missing."""
    code, _, err = run("serve", *words)
    assert (2, said) == (code, said if said in err else err)


@pytest.fixture
def running(folder):
    """Starts ``isthmus auth serve`` on a free port: the process, its URL and what it said."""
    started = []

    def start(*words):
        with socket.create_server(("127.0.0.1", 0)) as free:
            place = f"127.0.0.1:{free.getsockname()[1]}"
        command = [sys.executable, "-m", "isthmus", "auth", "serve", "--listen", place, *words]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        started.append(process)
        said = ""
        while "Ctrl-C" not in said:
            line = process.stderr.readline()
            assert line, said
            said += line
        return process, f"http://{place}", said

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def fetched(url):
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with browser.open(url, timeout=10) as response:
        return response.headers, response.read()


@pytest.mark.timeout(60)
def test_a_server_runs_and_says_how_another_one_trusts_it(running, folder):
    """We demand that one command is an authorization server, and prints what to do next."""
    process, url, said = running(
        "--resource", "https://m.example/mcp", "--scope", "files:read=Read your files"
    )
    server = ("ResourceAuth(", 'resource="https://m.example/mcp"', 'scopes={"files:read"},')
    for text in (f"issuer    {url}\n", *server, url):
        assert text in said
    metadata = json.loads(fetched(f"{url}/.well-known/oauth-authorization-server")[1])
    assert url == metadata["issuer"]
    assert ["files:read"] == metadata["scopes_supported"]
    headers, page = fetched(f"{url}/auth/logout")
    assert b"You are not signed in" in page
    assert "no-store" == headers["cache-control"]
    process.send_signal(signal.SIGINT)
    assert 0 == process.wait(20)
    assert 0o600 == (folder / "auth.db").stat().st_mode & 0o777


@pytest.mark.timeout(60)
def test_a_running_server_sees_what_the_commands_change(running, run):
    """We demand that clients are added without a restart."""
    _, url, _ = running("--resource", "https://m.example/mcp", "--scope", "files:read")
    run("add-client", "app", "--name", "Notes", "--redirect-uri", "https://notes.example/cb")
    run("add-user", "alice", typed=PASSWORD)
    page = fetched(request_url(url))[1]
    assert b"Notes" in page
    assert b"Sign in" in page


@pytest.mark.timeout(60)
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-11-25", "2026-07-28"])
def test_a_server_in_another_process_trusts_it_as_it_is_told_to(running, run, revision):
    """We demand that what the command prints is all that a server and its clients need."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        origin = f"http://127.0.0.1:{free.getsockname()[1]}"
    end = "/sse" if revision == "2024-11-05" else "/mcp"
    _, issuer, _ = running(
        "--resource", f"{origin}/mcp", "--resource", f"{origin}/sse",
        "--scope", "files:read=Read", "--scope", "files:write=Write",
    )  # fmt: skip
    run("add-user", "alice", typed=PASSWORD)
    person = Person("alice", PASSWORD)
    guard = ResourceAuth(
        resource=f"{origin}/mcp",
        authorization_servers=[issuer],
        verifier=JWTVerifier(issuer),
        scopes={"files:read"},
        sse=f"{origin}/sse",
    )
    server = Server("files", auth=guard)

    @server.tool(scopes={"files:write"})
    def write(who: Principal) -> str:
        return f"{who.issuer} {' '.join(sorted(who.scopes))}"

    async def visited():
        port = int(origin.rpartition(":")[2])
        auth = OAuth("desk", open_browser=person.open, store=MemoryTokenStore())
        async with (
            run_until_left(lambda told: http_serve(server.asgi(), port=port, on_bound=told)),
            Client(origin + end, auth=auth, revision=revision) as client,
        ):
            return (await client.call_tool("write")).text

    assert f"{issuer} files:read files:write" == asyncio.run(visited())
    assert 2 == len(person.opened)


@pytest.mark.timeout(60)
def test_a_taken_port_is_told(run, folder):
    """We demand that a server that cannot listen says where."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        command = ["auth", "serve", "--listen", place, "--resource", "https://m.example/mcp"]
        done = subprocess.run(
            [sys.executable, "-m", "isthmus", *command, "--scope", "a"],
            stderr=subprocess.PIPE, text=True, timeout=30, check=False,
        )  # fmt: skip
    assert 3 == done.returncode
    assert f"cannot listen on {place}" in done.stderr


def test_a_store_of_another_key_is_told_at_the_start(run, folder, monkeypatch):
    """We demand that a server with the wrong key does not begin to serve."""
    run("add-client", "app", "--redirect-uri", "https://app.example/cb")
    monkeypatch.setenv("ISTHMUS_AUTH_KEY", "j" * 43)
    code, _, err = run("serve", "--resource", "https://m.example/mcp", "--scope", "a")
    assert 2 == code
    assert "cannot be read with this key" in err


def test_without_the_extra_it_is_what_a_server_tells_first(run, monkeypatch):
    """Ours: neither a key nor a resource would help."""
    monkeypatch.delenv("ISTHMUS_AUTH_KEY", raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    code, _, err = run("serve")

    assert 2 == code
    assert "takes authlib: pip install 'isthmus[auth]'" in err


def test_a_client_gets_no_scope_that_the_file_does_not_have(run, folder):
    """We demand that a mistyped name is noticed now; without a file with scopes, all are taken."""
    words = ("add-client", "nightly", "--grant", "client_credentials", "--scope", "files:raed")
    assert 0 == run(*words)[0]
    (folder / "isthmus-auth.toml").write_text('[scopes]\n"files:read" = "Read"\n')
    code, _, err = run(*words, "--replace")
    assert 2 == code
    assert "'files:raed'" in err
    assert "it has files:read" in err
    code, _, err = run("add-client", "nightly", "--scope", "a b")
    assert 2 == code
    assert "repeat --scope" in err


@pytest.mark.timeout(60)
def test_a_head_without_an_end_is_refused_by_an_authorization_server_too(running, folder):
    """Ours: whatever serves HTTP has the same bounds, before anybody is known."""
    _process, url, _said = running("--resource", "https://m.example/mcp")
    host, _, port = url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nhost: localhost\r\nx: " + b"y" * 40_000)
        said = connection.recv(1000)

    assert said.startswith(b"HTTP/1.1 431 ")
