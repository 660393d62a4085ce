"""``isthmus install``: a server in the configuration of ten clients, and out of it again."""

import json
import os
import stat
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isthmus.cli.main import main
from isthmus.host.config.clients import CLIENTS, find_client_file
from isthmus.host.config.importing import IMPORT_SOURCES, MOVED_FOLDERS, find_source, import_servers
from isthmus.host.config.syntax import parse_yaml
from isthmus.host.model.errors import ConfigError

SERVER = """from isthmus import Server

server = Server("shop")


@server.tool
def price(name: str) -> int:
    \"\"\"The price.\"\"\"
    return 3
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A user with a project that has a server, and no client yet; their home."""
    for name in [pair[0] for pairs in MOVED_FOLDERS.values() for pair in pairs]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    project = tmp_path / "shop"
    project.mkdir()
    (project / "app.py").write_text(SERVER)
    monkeypatch.chdir(project)
    return tmp_path


@pytest.fixture
def isthmus(capsys):
    """Runs ``isthmus install``; gives its exit code, and what it wrote to both outputs."""

    def run(*words):
        with pytest.raises(SystemExit) as left:
            main(["install", *words])
        out, err = capsys.readouterr()
        return int(left.value.code or 0), out, err

    return run


def place_of(client):
    """A client's own file."""
    return find_client_file(client, os.environ, None)


def read_file(path):
    """What a file says, whatever it is written in."""
    text = path.read_text()
    if path.suffix == ".toml":
        return tomllib.loads(text)
    return parse_yaml(text).value if path.suffix == ".yaml" else json.loads(text)


@pytest.mark.parametrize("client", CLIENTS)
def test_an_entry_is_read_back_as_it_was_meant(home, isthmus, client):
    """Ours: what install writes, config import --from reads; the program needs no PATH and no folder."""
    assert 0 == isthmus("app.py", "--into", client, "--no-check", "--env", "CITY=Rom")[0]
    imported = import_servers(find_source(client, os.environ))
    entry = imported.servers["shop"]

    assert sys.executable == entry["command"]
    assert ["-P", "-m", "isthmus", "run", str(home / "shop" / "app.py")] == entry["args"]
    assert {"CITY": "Rom"} == entry["env"]
    assert {} == imported.refused


@pytest.mark.parametrize("client", [name for name in CLIENTS if CLIENTS[name].remote is not None])
def test_a_url_is_read_back_as_it_was_meant(home, isthmus, client):
    """Ours: url, uri, serverUrl, httpUrl, and each client's type."""
    url = "https://shop.example/mcp"
    words = ("--url", url, "--into", client, "--name", "far", "--no-check", "--header", "X-Shop=7")
    assert 0 == isthmus(*words)[0]
    entry = import_servers(find_source(client, os.environ)).servers["far"]

    assert (url, {"X-Shop": "7"}) == (entry["url"], entry["headers"])
    assert CLIENTS[client].url in json.dumps(read_file(place_of(client)))


TOKENS = {
    "claude-code": "Bearer ${API_TOKEN}",
    "cursor": "Bearer ${env:API_TOKEN}",
    "vscode": "Bearer ${input:far-api_token}",
    "codex": "Bearer ${API_TOKEN}",
    "gemini": "Bearer ${API_TOKEN}",
    "goose": "Bearer ${API_TOKEN}",
    "windsurf": "Bearer ${env:API_TOKEN}",
    "cline": "Bearer ${env:API_TOKEN}",
}


@pytest.mark.parametrize("client", TOKENS)
def test_a_token_stays_out_of_the_file(home, isthmus, client):
    """Ours: each client has its own way to name a variable."""
    words = ("https://x.example/mcp", "--token-env", "API_TOKEN", "--name", "far", "--no-check")
    assert 0 == isthmus(*words, "--into", client)[0]
    entry = import_servers(find_source(client, os.environ)).servers["far"]

    assert TOKENS[client] == entry["headers"]["Authorization"]


@pytest.mark.parametrize(
    ("client", "variable"),
    [
        ("claude-code", "${API_KEY}"),
        ("cursor", "${env:API_KEY}"),
        ("vscode", "${input:shop-api_key}"),
        ("codex", "${API_KEY}"),
        ("gemini", "${API_KEY}"),
        ("goose", "${API_KEY}"),
        ("windsurf", "${env:API_KEY}"),
        ("cline", "${env:API_KEY}"),
    ],
)
def test_a_variable_without_a_value_is_the_clients(home, isthmus, client, variable):
    """Ours: its environment's, its keyring's, or what it asks its user for."""
    code, _, err = isthmus("app.py", "--into", client, "--no-check", "--env", "API_KEY")
    entry = import_servers(find_source(client, os.environ)).servers["shop"]

    assert (0, {"API_KEY": variable}) == (code, entry["env"])
    assert (client == "vscode") == ("has to be set" not in err)


@pytest.mark.parametrize("client", ["claude", "zed"])
def test_a_client_that_fills_in_nothing_is_told_so(home, isthmus, client):
    """Ours: a text with a dollar would be taken as it stands."""
    code, _, err = isthmus("app.py", "--into", client, "--no-check", "--env", "API_KEY")

    assert (2, True) == (code, "fills in no variables" in err)
    assert not place_of(client).exists()
    assert 2 == isthmus("https://x.example/mcp", "--into", "claude")[0]


def test_a_secret_in_clear_is_told(home, isthmus):
    """Ours: it is written, since the user said so, and they know."""
    code, _, err = isthmus("app.py", "--into", "cursor", "--no-check", "--env", "API_KEY=s3cret")

    assert 0 == code
    assert "API_KEY stands in the file in clear: --env API_KEY without a value" in err
    assert "s3cret" not in err


def test_an_input_is_asked_for_once_and_goes_with_its_server(home, isthmus):
    """Ours: VS Code's inputs are a list that others have elements in, with comments."""
    path = home / "shop" / ".vscode" / "mcp.json"
    path.parent.mkdir()
    theirs = '{\n  "inputs": [\n    {"id": "a", "type": "promptString"} // mine\n  ],\n  "servers": {}\n}\n'
    path.write_text(theirs)
    words = ("app.py", "--into", "vscode", "--project", "--no-check", "--env", "API_KEY")
    assert 0 == isthmus(*words)[0]
    inputs = [one["id"] for one in read_lenient(path)["inputs"]]
    assert ["a", "shop-api_key"] == inputs
    path.write_text(path.read_text() + "\n")  # somebody else was here: no exact way back

    assert 0 == isthmus("--name", "shop", "--into", "vscode", "--project", "--remove")[0]
    assert {"inputs": [{"id": "a", "type": "promptString"}], "servers": {}} == read_lenient(path)
    assert "// mine" in path.read_text()


def read_lenient(path):
    """JSON with comments."""
    from isthmus.host.config.syntax import parse_jsonc

    return parse_jsonc(path.read_text()).value


@pytest.mark.parametrize("client", CLIENTS)
def test_a_file_that_was_made_goes_again(home, isthmus, client):
    """Ours: nothing is left of what was not there."""
    before = {path for path in home.rglob("*") if path.is_file()}
    assert 0 == isthmus("app.py", "--into", client, "--no-check")[0]
    assert 0 == isthmus("app.py", "--into", client, "--remove")[0]

    after = {path for path in home.rglob("*") if path.is_file()}
    assert {"installs.json"} >= {path.name for path in after - before}
    assert set() == before - after


BLANK = st.sampled_from(["", " ", "\n", "\n\t", "\r\n  ", " // note\n", " /* x */ "])
TEXTS = st.sampled_from(['"a"', "1", "[1, 2,]", "{}", '{"command": "x", "args": []}', '"ü{"'])


@st.composite
def json_files(draw):
    """A file of JSON with comments, with or without the section."""
    blank = lambda: draw(BLANK)  # noqa: E731 - a shorthand
    members = [f'"m{i}"{blank()}:{blank()}{draw(TEXTS)}' for i in range(draw(st.integers(0, 3)))]
    inner = [f'"s{i}":{blank()}{{"command": "y"}}' for i in range(draw(st.integers(0, 2)))]
    if draw(st.booleans()):
        comma = draw(st.sampled_from(["", ","])) if inner else ""
        section = f'"mcpServers":{blank()}{{{blank()}{f",{blank()}".join(inner)}{comma}{blank()}}}'
        members.insert(draw(st.integers(0, len(members))), section)
    comma = draw(st.sampled_from(["", ","])) if members else ""
    return f"{blank()}{{{blank()}{f'{blank()},{blank()}'.join(members)}{comma}{blank()}}}{blank()}"


TOML_LINES = st.sampled_from(
    ["# note", "", "[mcp_servers.a]", 'command = "x"', "[other]", "[mcp_servers.b.env]", "[[x]]"]
)
YAML_LINES = st.sampled_from(
    ["# note", "", "a: 1", "extensions:", "extensions: {}", "  dev:", "    enabled: true # x", "b:"]
)


@pytest.mark.parametrize(
    ("client", "texts"),
    [
        ("cursor", json_files()),
        ("codex", st.lists(TOML_LINES, max_size=8).map("\n".join)),
        ("goose", st.lists(YAML_LINES, max_size=8).map("\n".join)),
    ],
)
def test_removing_restores_every_byte(home, isthmus, client, texts):
    """Ours: comments, commas, blanks, line ends; or the file is refused and stays as it is."""
    path = place_of(client)
    path.parent.mkdir(parents=True)
    done = []

    @given(texts)
    @settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
    def check(text):
        data = text.encode()
        path.write_bytes(data)
        code = isthmus("app.py", "--into", client, "--no-check")[0]
        if code:
            assert (2, data) == (code, path.read_bytes())
            return
        changed = path.read_bytes()
        assert changed != data
        assert 0 == isthmus("app.py", "--into", client, "--remove")[0]
        assert data == path.read_bytes()
        # without the record the entry goes all the same, and what else there is stays
        path.write_bytes(changed + b"\n")
        assert 0 == isthmus("app.py", "--into", client, "--remove")[0]
        assert b"-P" not in path.read_bytes()
        assert data.count(b"note") == path.read_bytes().count(b"note")
        done.append(text)

    check()
    assert len(done) > 5


def test_another_server_of_that_name_is_not_replaced_unasked(home, isthmus):
    """Ours: what differs is shown, secrets are not."""
    path = place_of("cursor")
    path.parent.mkdir()
    theirs = '{"mcpServers": {"shop": {"command": "npx", "env": {"API_KEY": "hunter2hunter2"}}}}'
    path.write_text(theirs)
    code, _, err = isthmus("app.py", "--into", "cursor", "--no-check")

    assert (2, theirs) == (code, path.read_text())
    assert '-  "command": "npx"' in err
    assert "hunter2" not in err
    assert 2 == isthmus("app.py", "--into", "cursor", "--remove")[0]
    shown = isthmus("app.py", "--into", "cursor", "--dry-run", "--force")[1]
    assert ("hunter2" in shown, theirs) == (False, path.read_text())
    assert 0 == isthmus("app.py", "--into", "cursor", "--no-check", "--force")[0]
    assert sys.executable == read_file(path)["mcpServers"]["shop"]["command"]
    again = isthmus("app.py", "--into", "cursor", "--no-check")
    assert (0, True) == (again[0], "already" in again[1])
    assert "hunter2" not in "".join(
        one.read_text() for one in (home / "state").rglob("*") if one.is_file()
    )


def test_of_several_clients_each_is_told_and_one_stops_no_other(home, isthmus):
    """Ours: a file that cannot be changed; what was written and what not, and an exit code that says so."""
    broken = place_of("cursor")
    broken.parent.mkdir(parents=True)
    broken.write_text("{ no json")
    into = ("--into", "claude-code", "--into", "cursor", "--into", "codex")
    code, out, err = isthmus("app.py", *into, "--no-check")

    assert 2 == code
    assert f"Claude Code: shop is in {place_of('claude-code')}" in out
    assert f"Codex: shop is in {place_of('codex')}" in out
    assert "isthmus: Cursor: " in err
    assert "Nothing was written. To paste it yourself" in err
    assert err.endswith("Done for Claude Code, Codex; not done for Cursor.\n")
    assert "{ no json" == broken.read_text()
    code, _, err = isthmus("app.py", *into, "--remove")
    assert 2 == code
    assert err.endswith("Done for Claude Code, Codex; not done for Cursor.\n")
    assert not place_of("codex").exists()


def test_what_cannot_be_for_one_client_is_told_before_another_is_written(home, isthmus):
    """Ours: Claude Desktop has no URLs in its file, goose none of a project."""
    url = ("https://x.example/mcp", "--name", "far", "--no-check")
    assert 2 == isthmus(*url, "--into", "cursor", "--into", "claude")[0]
    project = ("--project", "--no-check", "--into", "cursor", "--into", "goose")
    assert 2 == isthmus("app.py", *project)[0]
    assert not place_of("cursor").exists()
    assert not (home / "shop" / ".cursor").exists()


def test_a_file_keeps_its_mode(home, isthmus):
    """Ours: what the user arranged stays; a new file is theirs alone."""
    path = place_of("gemini")
    path.parent.mkdir()
    path.write_text("{}")
    path.chmod(0o640)
    assert 0 == isthmus("app.py", "--into", "gemini", "--into", "cursor", "--no-check")[0]

    assert 0o640 == stat.S_IMODE(path.stat().st_mode)
    assert 0o600 == stat.S_IMODE(place_of("cursor").stat().st_mode)


def test_a_link_is_not_followed_unasked(home, isthmus):
    """Ours: a repository may have a link in place of its .vscode, or of the file in it."""
    elsewhere = home / "precious.json"
    elsewhere.write_text("{}")
    links = home / "shop" / ".cursor", home / "shop" / ".vscode" / "mcp.json"
    (home / "folder").mkdir()
    (home / "folder" / "mcp.json").write_text("{}")
    links[0].symlink_to(home / "folder")
    links[1].parent.mkdir()
    links[1].symlink_to(elsewhere)
    for client in ("cursor", "vscode"):
        words = ("app.py", "--into", client, "--project", "--no-check")
        code, _, err = isthmus(*words)
        assert (2, True) == (code, "is a link to" in err)
        assert "To paste it yourself" in err
    assert ["{}", "{}"] == [
        elsewhere.read_text(),
        (home / "folder" / "mcp.json").read_text(),
    ]
    assert 0 == isthmus(*words, "--follow-links")[0]
    assert links[1].is_symlink()
    assert "servers" in elsewhere.read_text()


def test_a_file_that_is_not_the_users_to_write_is_left(home, isthmus, monkeypatch):
    """Ours: of another owner, write-protected, broken, a folder or a pipe: told, with what to paste."""
    path = place_of("cursor")
    path.parent.mkdir()

    def refused():
        code, _, err = isthmus("app.py", "--into", "cursor", "--no-check")
        assert (2, True) == (code, '"mcpServers": {' in err)
        return err

    path.write_text('{"mcpServers": ')
    assert "is not JSON" in refused()
    path.write_text('{"mcpServers": []}')
    assert "is no object" in refused()
    path.write_text("{}")
    path.chmod(0o400)
    assert "is write-protected" in refused()
    path.chmod(0o600)
    with monkeypatch.context() as other:
        other.setattr(os, "getuid", lambda: os.geteuid() + 1)
        assert "belongs to another user" in refused()
    assert "{}" == path.read_text()
    path.unlink()
    path.mkdir()
    assert "is no file" in refused()
    path.rmdir()
    os.mkfifo(path)
    assert "is no file" in refused()


def test_what_would_change_is_shown_and_not_done(home, isthmus):
    """Ours: and what stands around it is nobody's to read on a screen that is shared."""
    path = place_of("claude-code")
    theirs = '{\n  "apiKey": "sk-ant-api03-abcdefghijklmnop",\n  "mcpServers": {\n  }\n}\n'
    path.write_text(theirs)
    code, out, _ = isthmus("app.py", "--into", "claude-code", "--dry-run")

    assert (0, theirs) == (code, path.read_text())
    assert '+      "command": ' in out
    assert "abcdefghijklmnop" not in out
    assert 0 == isthmus("app.py", "--into", "claude-code", "--no-check")[0]
    assert (0, True) == (
        isthmus("app.py", "--into", "claude-code", "--remove", "--dry-run")[0],
        "shop" in path.read_text(),
    )


@pytest.mark.parametrize("client", CLIENTS)
def test_what_is_to_be_pasted_is_a_whole_file(home, isthmus, client):
    """Ours: it can be piped into one, and nothing is written."""
    code, out, err = isthmus("app.py", "--into", client, "--print")
    path = home / f"pasted{place_of(client).suffix}"
    path.write_text(out)
    found = read_file(path)

    assert (0, "") == (code, err)
    assert ["shop"] == list(found[CLIENTS[client].section[0]])
    assert not place_of(client).exists()


def test_a_server_is_started_as_the_client_will(home, isthmus, monkeypatch):
    """Ours: no module of the folder that the client is in stands in for one of isthmus's."""
    (home / "shop" / "isthmus.py").write_text("raise SystemExit('the wrong isthmus')")
    (home / "shop" / "msgspec.py").write_text("raise SystemExit('the wrong msgspec')")
    (home / "served").mkdir()
    (home / "served" / "till.py").write_text(SERVER)
    monkeypatch.setenv("API_KEY", "k")
    words = ("../served/till.py", "--into", "vscode", "--project", "--env", "API_KEY")
    only = isthmus(*words, "--check")
    assert (0, "VS Code: till works: 1 tool: price\n", "") == only
    assert not (home / "shop" / ".vscode").exists()
    code, out, _ = isthmus(*words)

    assert (0, True) == (code, "works: 1 tool: price" in out)
    monkeypatch.delenv("API_KEY")
    assert "not started here" in isthmus(*words, "--check")[2]


def test_a_server_that_does_not_start_is_not_written(home, isthmus):
    """Ours: with what it said; --no-check writes it all the same."""
    (home / "shop" / "app.py").write_text(f"{SERVER}\nopen('prices.txt')\n")
    (home / "shop" / "prices.txt").write_text("")  # beside it, where no client starts it
    code, out, err = isthmus("app.py", "--into", "cursor")

    assert (3, "") == (code, out)
    assert "prices.txt" in err
    assert "does not work as Cursor starts it, and was not written" in err
    assert not place_of("cursor").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("app.py",), "--into says which client: claude-code, claude, cursor"),
        (("app.py", "--into", "cursr"), "did you mean cursor?"),
        (("--into", "cursor"), "name one server"),
        (("app.py", "--url", "https://x.example/mcp", "--into", "cursor"), "name one server"),
        (("nothing.py", "--into", "cursor"), "there is no file nothing.py"),
        (("app.py", "--into", "cursor", "--name", "a b"), "is no name that every client takes"),
        (("app.py", "--into", "cursor", "--name", "../x"), "is no name that every client takes"),
        (("app.py", "--into", "cursor", "--env", "A B=1"), "is no name of a variable"),
        (("app.py", "--into", "cursor", "--env", "A=1", "--env", "A"), "is given twice"),
        (("app.py", "--into", "cursor", "--env", "A=1\n2"), "has control characters"),
        (("app.py", "--into", "cursor", "--header", "A=1"), "go with a URL"),
        (("app.py", "--into", "cursor", "--with", "x"), "--with goes with --uv"),
        (("app.py", "--into", "cursor", "--print", "--dry-run"), "choose one of"),
        (("app.py", "--into", "goose", "--project"), "goose has no file in a project"),
        (("--url", "file:///etc/passwd", "--into", "cursor"), "is no URL that clients connect to"),
        (("--url", "https://u:p@x.example/", "--into", "cursor"), "is no URL"),
        (("--url", "https://x.example/", "--env", "A=1", "--into", "cursor"), "go with a program"),
        (("--into", "cursor", "--", "no-such-program"), "there is no program"),
    ],
)
def test_a_line_that_means_nothing_is_told(home, isthmus, words, said):
    """Ours: what is wrong, and how to say it."""
    code, _, err = isthmus(*words)

    assert (2, True) == (code, said in err), err
    assert not place_of("cursor").exists()


def test_a_command_is_installed_by_its_whole_path(home, isthmus):
    """Ours: a client that no shell started has another PATH."""
    assert 0 == isthmus("--into", "cursor", "--no-check", "--name", "x", "--", "sh", "-c", "a")[0]
    entry = read_file(place_of("cursor"))["mcpServers"]["x"]

    assert (True, ["-c", "a"]) == (Path(entry["command"]).is_absolute(), entry["args"])


def test_uv_brings_what_a_file_needs(home, isthmus, monkeypatch):
    """Ours: with the project around the file, or with none."""
    uv = home / "bin" / "uv"
    uv.parent.mkdir()
    uv.write_text("#!/bin/sh\n")
    uv.chmod(0o755)
    assert 2 == isthmus("app.py", "--into", "claude", "--uv", "--print")[0] or os.environ["PATH"]
    monkeypatch.setenv("PATH", str(uv.parent))
    file = str(home / "shop" / "app.py")
    words = ("app.py", "--into", "claude", "--uv", "--with", "httpx", "--print")
    entry = json.loads(isthmus(*words)[1])["mcpServers"]["shop"]
    start = ["--with", "isthmus", "--with", "httpx", "isthmus", "run", file]
    assert (str(uv), ["run", "--no-project", *start]) == (entry["command"], entry["args"])
    (home / "shop" / "pyproject.toml").write_text("")
    entry = json.loads(isthmus(*words)[1])["mcpServers"]["shop"]
    assert ["run", "--project", str(home / "shop"), *start] == entry["args"]


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
@pytest.mark.parametrize("client", CLIENTS)
def test_every_client_has_a_file_on_every_system(tmp_path, client, platform):
    """Ours: the one that isthmus config import looks for first."""
    environ = {"HOME": str(tmp_path), "APPDATA": str(tmp_path / "appdata")}
    path = find_client_file(client, environ, None, platform)

    assert path.is_relative_to(tmp_path)
    assert path.suffix in {".json", ".toml", ".yaml"}
    assert client in IMPORT_SOURCES
    shape = CLIENTS[client]
    if shape.project:
        assert tmp_path / shape.project == find_client_file(client, environ, tmp_path, platform)
    else:
        with pytest.raises(ConfigError, match="has no file in a project"):
            find_client_file(client, environ, tmp_path, platform)


@pytest.mark.parametrize("client", [name for name in MOVED_FOLDERS if name in CLIENTS])
def test_a_folder_that_a_variable_moves_is_found(tmp_path, client):
    """Ours: CODEX_HOME and its like."""
    variable, file = MOVED_FOLDERS[client][0]
    environ = {"HOME": str(tmp_path), variable: str(tmp_path / "moved")}

    assert tmp_path / "moved" / file == find_client_file(client, environ, None, "linux")


def test_what_is_thrown_away_by_uv_is_no_interpreter(home, isthmus, monkeypatch):
    """Ours: what uvx has made is gone when its cache is emptied."""
    monkeypatch.setattr(sys, "prefix", "/home/a/.cache/uv/archive-v0/abc")
    code, _, err = isthmus("app.py", "--into", "cursor", "--no-check")

    assert (2, True) == (code, "give --uv" in err)


def test_a_server_that_the_file_switches_off_is_told(home, isthmus):
    """Ours: Gemini's lists stand outside of its servers, as do VS Code's inputs."""
    path = place_of("gemini")
    path.parent.mkdir()
    path.write_text('{"mcp": {"excluded": ["shop"]}, "mcpServers": {}}')
    code, _, err = isthmus("app.py", "--into", "gemini")

    assert (0, True) == (code, "mcp.excluded of the file switches shop off" in err)


def test_inputs_that_are_null_are_no_obstacle(home, isthmus):
    """Ours: another program may have left them so."""
    path = place_of("vscode")
    path.parent.mkdir(parents=True)
    path.write_text('{"inputs": null, "servers": {}, "mcpServers": {"shop": {"command": "x"}}}')
    words = ("app.py", "--into", "vscode", "--env", "API_KEY", "--no-check")

    assert 0 == isthmus(*words)[0]
    assert ["shop-api_key"] == [one["id"] for one in read_file(path)["inputs"]]
    assert 0 == isthmus("app.py", "--into", "vscode", "--remove")[0]


def test_a_file_that_changes_while_the_server_is_started_is_left(home, isthmus):
    """Ours: the client itself may write it at any time."""
    path = place_of("claude-code")
    path.write_text("{}")
    (home / "shop" / "app.py").write_text(
        f"{SERVER}\nfrom pathlib import Path\nPath({str(path)!r}).write_text('{{ }}')\n"
    )
    code, _, err = isthmus("app.py", "--into", "claude-code")

    assert (2, "{ }") == (code, path.read_text())
    assert "changed by another program in the meantime" in err
    assert '"mcpServers": {' in err
