"""What ``isthmus host`` does: a host, its control socket, and a surface at this terminal."""

import asyncio
import importlib.util
import os
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Any, Literal

from msgspec import Struct

from isthmus.cli.exits import Exit
from isthmus.cli.output import note
from isthmus.cli.signals import handle_signals, set_on_signals
from isthmus.errors import UsageError
from isthmus.host.attached import Attached
from isthmus.host.config.load import load
from isthmus.host.control import Control
from isthmus.host.events import Noticed
from isthmus.host.host import Host
from isthmus.host.state import user_folder
from isthmus.host.view import HostView
from isthmus.terminal.prompt import Prompt, prompting

__all__ = ["Hosting", "hosted"]

MOST_WAITING = 100
"""Notices that are kept for the end of a question."""

NONE = (
    "no server is configured: isthmus servers add NAME -- COMMAND adds one, --config names a file"
)
FIXED = "changes of the files count from the next start; pip install 'isthmus[host]' follows them"
CALLS = "isthmus call --host SERVER__TOOL calls it"
HERE = "what waits is denied, and the servers are ended"
THERE = "where nobody else is there, what waits is denied"


class Hosting(Struct, frozen=True):
    """What the command line says.

    Attributes:
        config: files instead of the usual ones.
        approve: where questions are asked.
        policy: the name or file of a policy; None for the configuration's.
        state: the folder of what lasts; None for the configuration's.
        attach: show the host that runs already.
    """

    config: tuple[str, ...] = ()
    approve: Literal["tui", "prompt", "none"] = "tui"
    policy: str | None = None
    state: str | None = None
    attach: bool = False


def hosted(said: Hosting) -> Exit:
    """Run a host, or show one, until its user or a signal ends it.

    Raises:
        UsageError: this terminal cannot show what was asked for.
        ConfigError: the configuration cannot be read.
        HostGone: there is no host to be shown.
    """
    if said.approve == "tui":
        able()
    return asyncio.run(_attached(said) if said.attach else _hosted(said))


def able() -> None:
    """See that the full screen can be shown.

    Raises:
        UsageError: it cannot; the message says what to do instead.
    """
    other = "--approve=prompt asks line by line"
    if importlib.util.find_spec("textual") is None:
        raise UsageError(f"the full screen needs pip install 'isthmus[host]'; {other} without it")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(f"the full screen needs a terminal; {other}, --approve=none nowhere here")


async def _attached(said: Hosting) -> Exit:
    with set_on_signals() as end:
        async with Attached(_folder(said)) as view:
            await _shown(view, said, end, THERE)
        if view.gone:
            note(f"isthmus: {view.gone}")
    return Exit.OK


def _folder(said: Hosting) -> str | os.PathLike[str]:
    """Where the host that runs keeps what lasts."""
    return said.state or load(said.config or None).options.state or user_folder()


async def _hosted(said: Hosting) -> Exit:
    """Start the host, let others attach, and show it here."""
    host = Host.from_config(*said.config, policy=said.policy, state=said.state, watch=True)
    for name, why in host.config.broken.items():
        note(f"isthmus: {name}: {why}")
    for passed in host.config.notes:
        note(f"isthmus: {passed}")
    if not (host.config.servers or host.config.broken):
        note(f"isthmus: {NONE}")
    if importlib.util.find_spec("watchfiles") is None:
        note(f"isthmus: {FIXED}")
    async with AsyncExitStack() as stack:
        end = stack.enter_context(set_on_signals())
        folder = host.kernel.state.folder
        if folder is not None:
            # Before the host is open: it is seen there that no other one runs on the same state.
            await stack.enter_async_context(Control(host.view, folder))
        if said.approve != "none":
            # Servers that start at once may have to be asked about: their questions wait for us.
            await stack.enter_async_context(host.view.attend(said.approve))
        await stack.enter_async_context(host)
        await _shown(host.view, said, end, HERE)
    return Exit.OK


async def _shown(view: HostView, said: Hosting, end: asyncio.Event, leaving: str) -> None:
    """Show a host here until its user, its own end or a signal ends that."""
    if said.approve == "tui":
        from isthmus.terminal.approver import approve  # with the extra only
        from isthmus.terminal.questions import Surface

        await approve(view, Surface(leaving=leaving), end=end)
        return
    if said.approve == "none":
        note(f"isthmus: the host runs; isthmus host --attach shows it, {CALLS}, control-C ends it")
        await _first(end.wait(), _telling(view))
        return
    prompt = Prompt()
    note("isthmus: the host runs, and asks here; control-C ends it where it asks nothing")
    with _interrupting(prompt, end):
        await _first(end.wait(), prompting(view, prompt), _telling(view, lambda: prompt.asks))


async def _telling(view: HostView, busy: Callable[[], bool] = lambda: False) -> None:
    """Say what a person should see, until the host ends by itself.

    Args:
        view: the host.
        busy: whether a question stands there just now; what is to be said waits until it is over.
    """
    waiting: list[Noticed] = []
    async for event in view.events():
        if isinstance(event, Noticed):
            waiting.append(event)
        if waiting and not busy():
            for one in waiting:
                note(f"isthmus: {one.server or one.about}: {one.text}")
            waiting.clear()
        del waiting[:-MOST_WAITING]


async def _first(*works: Coroutine[Any, Any, object]) -> None:
    """Do several things until one of them is done; then the others end, too."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextmanager
def _interrupting(prompt: Prompt, end: asyncio.Event) -> Iterator[None]:
    """Control-C answers the question that is asked; where none is, it ends the host."""

    def interrupted() -> None:
        if not prompt.interrupt():
            end.set()

    with handle_signals({"SIGINT": interrupted}):
        yield
