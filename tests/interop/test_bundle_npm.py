"""Bundles are judged by npm ``@anthropic-ai/mcpb``, which desktop clients read them with."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.interop, pytest.mark.timeout(180)]

HELLO = Path(__file__).resolve().parents[2] / "examples" / "hello.py"
PNG = b"\x89PNG\r\n\x1a\n"


def make_bundle(folder, *words):
    """A bundle of the example, made in a process of its own; its path."""
    (folder / "hello.py").write_bytes(HELLO.read_bytes())
    done = subprocess.run(
        [sys.executable, "-m", "isthmus", "bundle", "hello.py", "--author", "Ada", *words],
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert 0 == done.returncode, done.stderr
    return next(folder.glob("*.mcpb"))


@pytest.mark.parametrize("words", [(), ("--env", "API_KEY", "--env", "CITY=Rom", "--no-check")])
def test_mcpb_accepts_a_bundle(tmp_path, node, modules_of, words):
    """MCPB 2.1.2: the manifest is valid, and the archive unpacks to the same files."""
    cli = modules_of("mcpb") / "node_modules" / "@anthropic-ai" / "mcpb" / "dist" / "cli" / "cli.js"
    (tmp_path / "icon.png").write_bytes(PNG)
    bundle = make_bundle(tmp_path, *words)

    def run(*more):
        done = subprocess.run(
            [str(node), str(cli), *map(str, more)],
            check=False,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert 0 == done.returncode, done.stdout + done.stderr
        return done.stdout

    run("unpack", bundle, tmp_path / "unpacked")
    assert "passes" in run("validate", tmp_path / "unpacked" / "manifest.json")
    assert bundle.name in run("info", bundle)
    unpacked = {path.name for path in (tmp_path / "unpacked").iterdir()}
    assert {"manifest.json", "hello.py", "isthmus_bundle.py", "pyproject.toml", "icon.png"} == (
        unpacked
    )
    assert (
        "0.4"
        == json.loads((tmp_path / "unpacked" / "manifest.json").read_text())["manifest_version"]
    )


def test_mcpb_refuses_what_is_no_manifest(tmp_path, node, modules_of):
    """Ours: the judge does judge."""
    cli = modules_of("mcpb") / "node_modules" / "@anthropic-ai" / "mcpb" / "dist" / "cli" / "cli.js"
    (tmp_path / "manifest.json").write_text('{"manifest_version": "0.4", "name": "x"}')
    done = subprocess.run(
        [str(node), str(cli), "validate", str(tmp_path / "manifest.json")],
        check=False,
        capture_output=True,
        timeout=60,
    )

    assert 0 != done.returncode
