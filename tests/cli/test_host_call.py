"""isthmus call --host: one call through the host that runs."""

import pytest

from isthmus import Server
from isthmus.cli.commands import call
from isthmus.cli.commands.call import HostCall, call_at_host
from isthmus.cli.exit_codes import Exit
from isthmus.cli.exits import exit_for
from isthmus.errors import UsageError
from isthmus.host import Denied, Host, Unknown
from isthmus.host.remote.attached import HostGone
from isthmus.host.remote.control import Control

pytestmark = pytest.mark.timeout(60)


def shop():
    """A server."""
    server = Server("shop")

    @server.tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    return server


@pytest.fixture
async def state(tmp_path):
    """The state of a host that runs, whose user says yes."""
    state = tmp_path / "state"
    host = Host(state=state, approver=lambda asked: asked.payload.arguments["a"] < 10)
    host.add("shop", shop())
    async with Control(host.view, state), host:
        yield state


@pytest.mark.covers("hostaudit.calls.command")
async def test_a_tool_of_the_running_host_is_called(state, capsys):
    """Ours: values are read as the tool's schema wants them, and the result is on standard output."""
    code = await call_at_host(HostCall(("shop__add", "a=1", "b=2"), None, state))
    also = await call_at_host(
        HostCall(("shop__add",), '{"a": 2, "b": 2}', state, 30.0, as_json=True)
    )
    said = capsys.readouterr().out

    assert (Exit.OK, Exit.OK) == (code, also)
    assert said.startswith("3\n{")


async def test_a_call_that_takes_long_says_where_it_is_approved(state, capsys, monkeypatch):
    """Ours: a call that waits for a person is not silent; the note is on standard error."""
    monkeypatch.setattr(call, "WAITING_NOTE_DELAY_S", 0.0)
    await call_at_host(HostCall(("shop__add", "a=1", "b=2"), None, state))
    printed = capsys.readouterr()

    assert "isthmus host --attach or isthmus console" in printed.err
    assert printed.out == "3\n"


@pytest.mark.covers("hostaudit.calls.command")
async def test_each_failure_of_a_call_has_its_exit_code(state, tmp_path):
    """Ours: a no, a name that there is not, and no host at all."""
    with pytest.raises(Denied) as no:
        await call_at_host(HostCall(("shop__add", "a=11", "b=2"), None, state))
    with pytest.raises(Unknown, match="shop has no tool 'shop__sub'; it has: shop__add"):
        await call_at_host(HostCall(("shop__sub",), None, state))
    with pytest.raises(Unknown, match="nothing__here"):
        await call_at_host(HostCall(("nothing__here",), None, state))
    with pytest.raises(UsageError, match="which tool"):
        await call_at_host(HostCall((), None, state))
    with pytest.raises(HostGone, match="isthmus host"):
        await call_at_host(HostCall(("shop__add",), None, tmp_path / "nowhere"))

    assert exit_for(no.value) not in {Exit.OK, Exit.BROKEN}
