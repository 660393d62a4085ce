"""Launched servers that misbehave: what they cost, and that they end."""

import asyncio
import os
import sys

import pytest
from msgspec import structs

from isthmus import Client
from isthmus.client.model.limits import Limits
from isthmus.host.model.entries import HostConfig, ServerEntry, ServerOptions
from isthmus.host.model.errors import OutcomeUnknown, ServerUnavailable
from isthmus.host.supervisor.hosted_server import describe_place
from isthmus.host.supervisor.supervisor import Supervisor
from isthmus.host.supervisor.targets import make_target
from isthmus.store.meter import Rate
from isthmus.testing.faults import until
from isthmus.transports import process
from isthmus.wire import LogMessageParams

SERVER = """
import json, sys, time

def say(**members):
    print(json.dumps({"jsonrpc": "2.0", **members}), flush=True)

def answer(message):
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        say(id=id, result={"protocolVersion": "2025-11-25", "serverInfo": {"name": "s",
            "version": "1"}, "capabilities": {"tools": {}, "logging": {}}})
    elif id is not None:
        BEFORE
        say(id=id, result={"content": [{"type": "text", "text": "done"}]})

for line in sys.stdin:
    answer(json.loads(line))
AFTER
"""


def entry(name, before="pass", after="", **options):
    code = SERVER.replace("BEFORE", before).replace("AFTER", after)
    command = (sys.executable, "-I", "-S", "-c", code)
    return ServerEntry(name=name, command=command, options=ServerOptions(era="legacy", **options))


def supervisor_of(*servers, **client):
    config = HostConfig(servers={server.name: server for server in servers})
    made = Supervisor(
        config,
        lambda entry, _isolation: Client(
            make_target(entry), on_log=made.servers[entry.name].keep_log, **client
        ),
    )
    return made


def deep(depth):
    value = "x"
    for _ in range(depth):
        value = [value]
    return value


async def call(supervisor, name):
    async with supervisor.use(name) as client:
        return (await client.call_tool("anything")).text


@pytest.mark.covers("hostservers.flood.bounded")
async def test_floods_of_logs_and_last_words_cost_a_bounded_share():
    """Ours: the last of both are kept, and reading what is dropped is paused."""
    logs = 'say(method="notifications/message", params={"level": "info", "data": "x" * 90})'
    before = f"[{logs} for _ in range(2000)]; print('y' * 300_000, file=sys.stderr, flush=True)"
    loop = asyncio.get_running_loop()
    few = Limits(log_messages=Rate(20, 3600))
    async with supervisor_of(entry("a", before), entry("b"), limits=few) as supervisor:
        assert "done" == await call(supervisor, "b")
        began = loop.time()
        assert "done" == await call(supervisor, "a")
        assert loop.time() - began >= 0.1
        server = supervisor.servers["a"]
        logged = [line for line in server.log if line.startswith("info: ")]
        assert 20 == len(logged)
        assert sum(map(len, server.log)) < 100_000


@pytest.mark.covers("hostservers.flood.bounded")
@pytest.mark.parametrize(
    ("logger", "data"),
    [
        ("l" * 1_000_000, "x"),
        ("l", "x" * 1_000_000),
        ("l", ["x" * 1_000] * 1_000),
        ("l", {str(n): n for n in range(100_000)}),
        ("l", deep(5_000)),
    ],
    ids=["logger", "text", "list", "object", "depth"],
)
async def test_of_a_log_message_little_is_kept_whatever_is_large_in_it(logger, data):
    """Ours: the name of a logger is a text of the server's, too; what it logs may be any JSON."""
    async with supervisor_of(entry("a")) as supervisor:
        server = supervisor.servers["a"]
        server.keep_log(LogMessageParams(level="info", logger=logger, data=data))

        assert [True] == [line.startswith("info l") for line in server.log]
        assert 700 > len(server.log[0])


@pytest.mark.covers("hostservers.flood.bounded")
async def test_of_what_a_server_calls_itself_little_is_shown():
    """Ours: its name and version are for a line of a table."""
    loud = entry("a")
    code = loud.command[-1].replace('"name": "s"', '"name": "s" * 1_000_000')
    loud = structs.replace(loud, command=(*loud.command[:-1], code))
    async with supervisor_of(loud) as supervisor:
        assert "done" == await call(supervisor, "a")
        said = supervisor.servers["a"].status().said

    assert "s" * 20 == said[:20]
    assert 200 > len(said)


@pytest.mark.covers("hostservers.end.stubborn")
async def test_a_server_that_ignores_the_end_of_its_input_is_ended(monkeypatch):
    """Ours: stopping means that it is gone."""
    ladder = ((None, 0.1), *process.SHUTDOWN_STEPS[1:])
    monkeypatch.setattr(process, "SHUTDOWN_STEPS", ladder)
    async with supervisor_of(entry("a", after="time.sleep(600)")) as supervisor:
        await call(supervisor, "a")
        pid = supervisor.servers["a"].status().pid
        await supervisor.servers["a"].stop()
        assert "idle" == supervisor.servers["a"].state
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.covers("hostservers.junk.passed-over")
async def test_junk_on_standard_output_is_passed_over():
    """Ours: a banner does not end a connection."""
    async with supervisor_of(entry("a", "print('Welcome!\\x00', flush=True)")) as supervisor:
        assert "done" == await call(supervisor, "a")


@pytest.mark.covers("hostservers.crash.words")
async def test_the_last_words_of_a_server_that_crashes_are_kept_and_said():
    """Ours: why it does not start is in its own words, without its colours."""
    crash = "sys.exit('\\x1b[31mno licence')"
    async with supervisor_of(entry("a", before=crash), entry("b")) as supervisor:
        async with supervisor.use("a"):
            pass
        with pytest.raises(OutcomeUnknown, match="no licence"):
            await call(supervisor, "a")
        server = supervisor.servers["a"]
        await until(lambda: server.state != "ready")
        assert ["no licence"] == server.stderr
        assert "no licence" in server.status().error
        assert "done" == await call(supervisor, "b")


async def test_a_command_that_is_not_there_says_so_and_ends_in_failed():
    """Ours: a mistyped command is not tried for ever."""
    missing = ServerEntry(name="a", command=("is-not-there-at-all",))
    config = HostConfig(servers={"a": missing})
    supervisor = Supervisor(
        config, lambda entry, _isolation: Client(make_target(entry)), random=lambda: 0.0
    )
    async with supervisor:
        with pytest.raises(ServerUnavailable, match="no such command: 'is-not-there-at-all'"):
            await call(supervisor, "a")
        await until(lambda: supervisor.servers["a"].state == "failed")


async def test_what_is_shown_of_a_server_holds_no_secret():
    """Ours: a password in a URL or a key in an argument is not on any screen."""
    from isthmus.auth.tokens.secret import Secret

    key = Secret("hunter2-hunter2-hunter2")
    config = HostConfig(
        servers={
            "web": ServerEntry(name="web", kind="http", url="https://ada:pw@a.example/mcp?k=v"),
            "run": ServerEntry(name="run", command=("run", "--key", key.reveal()), secrets=(key,)),
            "here": ServerEntry(name="here"),
        }
    )
    supervisor = Supervisor(config, lambda entry, _isolation: Client(make_target(entry)))
    shown = {name: server.status().where for name, server in supervisor.servers.items()}
    assert {
        "web": "https://a.example/mcp?…",
        "run": "run --key [redacted]",
        "here": "in this process",
    } == shown


LITERAL = {
    "run": ("run", "--token", "hunter", "--header", "Authorization: Bearer hunter"),
    "userinfo": ("run", "postgres://ada:hunter@db.example/app"),
    "shell": ("sh", "-c", "exec run --password hunter"),
    "user": ("run", "-u", "ada:hunter"),
}


@pytest.mark.parametrize("command", LITERAL.values(), ids=LITERAL)
def test_a_secret_that_stands_in_a_command_is_not_shown_with_a_server(command):
    """Ours: it was written into a file by hand, so nothing else knows that it is one."""
    shown = describe_place(ServerEntry(name="a", command=command))

    assert "hunter" not in shown
    assert command[0] in shown


def test_a_secret_in_an_address_is_not_shown_with_a_server():
    """Ours: neither userinfo nor query, nor a key in the path."""
    key = "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY"
    url = f"https://ada:hunter@x.example/{key}/mcp?token=hunter"
    shown = describe_place(ServerEntry(name="a", kind="http", url=url))

    assert "https://x.example/[redacted]?…" == shown or "hunter" not in shown
    assert key not in shown


async def test_a_server_that_fails_tells_its_error_and_log_without_secrets():
    """Ours: what it was started with, and what it wrote to standard error."""
    said = (
        "import sys; sys.exit('cannot log in with --password hunter, Authorization: Bearer hunter')"
    )
    command = (sys.executable, "-c", said, "--token", "hunter")
    supervisor = supervisor_of(ServerEntry(name="bad", command=command))
    hosted = supervisor.servers["bad"]
    with pytest.raises(ServerUnavailable) as failed:
        await hosted.start()
    told = f"{failed.value} {hosted.status()} {hosted.log}"
    await supervisor.close()

    assert "hunter" not in told
    assert "cannot log in" in told
