"""Servers launched as processes: talking to them, and every way they can misbehave."""

import asyncio
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import msgspec
import pytest

from isthmus import Client
from isthmus.errors import ConnectFailed, ConnectionLost
from isthmus.runtime.channel import Outgoing
from isthmus.transports import command, process
from isthmus.transports.command import Command, CommandChannel
from isthmus.transports.pipes import MAX_UNSENT_BYTES

EVERY_LOOP = True

ECHO = """
    import sys
    for line in sys.stdin.buffer:
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
"""

STUBBORN = """
    import os, signal, subprocess, sys, time
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen(["sleep", "60"])
    print('{"server": %d, "child": %d}' % (os.getpid(), child.pid), flush=True)
    while True:
        time.sleep(60)
"""
"""It heeds neither the end of its input nor SIGTERM, and has a child that heeds no input."""


@pytest.fixture
def script(tmp_path):
    """A command that runs the text of a Python script; it starts fast, without site packages."""

    def write(text, *, before=(), **options):
        path = tmp_path / f"server{len(list(tmp_path.iterdir()))}.py"
        path.write_text(dedent(text))
        return Command(*before, sys.executable, "-S", "-E", path, **options)

    return write


@pytest.fixture
async def launch(script):
    """A channel to a server given as the text of a Python script, closed when the test is over."""
    channels = []

    def start(text, *, on_stderr=None, limit=64 * 1024 * 1024, **options):
        server = script(text, **options)
        channels.append(CommandChannel(server, on_stderr=on_stderr, limit=limit))
        return channels[-1]

    yield start
    for channel in channels:
        await channel.close()


@pytest.fixture
def watch():
    """A handle on a process that tells whether it has ended, without being its parent."""
    handles = []

    def open_handle(pid):
        handles.append(os.pidfd_open(pid))
        return handles[-1]

    yield open_handle
    for handle in handles:
        os.close(handle)


def has_ended(handle, seconds=0):
    """Whether the process ends within so many seconds."""
    return bool(select.select([handle], [], [], seconds)[0])


async def read_message(channel):
    """The next message, decoded."""
    return msgspec.json.decode((await channel.receive()).data)


async def lost(channel):
    """The words with which the channel says that the server is gone."""

    async def receive_all():
        while await channel.receive() is not None:
            pass

    with pytest.raises(ConnectionLost) as caught:
        await receive_all()
    return str(caught.value)


def ours():
    """The descriptors and the children of this process."""
    children = [file.read_text() for file in Path("/proc/self/task").glob("*/children")]
    begun = sorted(one for one in children if one)  # threads of others end as they like
    return sorted(os.listdir("/proc/self/fd")), begun  # noqa: PTH208 - no files


# Talking


def test_a_call_cannot_be_abandoned_without_a_word():
    """Spec: to cancel over stdio takes a notification; no stream can be closed instead."""
    assert False is CommandChannel.abandon(None, 1)


@pytest.mark.covers("stdio.client.nothing-but-messages")
async def test_messages_go_there_and_back(launch):
    """Spec: one message per line, in order, both ways."""
    channel = launch(ECHO)

    for number in range(100):
        await channel.send(Outgoing(b"[%d]" % number))
    answers = [(await channel.receive()) for _ in range(100)]

    assert [b"[%d]" % number for number in range(100)] == [answer.data for answer in answers]
    assert {"stdio"} == {answer.origin.transport for answer in answers}


async def test_five_megabytes_in_one_line(launch):
    """Ours: large results pass, in both directions at once."""
    channel = launch(ECHO)
    message = b'["%s"]' % (b"x" * 5_000_000)

    await channel.send(Outgoing(message))

    assert message == (await channel.receive()).data


async def test_invalid_utf8_is_passed_on(launch):
    """Ours: whether bytes are text is for the parser to say."""
    channel = launch(ECHO)

    await channel.send(Outgoing(b'["\xff"]'))

    assert b'["\xff"]' == (await channel.receive()).data


async def test_banners_are_passed_over(launch):
    """Ours: servers print to standard output what does not belong there."""
    channel = launch(r"""
        import sys
        sys.stdout.buffer.write(b'Welcome!\n\n\xef\xbb\xbf{"a": 1}\n  [2]\r\nready > {no}\n{"b": 3}\n')
    """)

    received = [(await channel.receive()).data for _ in range(3)]

    assert [b'{"a": 1}', b"[2]", b'{"b": 3}'] == received


async def test_a_last_message_without_its_newline_counts(launch):
    """Ours: a server that ends without a newline has still said it."""
    channel = launch("""print('{"a": 1}', end="")""")

    assert {"a": 1} == await read_message(channel)
    assert "ended with exit code 0" in await lost(channel)


async def test_standard_error_is_passed_on_line_by_line(launch):
    """Spec: clients MAY capture standard error; whole lines, the last one even without newline."""
    heard = []
    channel = launch(
        r"""
        import sys
        sys.stderr.buffer.write("one\ntw\u00f6\nthr\xff".encode("latin-1"))
        """,
        on_stderr=heard.append,
    )

    await lost(channel)

    assert ["one", "tw�", "thr�"] == heard


async def test_a_flood_on_standard_error_holds_nothing_up(launch):
    """Ours: standard error is always read, and only its end is kept."""
    channel = launch("""
        import sys
        for number in range(40_000):
            print("some noise in line", number, file=sys.stderr)
        sys.stderr.flush()
        print("{}", flush=True)
        sys.stdin.read()
    """)

    assert {} == await read_message(channel)
    await channel.close()
    assert 200 == len(channel.stderr)
    assert "some noise in line 39999" == channel.stderr[-1]


async def test_standard_error_without_newlines_is_bounded(launch):
    """Ours: one endless line on standard error costs no more than many short ones."""
    heard = []
    channel = launch(
        """
        import sys
        sys.stderr.write("x" * 1_000_000 + "end")
        """,
        on_stderr=heard.append,
    )
    words = await lost(channel)

    assert [] == heard
    assert 64 * 1024 == sum(map(len, channel.stderr))
    assert len(words) < 1000


async def test_a_failing_callback_does_not_end_the_connection(launch, caplog):
    """Ours: a bug in what shows the lines is logged, not fatal."""
    channel = launch(
        """
        import sys
        print("boo", file=sys.stderr, flush=True)
        print("{}", flush=True)
        sys.stdin.read()
        """,
        on_stderr=lambda line: line.no_such_thing,
    )

    assert {} == await read_message(channel)
    await channel.close()
    assert ["the callback for standard error failed"] == [r.message for r in caplog.records]


# The start


async def test_a_server_gets_little_of_our_environment(launch, monkeypatch):
    """Ours: keys in our environment are not every server's to read."""
    monkeypatch.setenv("SECRET_KEY", "s3cret")
    monkeypatch.setenv("LC_TIME", "de_DE")
    monkeypatch.setenv("TERM", "() { evil; }")
    channel = launch(
        """
        import json, os
        print(json.dumps(dict(os.environ)))
        """,
        env={"GIVEN": "1", "HOME": "/elsewhere"},
    )

    env = await read_message(channel)

    assert ("1", "/elsewhere", "de_DE") == (env["GIVEN"], env["HOME"], env["LC_TIME"])
    assert os.environ["PATH"] == env["PATH"]
    assert {"SECRET_KEY", "TERM"} & set(env) == set()


async def test_a_server_starts_in_the_directory_it_is_given(launch, tmp_path):
    """Ours: relative paths in its arguments mean what its configuration means."""
    channel = launch("import json, os; print(json.dumps([os.getcwd()]))", cwd=tmp_path)

    assert [str(tmp_path)] == await read_message(channel)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (Command("no-such-program-here"), "is it installed? Searched PATH: /"),
        (Command("npx", "-y", "x", env={"PATH": "/nowhere"}), "it comes with Node.js"),
        (Command("python server.py"), "one by one, like Command('python', 'server.py')"),
        (Command("./no/such/file"), "there is no such file"),
        (Command("/etc/passwd"), "Permission denied"),
        (Command("true", cwd="/no/such/place"), "there is no directory '/no/such/place'"),
        (Command("true", "a\0b"), "embedded null byte"),
    ],
)
async def test_what_cannot_be_run_is_explained(wrong, words):
    """Ours: the message says what is wrong and, where we can know, what to do."""
    with pytest.raises(ConnectFailed) as caught:
        CommandChannel(wrong)

    assert words in str(caught.value)
    assert wrong.argv[0] in str(caught.value)


async def test_a_missing_interpreter_is_explained(tmp_path):
    """Ours: the kernel says "no such file" of a file that is there."""
    file = tmp_path / "server"
    file.write_text("#!/no/such/interpreter\n")
    file.chmod(0o755)

    with pytest.raises(ConnectFailed, match="the interpreter that its first line names"):
        CommandChannel(Command(file))


def test_a_command_is_a_value():
    """Ours: it shows what it runs and keeps its environment to itself."""
    one = Command("uvx", Path("a server"), env={"KEY": "s3cret"})

    assert "Command('uvx', 'a server')" == repr(one)
    assert "uvx 'a server'" == str(one)
    assert one == Command("uvx", "a server", env={"KEY": "s3cret"})
    assert one != Command("uvx", "a server")
    assert one != "uvx"
    assert 1 == len({one, Command("uvx", "a server", env={"KEY": "s3cret"})})


# The end, by the server

FAULTS = {
    "exits": (
        "import sys; print('no database', file=sys.stderr); sys.exit(3)",
        ["ended with exit code 3", "its last words on standard error:\n  | no database"],
    ),
    "is killed": (
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
        ["was killed by SIGKILL"],
    ),
    "dies of a signal without a name": (
        "import os; os.kill(os.getpid(), 40)",
        ["was killed by signal 40"],
    ),
    "prints garbage": (
        "print('Usage:\\x1b[31m serve\\x07 FILE'); print('  try --help')",
        ["what is no JSON-RPC:\n  | Usage: serve FILE\n  |   try --help", "exit code 0"],
    ),
    "stops in the middle of a message": (
        """print('{"jsonrpc": "2.0", "id": 1, "resu', end="")""",
        ['what is no JSON-RPC:\n  | {"jsonrpc": "2.0", "id": 1, "resu', "exit code 0"],
    ),
    "closes its output": (
        "import os, sys; os.close(1); sys.stdin.read()",
        ["closed its end of the connection but is still running"],
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_server_that(launch, fault):
    """Ours (D20): whatever ends the conversation, one typed error tells all that is known."""
    script, expected = FAULTS[fault]
    channel = launch(script)

    words = await lost(channel)

    assert [] == [part for part in [str(channel.command), *expected] if part not in words]


async def test_sending_to_a_server_that_ended_says_why(launch):
    """Ours: whoever calls too late learns the same as whoever was waiting."""
    channel = launch("import sys; sys.exit('bad config')")
    words = await lost(channel)

    with pytest.raises(ConnectionLost) as caught:
        await channel.send(Outgoing(b"{}"))

    assert words == str(caught.value)
    assert "bad config" in words


async def test_sending_to_a_server_that_does_not_read_ends_with_it(launch):
    """Ours (D20): a sender that waits for room is told when there will never be any."""
    channel = launch("import os, time; print(os.read(0, 1)); os._exit(4)")

    with pytest.raises(ConnectionLost, match="exit code 4"):
        await channel.send(Outgoing(b"x" * 5_000_000))


async def test_answers_before_the_exit_are_all_received(launch):
    """Ours: what is in the pipe when the server ends is not lost."""
    channel = launch("print('\\n'.join(f'[{n}]' for n in range(9_000)))")
    await channel._process.wait_exit(5)

    received = [msgspec.json.decode((await channel.receive()).data) for _ in range(9_000)]

    assert [[n] for n in range(9_000)] == received


async def test_a_message_beyond_the_limit_ends_the_conversation(launch):
    """Ours: nobody can say which call it was for, so all of them are told at once."""
    channel = launch("print('[' + '1,' * 5_000 + '1]', flush=True); input()", limit=1000)

    assert "sent a message of 10003 bytes, and the limit is 1000" in await lost(channel)


async def test_the_end_of_a_message_beyond_the_limit_is_not_waited_for(launch):
    """Ours: one that never ends is told at once, and not read for ever."""
    channel = launch("import sys\nwhile True: sys.stdout.write('[' * 9999)", limit=1000)

    assert "bytes, and the limit is 1000" in await lost(channel)


async def test_the_end_does_not_wait_for_whoever_holds_the_pipes(launch, watch):
    """Ours: a grandchild in a session of its own keeps the pipe open, not the client waiting."""
    channel = launch("""
        import subprocess
        child = subprocess.Popen(["sleep", "60"], start_new_session=True)
        print([child.pid], flush=True)
    """)
    [pid] = await read_message(channel)
    handle = watch(pid)

    try:
        assert "exit code 0" in await lost(channel)
        assert not has_ended(handle)
    finally:
        os.kill(pid, signal.SIGKILL)


async def test_what_an_ended_server_left_behind_is_ended(launch, watch):
    """Ours: its children go with it, before anybody closes anything."""
    channel = launch("""
        import subprocess, sys
        child = subprocess.Popen(["sleep", "60"])
        print([child.pid], flush=True)
        sys.stdin.readline()
    """)
    [pid] = await read_message(channel)
    handle = watch(pid)
    await channel.send(Outgoing(b"go"))

    await lost(channel)

    assert has_ended(handle, 5)


# The end, by us


@pytest.mark.covers("stdio.client.ends-server")
async def test_closing_ends_a_server_that_heeds_the_end_of_its_input(launch, watch):
    """Spec: closing its input is the primary signal; what was sent before is read first."""
    heard = []
    channel = launch(
        """
        import sys
        print("[1]", flush=True)
        print("read", sys.stdin.read(), file=sys.stderr)
        """,
        on_stderr=heard.append,
    )
    await channel.receive()
    handle = watch(channel.pid)
    await channel.send(Outgoing(b"last words"))

    await channel.close()

    assert has_ended(handle)
    assert ["read last words"] == heard
    assert None is await channel.receive()
    with pytest.raises(ConnectionLost, match="was closed"):
        await channel.send(Outgoing(b"{}"))


async def test_closing_a_server_that_goes_on_talking(launch):
    """Ours: it is read until its end, so it cannot get stuck in a write and miss its end."""
    channel = launch("""
        import sys
        print("[1]", flush=True)
        print("[" + "2," * 5_000_000 + "2]", flush=True)
        sys.stdin.read()
    """)
    await channel.receive()
    handle = os.pidfd_open(channel.pid)

    closing = asyncio.create_task(channel.close())
    status = await channel._process.wait_exit(1.9)
    await closing

    assert has_ended(handle)
    os.close(handle)
    assert 0 == status


async def test_closing_ends_a_receiver_that_waits(launch):
    """Ours (D20): a silent server does not keep its reader when the channel is closed."""
    channel = launch("import sys; sys.stdin.read()")
    reading = asyncio.create_task(channel.receive())
    await asyncio.sleep(0)

    await channel.close()

    assert None is await reading


@pytest.mark.covers("stdio.client.ends-server")
@pytest.mark.asyncio(loop_factories=["asyncio"])  # it takes its time, by design
async def test_closing_ends_a_stubborn_server_and_its_children(launch, watch):
    """Ours: end of input, SIGTERM, SIGKILL, to the whole group."""
    channel = launch(STUBBORN)
    pids = await read_message(channel)
    handles = [watch(pids["server"]), watch(pids["child"])]
    loop = asyncio.get_running_loop()
    began = loop.time()

    await asyncio.gather(channel.close(), channel.close())
    await channel.close()

    assert [True, True] == [has_ended(handle, 1) for handle in handles]
    assert 3.5 < loop.time() - began < 8


async def test_closing_a_server_that_reads_nothing(launch, monkeypatch):
    """Ours: what it does not read is given up after a moment, so it cannot keep us from ending."""
    monkeypatch.setattr(command, "FLUSH_TIMEOUT_S", 0.01)
    monkeypatch.setattr(process, "SHUTDOWN_STEPS", ((None, 0.01), (signal.SIGTERM, 10)))
    channel = launch("import time; time.sleep(60)")
    await channel.send(Outgoing(b"x" * (MAX_UNSENT_BYTES - 1)))

    await channel.close()

    assert -signal.SIGTERM == await channel._process.wait_exit(0)


async def test_a_child_that_cleans_up_is_given_the_time(launch, tmp_path):
    """Ours: what the server started is asked before it is made to end."""
    mark = tmp_path / "cleaned"
    channel = launch(f"""
        import os, signal, subprocess, sys
        child = subprocess.Popen(["sh", "-c", "trap 'echo > {mark}; exit' TERM;"
                                  "echo [1]; while :; do sleep 0.01; done"])
        sys.stdin.read()
    """)
    await channel.receive()

    await channel.close()

    assert mark.exists()


async def test_a_cancelled_close_still_ends_the_server(launch, watch):
    """Ours: whoever gives up waiting does not leave an orphan."""
    channel = launch("import sys; print('[1]', flush=True); sys.stdin.read()")
    await channel.receive()
    handle = watch(channel.pid)
    closing = asyncio.create_task(channel.close())
    await asyncio.sleep(0)

    closing.cancel()
    await asyncio.wait([closing])

    assert closing.cancelled()
    await channel.close()
    assert has_ended(handle)


async def test_nothing_is_left_open(launch, watch):
    """Ours: no descriptor and no process of ours is left after a close."""
    before = ours()
    channels = [launch(ECHO), launch("pass"), launch(ECHO)]
    await lost(channels[1])

    for channel in channels:
        await channel.close()

    assert before == ours()


async def test_without_descriptors_for_processes_a_thread_waits(launch, monkeypatch):
    """Ours: macOS and old kernels have no pidfd; the end is noticed all the same."""

    def refuse(pid, flags=0):
        raise OSError("not here")

    monkeypatch.setattr(os, "pidfd_open", refuse)
    channel = launch("input()")
    silent = launch(STUBBORN)
    await read_message(silent)
    await channel.send(Outgoing(b"go"))

    assert "exit code 0" in await lost(channel)
    silent._process.kill()
    assert -signal.SIGKILL == await silent._process.wait_exit(0)


def test_a_loop_that_ends_meanwhile_leaves_no_server(script):
    """Ours: `asyncio.run` cancels what is still closing; the server is killed then."""

    async def leave():
        channel = CommandChannel(script(STUBBORN))
        pids = await read_message(channel)
        handles = [os.pidfd_open(pids["server"]), os.pidfd_open(pids["child"])]
        closing = asyncio.create_task(channel.close())
        await asyncio.sleep(0)
        assert not closing.done()
        return handles

    handles = asyncio.run(leave())

    assert [True, True] == [has_ended(handle, 1) for handle in handles]
    for handle in handles:
        os.close(handle)


def test_a_killed_client_leaves_no_server(script, tmp_path, watch):
    """Ours: SIGKILL gives the client no chance to close, so a guard does it."""
    client = tmp_path / "client.py"
    client.write_text(
        dedent(f"""
        import asyncio, os
        from isthmus.transports.command import Command, CommandChannel
        from isthmus.transports.process import GUARD_DELAY_S

        async def main():
            channel = CommandChannel(Command(*{script(STUBBORN).argv!r}))
            pids = (await channel.receive()).data + b"\\n"
            asyncio.get_running_loop().call_later(GUARD_DELAY_S, os.write, 1, pids)
            await channel.receive()

        asyncio.run(main())
        """)
    )
    with subprocess.Popen([sys.executable, client], stdout=subprocess.PIPE) as running:
        pids = msgspec.json.decode(running.stdout.readline())
        handles = [watch(pids["server"]), watch(pids["child"])]
        running.kill()

    assert [True, True] == [has_ended(handle, 10) for handle in handles]


def test_the_modules_can_be_imported_where_there_is_no_posix():
    """Ours: on Windows there are no groups, no SIGKILL, no descriptors for processes."""
    code = """
        import asyncio, os, signal, subprocess, sys
        sys.platform = "win32"
        for module, names in {
            os: ["killpg", "set_blocking", "get_blocking", "pidfd_open"], signal: ["SIGKILL"],
        }.items():
            for name in names:
                delattr(module, name)
        import isthmus.transports.command, isthmus.transports.stdio
    """

    ran = subprocess.run([sys.executable, "-c", dedent(code)], check=False, timeout=15)

    assert 0 == ran.returncode


SECRET_WORDS = {
    "flag and word": ("--token", "hunter"),
    "flag with equals": ("--token=hunter",),
    "flag of an API key": ("--api-key", "hunter"),
    "flag of one dash": ("-Password", "hunter"),
    "variable": ("env", "API_TOKEN=hunter", "run"),
    "key": ("--key", "hunter"),
    "header": ("--header", "Authorization: Bearer hunter"),
    "header with equals": ("--header=X-Api-Key: hunter",),
    "scheme alone": ("--header", "X-Mine: Bearer hunter"),
    "user": ("-u", "ada:hunter"),
    "long user": ("--user", "ada:hunter"),
    "userinfo": ("postgres://ada:hunter@db.example/app",),
    "userinfo within": ("--url=https://hunter@git.example/x",),
    "query": ("https://x.example/mcp?token=hunter&page=2",),
    "JSON": ('{"password": "hunter"}',),
}


@pytest.mark.parametrize("words", SECRET_WORDS.values(), ids=SECRET_WORDS)
def test_a_command_in_a_message_shows_no_secret(words):
    """Ours: errors and lists of servers hold it; the program gets it as it is."""
    command = Command("serve", *words)

    assert ("serve", *words) == command.argv
    assert "hunter" not in f"{command} {command!r}"
    assert "[redacted]" in str(command) or "://" in str(command)


def test_a_command_in_a_message_shows_everything_else():
    """Ours: what is run has to be known."""
    words = ("uvx", "server", "--port", "80", "-u", "1000:1000", "--token-file", "/x", "a b")

    assert "uvx server --port 80 -u 1000:1000 --token-file /x 'a b'" == str(Command(*words))


async def test_a_command_that_cannot_be_run_is_told_without_its_secrets():
    """Ours: the error of a client goes into logs."""
    with pytest.raises(ConnectFailed) as failed:
        async with Client(Command("is-not-there", "--token", "hunter")):
            pass

    assert "hunter" not in str(failed.value)
    assert "--token [redacted]" in str(failed.value)
