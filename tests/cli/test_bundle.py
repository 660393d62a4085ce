"""``isthmus bundle``: an MCPB file of a server, without what does not belong there."""

import hashlib
import json
import subprocess
import sys
import zipfile

import pytest

from isthmus.cli.commands.authoring.bundle_files import IgnoreRule, is_ignored
from isthmus.cli.commands.authoring.bundle_manifest import REGISTRY_SCHEMA
from isthmus.cli.main import main

SERVER = """import os

from isthmus import Server

import prices

server = Server("shop", version="2.1", description="A till.")


@server.tool
def price(name: str) -> int:
    \"\"\"The price of a thing.\"\"\"
    return prices.PRICES[name]
"""
PROJECT = """[project]
name = "the-shop"
version = "1.2.3"
description = "Sells things"
requires-python = ">=3.12"
license = "MIT"
keywords = ["till"]
dependencies = ["isthmus", "httpx"]
authors = [{name = "Ada", email = "ada@example.com"}]
[project.urls]
Homepage = "https://shop.example"
Repository = "https://github.com/ada/shop"
Issues = "https://github.com/ada/shop/issues"
"""
PEM = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----\n"


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A folder with a server of two files, and much beside it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "app.py").write_text(SERVER)
    (folder / "prices.py").write_text("PRICES = {'tea': 3}\n")
    (folder / "diary.txt").write_text("dear diary")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def isthmus(capsys):
    """Runs ``isthmus bundle``; gives its exit code, and what it wrote to both outputs."""

    def run(*words):
        with pytest.raises(SystemExit) as left:
            main(["bundle", "app.py", *words])
        out, err = capsys.readouterr()
        return int(left.value.code or 0), out, err

    return run


def read_bundle(path):
    """The files of a bundle."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_a_file_is_packed_with_the_modules_that_it_imports(shop, isthmus):
    """Ours: and with nothing else of its folder; what is packed was started, and lists its tools."""
    code, out, err = isthmus("--author", "Ada")
    files = read_bundle(shop / "shop.mcpb")
    manifest = json.loads(files["manifest.json"])

    assert (0, "") == (code, err)
    assert out.startswith("shop.mcpb: ")
    assert "5 files, 1 tool" in out
    assert ["manifest.json", "app.py", "isthmus_bundle.py", "prices.py", "pyproject.toml"] == list(
        files
    )
    assert ("0.4", "shop", "2.1.0", "A till.", {"name": "Ada"}) == tuple(
        manifest[key] for key in ("manifest_version", "name", "version", "description", "author")
    )
    assert [{"name": "price", "description": "The price of a thing."}] == manifest["tools"]
    assert ("uv", "isthmus_bundle.py") == (
        manifest["server"]["type"],
        manifest["server"]["entry_point"],
    )
    assert b'dependencies = ["isthmus>=' in files["pyproject.toml"]


def test_equal_files_make_an_equal_bundle(shop, isthmus):
    """Ours: whoever builds it again can compare."""
    made = []
    for name in ("one.mcpb", "two.mcpb"):
        assert 0 == isthmus("--author", "Ada", "--no-check", "-o", name)[0]
        made.append((shop / name).read_bytes())
        (shop / "prices.py").touch()
        (shop / "prices.py").chmod(0o700)

    assert made[0] == made[1]


def test_a_project_is_packed_without_what_is_not_its_own(shop, isthmus):
    """Ours: tools' folders, secrets, links, and what its ignore files name stay out."""
    (shop / "pyproject.toml").write_text(PROJECT)
    (shop / ".gitignore").write_text("*.txt\n!kept.txt\n/cache/\n")
    (shop / ".mcpbignore").write_text("big.bin\n")
    for name in (
        *("kept.txt", "data/table.csv", "data/notes.txt", "cache/a", "big.bin", "uv.lock"),
        *(".env", ".env.local", "prod.env", "tls/server.key", "id_ed25519", "credentials.json"),
        *(".git/config", ".venv/x.py", "__pycache__/a.pyc", "node_modules/a.js", "tests/test_a.py"),
        *("dist/shop.whl", "old.mcpb", "manifest.json", "own/pyvenv.cfg", "own/bin/python"),
    ):
        (shop / name).parent.mkdir(exist_ok=True, parents=True)
        (shop / name).write_text("x")
    (shop / "link.csv").symlink_to("/etc/passwd")
    (shop / "linked").symlink_to("/etc")
    code, out, _ = isthmus("--dry-run")

    wanted = ["app.py", "data/table.csv", "kept.txt", "prices.py", "pyproject.toml", "uv.lock"]
    assert (0, wanted) == (code, out.split())
    assert not (shop / "the-shop.mcpb").exists()


def test_a_project_says_what_it_is(shop, isthmus):
    """Ours: its own pyproject.toml is packed, and tells name, version, links and author."""
    (shop / "pyproject.toml").write_text(PROJECT)
    (shop / "icon.png").write_bytes(b"\x89PNG\r\n\x1a\n...")
    assert 0 == isthmus("--no-check", "--env", "API_KEY", "--env", "CITY=Rom")[0]
    files = read_bundle(shop / "the-shop.mcpb")
    manifest = json.loads(files["manifest.json"])

    assert PROJECT.encode() == files["pyproject.toml"]
    assert ("the-shop", "1.2.3", "MIT", ["till"], "icon.png", True) == tuple(
        manifest[key]
        for key in ("name", "version", "license", "keywords", "icon", "tools_generated")
    )
    assert {"name": "Ada", "email": "ada@example.com"} == manifest["author"]
    assert {"type": "git", "url": "https://github.com/ada/shop"} == manifest["repository"]
    assert ">=3.12" == manifest["compatibility"]["runtimes"]["python"]
    assert {"API_KEY": "${user_config.api_key}", "CITY": "${user_config.city}"} == manifest[
        "server"
    ]["mcp_config"]["env"]
    key, city = manifest["user_config"]["api_key"], manifest["user_config"]["city"]
    assert (True, True) == (key["required"], key["sensitive"])
    assert (False, "Rom", False) == (city["required"], city["default"], "sensitive" in city)


def test_the_registry_is_told(shop, isthmus):
    """Ours: where the bundle will be, its digest, and the variables, secrets marked."""
    (shop / "pyproject.toml").write_text(PROJECT)
    url = "https://github.com/ada/shop/releases/download/v1/shop.mcpb"
    words = ("--no-check", "--env", "API_KEY", "--registry-name", "io.github.ada/shop", "--at", url)
    assert 0 == isthmus(*words)[0]
    told = json.loads((shop / "server.json").read_text())
    package = told["packages"][0]

    assert REGISTRY_SCHEMA == told["$schema"]
    assert ("io.github.ada/shop", "1.2.3") == (told["name"], told["version"])
    assert {"url": "https://github.com/ada/shop", "source": "github"} == told["repository"]
    digest = hashlib.sha256((shop / "the-shop.mcpb").read_bytes()).hexdigest()
    assert ("mcpb", url, digest) == (
        package["registryType"],
        package["identifier"],
        package["fileSha256"],
    )
    assert {"type": "stdio"} == package["transport"]
    assert [("API_KEY", True, True)] == [
        (one["name"], one["isRequired"], one["isSecret"]) for one in package["environmentVariables"]
    ]
    for bad in (("--registry-name", "shop", "--at", url), ("--registry-name", "a.b/c")):
        assert 2 == isthmus("--no-check", *bad)[0]


def test_what_is_secret_goes_into_no_bundle(shop, isthmus):
    """Ours: not by its name, not by what is in it, and not by a link, whoever names it."""
    (shop / ".env").write_text("API_KEY=1")
    (shop / "notes.txt").write_text(f"do not lose this:\n{PEM}")
    (shop / "hosts").symlink_to("/etc/hosts")
    (shop / ".ssh").mkdir()
    (shop / ".ssh" / "config").write_text("x")
    for name, said in (
        (".env", "has the name of a file of secrets"),
        (".ssh/config", "has the name of a file of secrets"),
        ("notes.txt", "contains a private key"),
        ("hosts", "is a link"),
        ("../outside", "is outside of"),
        ("nothing", "cannot be read"),
    ):
        code, _, err = isthmus("--author", "Ada", "--no-check", "--include", name)
        assert (2, True) == (code, said in err), err
    assert not (shop / "shop.mcpb").exists()


def test_a_file_that_is_missing_in_the_bundle_is_found_before_it_is_written(shop, isthmus):
    """Ours: the server is started from what was packed, and from nowhere else."""
    (shop / "app.py").write_text(
        f"{SERVER}\nfrom pathlib import Path\nPath(__file__).with_name('diary.txt').read_text()\n"
    )
    code, out, err = isthmus("--author", "Ada")
    assert (3, "") == (code, out)
    assert "diary.txt" in err
    assert "--include adds one" in err
    assert not (shop / "shop.mcpb").exists()

    assert 0 == isthmus("--author", "Ada", "--include", "diary.txt")[0]
    assert "diary.txt" in read_bundle(shop / "shop.mcpb")


def test_the_entry_point_serves_the_object_that_was_named(shop, capsys):
    """Ours: a host that runs the entry point by itself starts the same server."""
    (shop / "app.py").write_text(SERVER.replace("server = ", "other = Server('o')\nserver = "))
    with pytest.raises(SystemExit) as left:
        main(["bundle", "app.py:server", "--author", "Ada", "--no-check"])
    assert not left.value.code
    capsys.readouterr()
    unpacked = shop / "unpacked"
    for name, data in read_bundle(shop / "shop.mcpb").items():
        unpacked.mkdir(exist_ok=True)
        (unpacked / name).write_bytes(data)
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        },
    }
    done = subprocess.run(
        [sys.executable, str(unpacked / "isthmus_bundle.py")],
        input=json.dumps(hello) + "\n",
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        timeout=30,
    )
    assert "shop" == json.loads(done.stdout.splitlines()[0])["result"]["serverInfo"]["name"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "a bundle needs an author"),
        (("--author", "A", "--release", "new"), "is no version of a bundle"),
        (("--author", "A", "--icon", "diary.txt"), "is no PNG"),
        (("--author", "A", "--icon", "none.png"), "No such file"),
        (("--author", "A", "--env", "A-B"), "write NAME, or NAME=DEFAULT"),
        (("--author", "A", "--env", "AB", "--env", "ab"), "is given twice"),
        (("--author", "A", "-o", "nowhere/x.mcpb"), "cannot be written"),
    ],
)
def test_a_line_that_means_nothing_is_told(shop, isthmus, words, said):
    """Ours: what is wrong, and how to say it."""
    code, _, err = isthmus(*words, "--no-check")

    assert (2, True) == (code, said in err), err
    assert not list(shop.glob("*.mcpb"))


def test_a_project_that_cannot_run_is_told(shop, isthmus):
    """Ours: uv would start it without isthmus."""
    for text, said in (
        ("[project]\nname = 'a'\n", "does not name isthmus"),
        ("[tool.x]\n", "has no table [project]"),
        ("[", "cannot be read"),
    ):
        (shop / "pyproject.toml").write_text(text)
        code, _, err = isthmus("--author", "A", "--no-check")
        assert (2, True) == (code, said in err), err
    (shop / "pyproject.toml").unlink()
    (shop / "prices.py").write_text("import nobody_has_this")
    assert "by --with PACKAGE" in isthmus("--author", "A", "--no-check")[2]


def test_a_home_is_no_project(shop, isthmus):
    """Ours: a pyproject.toml in the user's home does not put all of it into a bundle."""
    (shop.parent / "pyproject.toml").write_text(PROJECT)

    assert ["app.py", "prices.py"] == isthmus("--dry-run")[1].split()


@pytest.mark.parametrize(
    ("line", "path", "is_folder", "fits"),
    [
        ("*.txt", "a/b.txt", False, True),
        ("*.txt", "a/b.txtx", False, False),
        ("/*.txt", "a/b.txt", False, False),
        ("/b.txt", "b.txt", False, True),
        ("a/b", "x/a/b", False, False),
        ("**/b", "x/y/b", False, True),
        ("a/**", "a/x/y", False, True),
        ("a/**/b", "a/b", False, True),
        ("a/**/b", "a/x/y/b", False, True),
        ("cache/", "x/cache", True, True),
        ("cache/", "cache", False, False),
        ("[ab].c", "b.c", False, True),
        ("[!ab].c", "b.c", False, False),
        ("a?", "ab", False, True),
        ("a+b", "a+b", False, True),
        ("\\#a", "#a", False, True),
        ("!a", "a", False, False),
    ],
)
def test_an_ignore_file_is_read_as_git_reads_it(tmp_path, line, path, is_folder, fits):
    """Ours: anchors, folders, stars, sets and negation."""
    assert fits == is_ignored(tmp_path / path, is_folder, [IgnoreRule(tmp_path, line)])
