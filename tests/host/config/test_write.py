"""Writing a configuration."""

import json
import stat
from pathlib import Path

import pytest

from isthmus.host.config.write import ConfigFile, add_server, remove_server, set_option
from isthmus.host.model.errors import ConfigError


def names(folder):
    """What a folder has."""
    return [path.name for path in folder.iterdir()]


@pytest.mark.covers("hostconfig.write.atomic-private")
def test_a_new_file_is_its_owners_alone(tmp_path):
    """Ours: keys stand in it; and nothing is left beside it."""
    path = tmp_path / "new" / "mcp.json"
    add_server(path, "time", {"command": "uvx", "args": ["mcp-server-time"]})

    assert 0o600 == stat.S_IMODE(path.stat().st_mode)
    assert ["mcp.json"] == names(path.parent)
    assert '{\n  "mcpServers": {\n    "time": {' in path.read_text()


@pytest.mark.covers("hostconfig.write.atomic-private")
def test_a_file_keeps_its_mode_and_its_link(tmp_path):
    """Ours: what people arranged stays."""
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    real.write_text("{}")
    real.chmod(0o640)
    link.symlink_to(real)
    add_server(link, "a", {"command": "x"})

    assert 0o640 == stat.S_IMODE(real.stat().st_mode)
    assert link.is_symlink()


@pytest.mark.covers("hostconfig.write.outside-edit")
@pytest.mark.parametrize("name", ["a.json", "a.toml"])
def test_what_somebody_else_wrote_meanwhile_is_not_overwritten(tmp_path, name):
    """Ours: an editor that is open loses nothing."""
    path = tmp_path / name
    path.write_text("") if name.endswith("toml") else path.write_text("{}")
    file = ConfigFile(path)
    file.set(("mcpServers", "a"), {"command": "x"})
    theirs = path.read_text() + "\n"
    path.write_text(theirs)

    with pytest.raises(ConfigError, match="changed by another program in the meantime"):
        file.save()
    assert (theirs, [name]) == (path.read_text(), names(tmp_path))


@pytest.mark.covers("hostconfig.write.outside-edit")
def test_a_file_that_came_up_or_went_meanwhile_is_left_too(tmp_path):
    """Ours: both are edits of somebody's."""
    new, gone = tmp_path / "new.json", tmp_path / "gone.json"
    gone.write_text("{}")
    files = [ConfigFile(new), ConfigFile(gone)]
    new.write_text("{}")
    gone.unlink()
    for file in files:
        file.set(("a",), 1)
        with pytest.raises(ConfigError, match="in the meantime"):
            file.save()


@pytest.mark.covers("hostconfig.write.only-what-was-told")
def test_toml_keeps_its_comments(tmp_path):
    """Ours: in both syntaxes."""
    path = tmp_path / "mcp.toml"
    path.write_text('# mine\n[mcpServers.a] # first\ncommand = "x"\nother = 1 # not ours\n')
    add_server(path, "b", {"command": "y", "env": {"A": "1"}, "cwd": None})
    set_option(path, "a", "enabled", False)

    assert path.read_text().startswith("# mine\n[mcpServers.a] # first\n")
    assert "other = 1 # not ours" in path.read_text()
    assert remove_server(path, "a")
    assert {"mcpServers": {"b": {"command": "y", "env": {"A": "1"}}}} == ConfigFile(
        path
    ).document.value


def test_a_server_is_added_where_the_file_has_them(tmp_path):
    """Ours: VS Code's word in VS Code's file."""
    path = tmp_path / "mcp.json"
    path.write_text('{"servers": {}}')
    add_server(path, "a", {"command": "x"})

    assert {"servers": {"a": {"command": "x"}}} == ConfigFile(path).document.value


def test_a_server_is_not_added_twice_nor_under_a_bad_name(tmp_path):
    """Ours: what is there is not overwritten."""
    path = tmp_path / "mcp.json"
    path.write_text('{"mcpServers": {"a": {"command": "x"}}}')

    with pytest.raises(ConfigError, match=r"mcp\.json:1:17: there is a server 'a' already"):
        add_server(path, "a", {"command": "y"})
    with pytest.raises(ConfigError, match="is no name for a server"):
        add_server(path, "a b", {"command": "y"})


def test_options_are_written_beside_what_is_there(tmp_path):
    """Ours: switching a server off touches nothing else."""
    path = tmp_path / "mcp.json"
    path.write_text('{"mcpServers": {"a": {"command": "x", "host": {"start": "eager"}}}}')
    set_option(path, "a", "enabled", False)

    host = {"start": "eager", "enabled": False}
    assert host == ConfigFile(path).document.value["mcpServers"]["a"]["host"]
    with pytest.raises(ConfigError, match="has no server 'b'"):
        set_option(path, "b", "enabled", False)


def test_removing_what_is_not_there_writes_nothing(tmp_path):
    """Ours: the file stays as it is."""
    path = tmp_path / "mcp.json"
    path.write_text("{}")
    before = path.stat().st_mtime_ns

    assert before == path.stat().st_mtime_ns
    assert not remove_server(path, "a")


def test_a_file_that_cannot_be_written_is_told(tmp_path):
    """Ours: the change is not lost silently."""
    blocked = tmp_path / "file"
    blocked.write_text("")
    file = ConfigFile(Path(blocked, "mcp.json"))

    with pytest.raises(ConfigError, match="cannot be"):
        file.save()


def test_what_is_no_object_is_not_overwritten(tmp_path):
    """Ours: a list where servers should be is somebody's."""
    path = tmp_path / "mcp.json"
    path.write_text('{"a": []}')

    with pytest.raises(ConfigError, match="a is no object"):
        ConfigFile(path).set(("a", "b"), 1)


def test_a_server_is_changed_by_the_name_it_has_here(tmp_path):
    """Ours: blanks of a file are dashes here, and both mean the same entry."""
    path = tmp_path / "a.json"
    path.write_text('{"mcpServers": {"My Server": {"command": "x"}}}')
    set_option(path, "My-Server", "enabled", False)

    assert {"My Server": {"command": "x", "host": {"enabled": False}}} == json.loads(
        path.read_text()
    )["mcpServers"]
    assert remove_server(path, "My-Server")
    assert not remove_server(path, "My-Server")
