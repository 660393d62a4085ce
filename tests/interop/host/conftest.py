"""Servers that other people wrote for their own ends, as entries of a configuration."""

import shutil
import subprocess
from pathlib import Path

import pytest

from isthmus.host.model.entries import Advertise, HostConfig, ServerEntry, ServerOptions

GIT = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
SCRIPT = "node_modules/@modelcontextprotocol/server-{0}/dist/index.js"


def repository(folder: Path) -> Path:
    """A git repository with one commit."""
    git = shutil.which("git")
    if git is None:
        pytest.skip("not to be had: git")
    folder.mkdir()
    (folder / "notes.txt").write_text("hello\n", encoding="utf-8")
    for words in (("init", "-q"), ("add", "."), (*GIT, "commit", "-q", "-m", "The first notes")):
        subprocess.run([git, *words], cwd=folder, check=True)
    return folder


@pytest.fixture
def theirs(tmp_path, python_of, node, modules_of):
    """A configuration of the five, with a folder for each that works in one."""
    bin = python_of("servers").parent
    repo = repository(tmp_path / "repo")
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "list.txt").write_text("milk\n", encoding="utf-8")
    every = ServerOptions(advertise=Advertise(sampling=True))

    def scripted(name: str, *words: str, **more: object) -> ServerEntry:
        script = modules_of(name) / SCRIPT.format(name)
        return ServerEntry(name=name, command=(str(node), str(script), *words), **more)

    entries = (
        ServerEntry(name="time", command=(str(bin / "mcp-server-time"), "--local-timezone", "UTC")),
        ServerEntry(name="git", command=(str(bin / "mcp-server-git"), "-r", str(repo))),
        scripted("everything", "stdio", options=every),
        scripted("filesystem"),
        scripted("memory", env={"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")}),
    )
    return HostConfig(servers={entry.name: entry for entry in entries})
