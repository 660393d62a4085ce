"""Following the files of a configuration."""

import asyncio

import pytest

from isthmus.host.config.load import load_config
from isthmus.host.config.watch import watch_config

WHOLE = '{"mcpServers": {"%s": {"command": "x"}}}'


@pytest.mark.covers("hostconfig.file.half-saved")
async def test_a_file_saved_half_way_changes_nothing(tmp_path):
    """Ours: the last whole one stays, it is said once why, and the next whole one counts."""
    path = tmp_path / "mcp.json"
    path.write_text(WHOLE % "a")
    said, heard = [], asyncio.Event()

    def say(sentence):
        said.append(sentence)
        heard.set()

    since = load_config(path, folder=tmp_path, managed=tmp_path / "m")
    configs = watch_config(path, folder=tmp_path, managed=tmp_path / "m", since=since, report=say)
    first = asyncio.ensure_future(anext(configs))
    path.write_text(WHOLE[:12])
    await heard.wait()
    waiting = not first.done()
    path.write_text(WHOLE % "b")
    config = await first
    await configs.aclose()

    assert ["b"] == list(config.servers)
    assert waiting
    assert 1 == len(said)
    assert "the configuration stays as it was" in said[0]


async def test_a_file_that_comes_up_is_seen(tmp_path):
    """Ours: also in a folder that is not there yet."""
    environ = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "conf")}
    where = {"folder": tmp_path / "work", "environ": environ, "managed": tmp_path / "m"}
    configs = watch_config(**where, since=load_config(**where))
    first = asyncio.ensure_future(anext(configs))
    (tmp_path / "conf" / "isthmus").mkdir(parents=True)
    (tmp_path / "conf" / "isthmus" / "mcp.json").write_text(WHOLE % "a")
    config = await first
    await configs.aclose()

    assert ["a"] == list(config.servers)


async def test_what_means_the_same_is_no_change(tmp_path):
    """Ours: a comment restarts no server."""
    path = tmp_path / "mcp.json"
    path.write_text(WHOLE % "a")
    since = load_config(path, folder=tmp_path, managed=tmp_path / "m")
    path.write_text("// c\n" + WHOLE % "a")
    configs = watch_config(path, folder=tmp_path, managed=tmp_path / "m", since=since)
    first = asyncio.ensure_future(anext(configs))
    path.write_text(WHOLE % "b")
    config = await first
    await configs.aclose()

    assert ["b"] == list(config.servers)
