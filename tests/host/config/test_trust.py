"""Trust in workspaces."""

import asyncio
import json

import pytest

from isthmus.host.config.files import read_document
from isthmus.host.config.load import load_config
from isthmus.host.config.trust import TrustReader, TrustStore, load_trusted_config
from isthmus.host.config.watch import watch_config
from isthmus.host.state.database import HostState


@pytest.fixture
async def trust():
    state = HostState(None)
    yield TrustStore(state)
    await state.close()


def write(folder, **servers):
    """The file of a workspace."""
    path = folder / "mcp.json"
    path.write_text(json.dumps({"mcpServers": servers}))
    return path


def trusted(folder, trust):
    """Which servers may start something."""
    config = load_config(
        folder=folder, environ={"HOME": str(folder / "home")}, managed=folder / "m", trusted=trust
    )
    return {name for name, entry in config.servers.items() if entry.trusted}


@pytest.mark.covers("hostconfig.trust.changed-inert")
async def test_what_is_changed_or_new_is_inert_again(trust, tmp_path):
    """Ours: trust is for what was seen; the rest of the file stays trusted."""
    work = tmp_path / "work"
    work.mkdir()
    path = write(work, a={"command": "a"}, b={"command": "b"})
    before = trusted(work, trust)
    await trust.trust(str(work), [read_document(path)])
    then = trusted(work, trust)
    write(work, a={"command": "a"}, b={"command": "evil"}, c={"command": "c"})

    assert (set(), {"a", "b"}, {"a"}) == (before, then, trusted(work, trust))


@pytest.mark.covers("hostconfig.trust.changed-inert")
async def test_an_input_that_changes_counts_as_a_change(trust, tmp_path):
    """Ours: its default may be what runs."""
    path = tmp_path / "mcp.json"
    whole = {
        "servers": {"a": {"command": "${input:x}"}},
        "inputs": [{"id": "x", "default": "good"}],
    }
    path.write_text(json.dumps(whole))
    await trust.trust(str(tmp_path), [read_document(path)])
    first = trusted(tmp_path, trust)
    whole["inputs"][0]["default"] = "evil"
    path.write_text(json.dumps(whole))

    assert ({"a"}, set()) == (first, trusted(tmp_path, trust))


async def test_trust_ends(trust, tmp_path):
    """Ours: what was given can be taken back, and nothing else is trusted by it."""
    path = write(tmp_path, a={"command": "a"})
    await trust.trust(str(tmp_path), [read_document(path)])

    assert await trust.untrust(str(tmp_path))
    assert not await trust.untrust(str(tmp_path))
    assert set() == trusted(tmp_path, trust)


@pytest.mark.covers("hostconfig.trust.changed-inert")
async def test_trust_outlives_the_host(tmp_path):
    """Ours: it is a row, and another process sees it."""
    path = write(tmp_path, a={"command": "a"})
    for step in ("trust", "look"):
        state = HostState(tmp_path / "state")
        trust = TrustStore(state)
        await trust.load()
        if step == "trust":
            await trust.trust(str(tmp_path), [read_document(path)])
        else:
            assert {"a"} == trusted(tmp_path, trust)
        await state.close()


@pytest.mark.covers("hostconfig.trust.changed-inert")
async def test_a_host_that_runs_sees_what_is_trusted_meanwhile(tmp_path):
    """Ours: a second process trusts, and the configuration that is followed is another one."""
    work, environ = tmp_path / "work", {"HOME": str(tmp_path)}
    work.mkdir()
    path = write(work, a={"command": "a"})
    state = HostState(tmp_path / "state")
    found = TrustReader(tmp_path / "state")
    where = {"folder": work, "environ": environ, "managed": tmp_path / "m", "trusted": found}
    since = load_config(**where)
    configs = watch_config(**where, since=since)
    following = asyncio.ensure_future(anext(configs))
    await TrustStore(state).trust(str(work), [read_document(path)])
    config = await following
    await configs.aclose()
    await state.close()

    assert not since.servers["a"].trusted
    assert config.servers["a"].trusted


@pytest.mark.covers("hostconfig.trust.changed-inert")
def test_where_trust_cannot_be_read_there_is_none(tmp_path):
    """Ours: no state yet, and one that is no database."""
    trusted = TrustReader(tmp_path)
    assert not trusted.allows("/a", "b", "c")
    (tmp_path / "host.db").write_text("no database")

    assert not trusted.allows("/a", "b", "c")


async def test_the_state_that_the_users_file_names_is_the_one_that_is_asked(tmp_path):
    """Ours: a workspace cannot bring a state of its own in which it is trusted."""
    work, conf = tmp_path / "work", tmp_path / "conf" / "isthmus"
    work.mkdir()
    conf.mkdir(parents=True)
    path = write(work, a={"command": "a"})
    (conf / "mcp.json").write_text(json.dumps({"host": {"state": str(tmp_path / "state")}}))
    state = HostState(tmp_path / "state")
    await TrustStore(state).trust(str(work), [read_document(path)])
    await state.close()
    environ = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "conf")}
    config, place = load_trusted_config(folder=work, environ=environ)

    assert tmp_path / "state" == place
    assert config.servers["a"].trusted
