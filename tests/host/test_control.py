"""The socket of a host: for its user alone, bounded, and nothing hangs when somebody goes."""

import asyncio
import json
import os
import stat
import sys
from contextlib import suppress

import pytest

from isthmus.host.model.attempt import Attempt
from isthmus.host.model.errors import Unknown
from isthmus.host.model.events import HostEvents, HostNotice, QuestionAsked
from isthmus.host.model.interaction import Decision, Interaction, PromptAsked
from isthmus.host.model.trace import Trace
from isthmus.host.model.view import ServerStatus
from isthmus.host.remote.attached import AttachedHost, HostGone
from isthmus.host.remote.control import (
    MAX_SURFACES,
    Control,
    ControlUnavailable,
    HostRuns,
    limit_assurance,
)
from isthmus.host.remote.protocol import (
    MAX_REQUEST_BYTES,
    PROTOCOL_VERSION,
    AskHello,
    AskLeave,
    encode_line,
)
from isthmus.transports.sockets import read_ancestry
from support.host.audit_rows import wait_until

pytestmark = pytest.mark.timeout(60)


class Small:
    """A view of a host that has one server, and questions that a test puts."""

    def __init__(self):
        self.told = HostEvents()
        self.waiting = {}
        self.attending = []
        self.decided = []
        self.states = [ServerStatus(name="s", state="idle")]
        self.gate = asyncio.Event()

    def ask(self, id, **more):
        attempt = Attempt(id=id, action="prompt.get", principal="user:ada", server="s")
        self.waiting[id] = Interaction(
            id=id, attempt=attempt, payload=PromptAsked(name="p", arguments={}), trace=Trace(effect="ask", rule="r"),
            **more,
        )  # fmt: skip
        self.told.tell(QuestionAsked(interaction=self.waiting[id]))

    def pending(self):
        return list(self.waiting.values())

    def takers(self):
        return {}

    async def decide(self, id, decision):
        self.decided.append(decision)
        return self.waiting.pop(id, None) is not None

    def attend(self, name, assurance="local_ui"):
        return Attending(self.attending, (name, assurance))

    def events(self):
        return self.told.listen()

    def servers(self):
        return self.states

    async def server_do(self, name, what, *, by=""):
        if name == "slow":
            await self.gate.wait()
        if name == "broken":
            raise ZeroDivisionError("oops")
        raise Unknown(f"there is no {name}")

    async def audit_tail(self, count=50):
        return []


class Attending:
    def __init__(self, where, who):
        self.where, self.who = where, who

    async def __aenter__(self):
        self.where.append(self.who)

    async def __aexit__(self, *_):
        self.where.remove(self.who)


@pytest.fixture
async def small():
    return Small()


@pytest.fixture
async def control(small, tmp_path):
    async with Control(small, tmp_path) as control:
        yield control


@pytest.mark.covers("hostaudit.control.own-user")
async def test_only_its_user_can_open_the_socket(control, tmp_path):
    """Ours: by the folder's mode and the socket's."""
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path, control.path)]

    assert [0o700, 0o600] == modes


@pytest.mark.covers("hostaudit.control.own-user")
async def test_another_user_is_refused(control, tmp_path, monkeypatch):
    """Ours: whoever connects is asked who they are, where the system tells."""
    monkeypatch.setattr(os, "getuid", lambda: 4711)
    with pytest.raises(HostGone, match="another user's"):
        async with AttachedHost(tmp_path):
            pass


@pytest.mark.covers("hostaudit.control.second-host")
async def test_a_second_host_on_the_same_state_is_refused(control, small, tmp_path):
    """Ours: with what to do; the first one stays as it is."""
    with pytest.raises(HostRuns, match="attach to it \\(isthmus host --attach\\), stop it"):
        async with Control(small, tmp_path):
            pass
    async with AttachedHost(tmp_path) as view:
        assert ["s"] == [one.name for one in view.servers()]


@pytest.mark.covers("hostaudit.control.stale")
async def test_a_socket_that_was_left_behind_is_replaced(small, tmp_path):
    """Ours: whoever was killed could not clear it away."""
    (tmp_path / "host.sock").write_text("left behind")
    async with Control(small, tmp_path), AttachedHost(tmp_path) as view:
        assert view.servers()
    assert not (tmp_path / "host.sock").exists()


async def test_a_path_that_is_too_long_is_told(small, tmp_path):
    """Ours: systems cut it, or refuse it without a word."""
    with pytest.raises(ControlUnavailable, match="shorter path"):
        async with Control(small, tmp_path / ("x" * 100)):
            pass


async def test_where_there_are_no_such_sockets_it_is_told(small, tmp_path, monkeypatch):
    """Ours: in a sentence, on both sides."""
    monkeypatch.delattr(asyncio, "start_unix_server")
    monkeypatch.delattr(asyncio, "open_unix_connection")
    with pytest.raises(ControlUnavailable, match="no Unix sockets"):
        async with Control(small, tmp_path):
            pass
    with pytest.raises(HostGone, match="no Unix sockets"):
        async with AttachedHost(tmp_path):
            pass


async def test_where_no_host_runs_it_is_told(tmp_path):
    """Ours: and how to start one."""
    with pytest.raises(HostGone, match="isthmus host"):
        async with AttachedHost(tmp_path):
            pass


@pytest.mark.covers("hostaudit.control.bounded")
@pytest.mark.parametrize("text", [b"what?\n", b"{}\n", b'{"do":"fly","id":1}\n'])
async def test_a_line_that_is_none_ends_that_connection_only(control, text):
    """Ours: nonsense, and what nobody knows."""
    reader, writer = await asyncio.open_unix_connection(control.path)
    writer.write(text)
    told = json.loads(await reader.readline())
    rest = await reader.read()
    writer.close()
    async with AttachedHost(control.path.parent) as view:
        assert view.servers()

    assert "failed" == told["is"]
    assert b"" == rest


@pytest.mark.covers("hostaudit.control.bounded")
async def test_a_line_that_is_too_long_ends_that_connection_only(control):
    """Ours: no surface fills the host's memory."""
    reader, writer = await asyncio.open_unix_connection(control.path)
    writer.write(b"[" * (MAX_REQUEST_BYTES + 1_000_000))
    with suppress(ConnectionError):  # what was not read breaks it off
        await reader.read()
    writer.close()
    async with AttachedHost(control.path.parent) as view:
        assert view.servers()


@pytest.mark.covers("hostaudit.control.bounded")
async def test_there_is_room_for_so_many_surfaces(control, tmp_path):
    """Ours: one more is told so; when one leaves, there is room again."""
    views = [AttachedHost(tmp_path) for _ in range(MAX_SURFACES)]
    for view in views:
        await view.__aenter__()
    with pytest.raises(HostGone, match="16 surfaces are attached"):
        async with AttachedHost(tmp_path):
            pass
    await views.pop().close()
    await wait_until(lambda: len(control._surfaces) < MAX_SURFACES)
    async with AttachedHost(tmp_path) as view:
        assert view.servers()
    for view in views:
        await view.close()


async def test_another_version_is_refused(control):
    """Ours: with both versions."""
    reader, writer = await asyncio.open_unix_connection(control.path)
    writer.write(b'{"do":"hello","id":1,"version":99}\n')
    told = json.loads(await reader.readline())
    writer.close()

    assert "ControlUnavailable" == told["refusal"]["error"]
    assert f"version {PROTOCOL_VERSION}" in told["refusal"]["text"]


@pytest.mark.covers("hostaudit.view.leaving")
@pytest.mark.parametrize("how", ["leaves", "closes", "breaks off"])
async def test_whoever_goes_attends_no_more(control, small, tmp_path, how):
    """Ours: however they go, so that no question waits for them."""
    view = AttachedHost(tmp_path)
    await view.__aenter__()
    attending = view.attend("tui")
    await attending.__aenter__()
    before = list(small.attending)
    if how == "leaves":
        await attending.__aexit__(None, None, None)
    elif how == "closes":
        await view.close()
    else:
        view._writer.transport.abort()
    await wait_until(lambda: not small.attending)
    await view.close()

    assert [("tui", "local_ui")] == before


@pytest.mark.covers("hostaudit.control.assurance")
async def test_a_surface_is_believed_to_be_a_terminal_and_no_more(control, small, tmp_path):
    """Ours: the second person that it says it is could be anybody."""
    small.ask("q1")
    async with AttachedHost(tmp_path) as view:
        async with view.attend("a\x1b[2Jb", "second_person"):
            attending = list(small.attending)
        await view.decide(
            "q1", Decision(verdict="allow", by="\u202eadmin", assurance="second_person")
        )

    assert [("a[2Jb", "local_ui")] == attending
    assert [("admin", "local_ui")] == [(one.by, one.assurance) for one in small.decided]
    assert "callback" == limit_assurance("callback")


async def test_questions_that_wait_already_are_seen_in_their_order(control, small, tmp_path):
    """Ours: the riskiest first, then the oldest."""
    small.ask("old", opened=1.0)
    small.ask("grave", opened=2.0, risk="high")
    async with AttachedHost(tmp_path) as view:
        small.ask("new", opened=3.0)
        await wait_until(lambda: len(view.pending()) == 3)

        assert ["grave", "old", "new"] == [one.id for one in view.pending()]


async def test_a_surface_that_lost_events_is_told_how_things_stand(control, small, tmp_path):
    """Ours: what it shows is what there is."""
    small.ask("q1")
    async with AttachedHost(tmp_path) as view:
        del small.waiting["q1"]
        small.told.tell(HostNotice(about="lost", text="3 events went by unseen"))
        await wait_until(lambda: not view.pending())
        small.states = [ServerStatus(name="s", state="ready")]
        small.told.tell(HostNotice(about="x", text="y"))
        await wait_until(lambda: view.servers()[0].state == "ready")


async def test_what_fails_in_one_answer_does_not_end_the_others(control, tmp_path):
    """Ours: errors have the type that they had there, and one that is slow keeps nobody waiting."""
    async with AttachedHost(tmp_path) as view:
        slow = asyncio.ensure_future(view.server_do("slow", "start"))
        with pytest.raises(Unknown, match="there is no x"):
            await view.server_do("x", "start")
        with pytest.raises(Exception, match="the host failed: ZeroDivisionError"):
            await view.server_do("broken", "start")

        assert [] == await view.audit_tail()
        assert not slow.done()
    with pytest.raises(HostGone):
        await slow


@pytest.mark.covers("hostaudit.control.bounded")
@pytest.mark.parametrize("part", ["surface", "program"])
async def test_a_surface_that_reads_nothing_does_not_keep_the_host(small, tmp_path, part):
    """Ours: one that is stopped, by Ctrl-Z for example, keeps no host from its end."""
    control = Control(small, tmp_path)
    await control.__aenter__()
    reader, writer = await asyncio.open_unix_connection(control.path, limit=1)
    reader._transport.pause_reading()
    writer.write(encode_line(AskHello(id=1, part=part)))
    for number in range(30):
        writer.write(encode_line(AskLeave(id=2 + number, attended=0)))
    small.states = [ServerStatus(name="s" * 1_000_000, state="idle")]
    await wait_until(lambda: control._surfaces)
    for _ in range(10):
        small.told.tell(HostNotice(about="x", text="y" * 1_000_000))
        await asyncio.sleep(0)
    await asyncio.wait_for(control.close(), 20)
    writer.transport.abort()

    assert not control._surfaces


@pytest.mark.covers("hostaudit.view.ends")
async def test_when_the_host_goes_the_surface_is_told(small, tmp_path):
    """Ours: its questions go, its events end, and whatever it asks for says so."""
    control = Control(small, tmp_path)
    await control.__aenter__()
    small.ask("q1")
    async with AttachedHost(tmp_path) as view:
        events = view.events()
        slow = asyncio.ensure_future(view.server_do("slow", "start"))
        async with view.attend("tui"):
            await control.close()
            seen = [event async for event in events]
        with pytest.raises(HostGone):
            await slow
        with pytest.raises(HostGone, match="the host is gone"):
            await view.decide("q1", Decision(verdict="allow"))
        later = [event.about async for event in view.events()]

        assert [] == list(view.pending())
    assert "gone" == seen[-1].about
    assert ["gone"] == later


async def test_a_surface_that_is_not_attached_says_so(tmp_path):
    """Ours: instead of waiting for ever."""
    with pytest.raises(HostGone, match="not attached"):
        await AttachedHost(tmp_path).grants()


SOMEBODY = """
import os, socket, sys
sock = socket.socket(socket.AF_UNIX)
sock.bind(sys.argv[1])
os.chmod(sys.argv[1], 0o777)
os.setuid(12345)
sock.listen()
print("there", flush=True)
sock.accept()[0].recv(1)
"""


@pytest.mark.skipif(
    not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can be another"
)
async def test_a_host_of_another_user_is_not_attached_to(tmp_path):
    """Ours: whoever puts a socket where ours would be shows us no questions."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SOMEBODY, str(tmp_path / "host.sock"), stdout=asyncio.subprocess.PIPE
    )
    assert b"there\n" == await process.stdout.readline()
    try:
        with pytest.raises(HostGone, match="is another user's"):
            async with AttachedHost(tmp_path):
                pass
    finally:
        process.kill()
        await process.wait()


CHILD = """
import os, socket, sys, time

def attach():
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(sys.argv[1])
        return sock.makefile().readline()

if sys.argv[2] == "child":
    print(attach())
elif sys.argv[2] == "grandchild":
    if os.fork() == 0:
        print(attach())
    else:
        os.wait()
else:  # handed on to init, once the server itself has ended
    ready, go = os.pipe()
    if os.fork() == 0:
        os.close(go)
        os.read(ready, 1)
        print(attach(), flush=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells where a process comes from")
@pytest.mark.covers("hostaudit.socket.children")
@pytest.mark.parametrize("how", ["child", "grandchild", "orphan"])
async def test_what_a_host_has_started_cannot_attach_to_it(tmp_path, how):
    """Ours: a server could answer its own questions; also a child of its own that outlives it."""
    view = Small()
    async with Control(view, tmp_path):
        words = [sys.executable, "-c", CHILD, str(tmp_path / "host.sock"), how]
        process = await asyncio.create_subprocess_exec(
            *words, stdout=asyncio.subprocess.PIPE, process_group=0
        )
        view.states = [ServerStatus(name="s", state="ready", pid=process.pid)]
        said = await process.stdout.read()
        await process.wait()

    assert b"does not attach to it" in said
    assert [] == view.attending


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells where a process comes from")
def test_where_a_process_comes_from():
    """Ours: itself, its parents, its group and its session; nothing of one that is gone."""
    found = read_ancestry(os.getpid())

    assert os.getpid() == found[0]
    assert {os.getppid(), os.getpgrp(), os.getsid(0)} - {0, 1} <= set(found)
    assert () == read_ancestry(2**22 + 1)
