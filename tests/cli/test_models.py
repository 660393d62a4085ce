"""``isthmus models``: what there is, whether the file is right, and which one would be chosen."""

import asyncio
import json
import threading

import pytest

from isthmus.cli.main import main
from isthmus.host.sampling.models import EXAMPLE_FILE, Models
from support.host.fake_models import fake_models


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A user without any configuration, in a folder of their own."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("FARAWAY_API_KEY", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def isthmus(capsys):
    """Runs a command; gives its exit code, and what it wrote to both outputs."""

    def run(*words):
        with pytest.raises(SystemExit) as left:
            main(["models", *words])
        out, err = capsys.readouterr()
        return int(left.value.code or 0), out, err

    return run


@pytest.fixture
def fake():
    """A provider in a thread: commands have an event loop of their own."""
    loop, ready, asked = asyncio.new_event_loop(), threading.Event(), []

    async def serve(done):
        async with fake_models() as fake:
            asked.append(fake)
            ready.set()
            await done.wait()

    done = asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(serve(done)))
    thread.start()
    assert ready.wait(10)
    yield asked[0]
    loop.call_soon_threadsafe(done.set)
    thread.join(10)
    loop.close()


def test_the_first_file_is_an_example_that_is_right(home, isthmus):
    """Ours: from nothing to a checked file in two commands."""
    code, _, err = isthmus("list")
    assert 2 == code
    assert "isthmus models example > models.toml" in err
    code, out, _ = isthmus("example")
    assert (0, EXAMPLE_FILE.read_text()) == (code, out)
    (home / "models.toml").write_text(out)
    assert (0, "", "models.toml: 3 models, 2 of them enabled\n") == isthmus("check")


def test_models_are_listed_with_what_is_known_of_them(home, isthmus):
    """Ours: a line each, and a question mark for what nobody knows."""
    (home / "models.toml").write_text(EXAMPLE_FILE.read_text())
    _, out, _ = isthmus("list")
    assert "mountain-2  faraway   200000   12/60     ?      95" in out
    assert "disabled tools large" in out
    listed = json.loads(isthmus("list", "--json")[1])
    assert ["pebble", "boulder-2", "mountain-2"] == [model["id"] for model in listed]


def test_the_choice_is_explained(home, isthmus):
    """Ours: the same function that chooses for servers, on the command line."""
    (home / "models.toml").write_text(EXAMPLE_FILE.read_text())
    code, out, err = isthmus("select", "--hint", "opus", "--hint", "sonnet", "--cost", "1")
    assert (0, "boulder-2\n") == (code, out)
    assert "hint (models that do as well): sonnet\n" in err
    assert "mountain-2: not possible: disabled in the catalog\n" in err
    assert "pebble\n" == isthmus("select", "--speed", "0.5", "--cost", "1")[1]
    code, out, err = isthmus("select", "--image", "--tokens", "1000000")
    assert (1, "") == (code, out)
    assert err.endswith("no permitted model\n")
    selection = json.loads(isthmus("select", "--tools", "--json")[1])
    assert "boulder-2" == selection["model"]["id"]


def test_a_fault_of_the_file_has_line_and_key(home, isthmus):
    """Ours: a file that cannot be is an error with its place; a model needs its provider."""
    (home / "models.toml").write_text('[[model]]\nid = "a"\nprovider = "b"\ncontext = "x"\n')
    code, _, err = isthmus("check")
    assert 2 == code
    assert "models.toml, line 4: model 'a', context: Expected" in err
    (home / "other.toml").write_text('[[model]]\nid = "a"\nprovider = "b"\n')
    code, out, _ = isthmus("check", "--file", "other.toml")
    assert (1, "other.toml: model 'a': there is no [providers.b]\n") == (code, out)


def test_the_configuration_names_the_file(home, isthmus):
    """Ours: what the host uses is what the command shows."""
    (home / "config" / "isthmus").mkdir(parents=True)
    config = {"mcpServers": {}, "host": {"models": "./mine.toml"}}
    (home / "config" / "isthmus" / "mcp.json").write_text(json.dumps(config))
    (home / "config" / "isthmus" / "mine.toml").write_text(EXAMPLE_FILE.read_text())
    assert 0 == isthmus("list")[0]


def test_models_of_a_provider_are_written_into_the_file(home, isthmus, fake):
    """Ours: new models come disabled, what stands in the file stays, and a second time adds none."""
    path = home / "models.toml"
    path.write_text(
        f'# mine\n[providers.local]\nbase_url = "{fake.url}/v1"\n\n'
        '[[model]]\nid = "old"\nprovider = "local"\n'
        '[[model]]\nid = "new"\nprovider = "else"\n[providers.else]\nbase_url = "http://x"\n'
    )
    listed = {"data": [{"id": "old"}, {"id": "new", "context_length": 9}]}
    for _ in range(3):
        fake.refuse(200, listed)
    code, out, _ = isthmus("sync", "local")
    assert (0, "new\n") == (code, out)
    models = Models.read(path)
    added = models["local/new"]
    assert ("new", 9, False) == (added.called, added.context, added.enabled)
    assert path.read_text().startswith("# mine\n")
    assert (0, "") == isthmus("sync", "local")[:2]
    code, _, err = isthmus("sync", "nobody")
    assert 2 == code
    assert "no [providers.nobody]; there are: local, else" in err
    path.write_text(path.read_text().split('[[model]]\nid = "new"')[0])
    assert (0, "") == isthmus("check", "--ask")[:2]
    fake.refuse(200, {"data": []})
    code, out, _ = isthmus("check", "--ask")
    assert (1, "model 'old': provider 'local' has no 'old'\n") == (code, out)
