"""isthmus chat in a pipe: which model, which exit code, and what goes where."""

import io
import json

import pytest

from isthmus.cli.commands.chat import ChatOptions, list_chat_models, parse_provider, run_chat
from isthmus.cli.exit_codes import Exit
from isthmus.errors import UsageError
from isthmus.host import Host
from isthmus.host.providers.anthropic import Anthropic
from isthmus.host.providers.openai_compatible import OpenAICompatible
from isthmus.host.providers.scripted import Scripted
from isthmus.host.sampling.models import Model, Models


@pytest.fixture
def wanted(tmp_path, monkeypatch):
    """A conversation in a pipe, with no servers: its lines and the script's steps are given."""
    (tmp_path / "mcp.json").write_text('{"mcpServers": {}}')

    def made(lines, steps, **more):
        (tmp_path / "script.json").write_text(json.dumps(steps))
        monkeypatch.setattr("sys.stdin", io.StringIO(lines))
        files = {"config": (str(tmp_path / "mcp.json"),), "state": str(tmp_path / "state")}
        return ChatOptions(provider=f"scripted:{tmp_path / 'script.json'}", **files, **more)

    return made


@pytest.mark.covers("hostchat.plain.pipe")
async def test_a_pipe_gets_the_words_of_the_model_and_nothing_else(wanted, capsys):
    """Ours: everything else is on standard error."""
    code = await run_chat(wanted("hello\n/model\n", ["Hi there."]))

    said = capsys.readouterr()
    assert (Exit.OK, "Hi there.\n") == (code, said.out)
    assert "> scripted" in said.err


async def test_no_answer_is_an_exit_code(wanted, capsys):
    """Ours: a script that uses this can tell."""
    code = await run_chat(wanted("hello\n", [{"fail": "nobody there"}]))

    assert Exit.TOOL_FAILED == code
    assert "No answer: nobody there" in capsys.readouterr().err


async def test_a_model_that_is_not_there_is_an_error_with_those_that_are(wanted):
    """Ours: it says what may be said instead."""
    with pytest.raises(UsageError, match="no model is known: say --provider openai:URL"):
        await run_chat(ChatOptions(config=wanted("", []).config, state=wanted("", []).state))
    with pytest.raises(UsageError, match="there is no provider 'nobody'"):
        await run_chat(
            ChatOptions(config=wanted("", []).config, state=wanted("", []).state, provider="nobody")
        )


def test_providers_are_named_with_what_they_need():
    """Ours: keys are in the environment, never on the command line."""
    assert isinstance(parse_provider("openai:http://127.0.0.1:1/v1", {}), OpenAICompatible)
    assert isinstance(parse_provider("anthropic", {"ANTHROPIC_API_KEY": "k"}), Anthropic)
    assert None is parse_provider("of-the-file", {})
    for spec, wrong in (
        ("openai:", "URL"),
        ("anthropic", "ANTHROPIC_API_KEY"),
        ("scripted:", "directory"),
    ):
        with pytest.raises(UsageError, match=wrong):
            parse_provider(spec, {})


async def test_models_of_the_file_are_those_that_can_be_reached():
    """Ours: what is switched off, or has no provider, is not offered."""
    here = Scripted("hi", name="here")
    models = Models(
        [
            Model(id="off", provider="here", enabled=False),
            Model(id="small", provider="here", remote="small-1"),
            Model(id="large", provider="here"),
            Model(id="lost", provider="nowhere"),
        ]
    )
    async with Host(models=models, providers={"here": here}) as host:
        found, first = list_chat_models(host, "", "")
        _, chosen = list_chat_models(host, "here", "large")
        with pytest.raises(UsageError, match="there is no model 'off': small, large"):
            list_chat_models(host, "", "off")

    assert ({"small": "small-1", "large": "large"}, "small", "large") == (
        {id: voice.model for id, voice in found.items()},
        first,
        chosen,
    )


async def test_faults_of_the_configuration_are_printed_at_the_beginning(wanted, capsys, tmp_path):
    """Ours: a policy that cannot be read is locked down, and nobody has to guess why."""
    (tmp_path / "bad.toml").write_text("nonsense = 1")
    said = wanted("hello\n", ["Hi."], policy=str(tmp_path / "bad.toml"))
    (tmp_path / "mcp.json").write_text('{"mcpServers": {"odd": {"command": 3}}}')

    await run_chat(said)

    shown = capsys.readouterr().err
    assert "bad.toml" in shown
    assert "  ! odd: " in shown
