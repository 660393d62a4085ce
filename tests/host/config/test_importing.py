"""Taking over the servers of another program."""

import json

import pytest

from isthmus.host.config.importing import (
    IMPORT_SOURCES,
    find_source,
    import_servers,
    write_imported,
)
from isthmus.host.config.load import load_config
from isthmus.host.model.errors import ConfigError


def file(folder, name="theirs.json", **whole):
    """Somebody else's file."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(whole))
    return path


@pytest.mark.parametrize(
    "name", [name for name in IMPORT_SOURCES if name not in {"goose", "codex"}]
)
@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_every_program_is_found_in_its_place(tmp_path, name, platform):
    """Ours: on each system, where the program keeps it."""
    environ = {"HOME": str(tmp_path), "APPDATA": str(tmp_path / "appdata")}
    with pytest.raises(
        ConfigError, match=f"{name} has no configuration here: looked for"
    ) as caught:
        find_source(name, environ, platform)
    place = str(caught.value).partition("looked for ")[2].split(", ")[0]
    path = file(tmp_path, place, mcpServers={"a": {"command": "x"}})

    assert path == find_source(name, environ, platform)


def test_what_is_neither_a_program_nor_a_file_is_told(tmp_path):
    """Ours: with those that are known."""
    with pytest.raises(ConfigError, match="is no file, and none of claude"):
        find_source("emacs", {"HOME": str(tmp_path)})


def test_words_of_others_become_ours(tmp_path):
    """Ours: the URL's name, the tools that Gemini leaves out, names that cannot be here."""
    path = file(
        tmp_path,
        mcpServers={
            "My Server!": {"serverUrl": "https://x", "autoApprove": ["a"]},
            "g": {"command": "x", "excludeTools": ["rm"], "icon": "x"},
            "g ": {"command": "y"},
            "no": 1,
            "lost": {"command": "x", "timeout": 5},
        },
    )
    taken = import_servers(path)

    assert {
        "My-Server": {"url": "https://x"},
        "g": {"command": "x", "host": {"tools": {"exclude": ["rm"]}}},
        "g-2": {"command": "y"},
    } == taken.servers
    notes = "\n".join(taken.notes)
    assert [True] * 5 == [
        said in notes
        for said in (
            "'My-Server!' is called 'My-Server' here",
            "autoApprove mean nothing here",
            "icon mean nothing here",
            "the second is called g-2",
            "'My Server!' is called 'My-Server!' here",
        )
    ]
    assert ["lost", "no"] == sorted(taken.refused)
    assert "a server is an object" in taken.refused["no"]


def test_keys_in_clear_are_told_and_not_shown(tmp_path):
    """Ours: a good moment to move them."""
    taken = import_servers(
        file(tmp_path, mcpServers={"a": {"command": "x", "env": {"K_TOKEN": "canary", "B": "1"}}})
    )

    assert 1 == len(taken.notes)
    assert "isthmus config secret set a/K_TOKEN" in taken.notes[0]
    assert "canary" not in taken.notes[0]


def test_servers_are_written_beside_those_that_are_there(tmp_path):
    """Ours: none is replaced, inputs come along, and the result can be loaded."""
    ours = tmp_path / "ours.json"
    ours.write_text('{\n  // mine\n  "mcpServers": {"a": {"command": "mine"}}\n}')
    theirs = file(
        tmp_path,
        servers={"a": {"command": "theirs"}, "b": {"command": "${input:x}"}},
        inputs=[{"id": "x", "default": "prog"}],
    )
    taken = import_servers(theirs)
    written = write_imported(taken, ours)
    config = load_config(ours, folder=tmp_path, environ={}, managed=tmp_path / "m")

    assert ["b"] == written
    assert {"a": ("mine",), "b": ("prog",)} == {n: e.command for n, e in config.servers.items()}
    assert "// mine" in ours.read_text()
    assert "has a server 'a' already, which stays" in taken.notes[0]
    assert [] == write_imported(taken, ours)


def test_a_file_of_ours_keeps_what_is_ours(tmp_path):
    """Ours: options come along, but for the word that a server can be trusted."""
    options = {"host": {"start": "eager"}}
    vouched = {"host": {"start": "eager", "trust": "full"}}
    servers = {"a": {"command": "x"} | options, "b": {"command": "x"} | vouched}
    taken = import_servers(file(tmp_path, mcpServers=servers))

    assert [options | {"command": "x"}] * 2 == [taken.servers["a"], taken.servers["b"]]
    assert ["b: host.trust is left out: it is yours to say in your own file"] == taken.notes
