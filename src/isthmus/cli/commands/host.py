"""``isthmus host`` and ``isthmus console``: run configured servers, and answer questions, here or in a browser."""

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from enum import StrEnum
from functools import partial
from typing import Annotated, Any, Literal

from msgspec import Struct

from isthmus.cli.declarations import CommandSet, Option
from isthmus.cli.exit_codes import Exit
from isthmus.cli.exits import finish, handle_signals, set_on_signals
from isthmus.cli.options import ConfigFiles
from isthmus.cli.output import print_note
from isthmus.errors import UsageError
from isthmus.host.config.load import load_config
from isthmus.host.host import Host
from isthmus.host.model.events import HostNotice
from isthmus.host.remote.attached import AttachedHost
from isthmus.host.remote.control import Control
from isthmus.host.remote.view import HostView
from isthmus.host.state.database import find_user_folder
from isthmus.lazy import is_installed
from isthmus.terminal.prompt.prompt import TerminalPrompt, run_prompt

app = CommandSet()

DEFAULT_CONSOLE_PORT = 8765


class ApproverChoice(StrEnum):
    """The surface that asks questions."""

    TUI = "tui"
    PROMPT = "prompt"
    NONE = "none"


@app.command("host")
def host(
    *,
    config: ConfigFiles = None,
    approve: Annotated[
        ApproverChoice,
        Option(help="Ask on the full screen (tui), at a prompt, or not here (none)."),
    ] = ApproverChoice.TUI,
    policy: Annotated[
        str | None,
        Option(metavar="NAME|FILE", help="Name of a built-in policy, or a file with rules."),
    ] = None,
    state: Annotated[
        str | None,
        Option(metavar="FOLDER", help="State folder of the host; the user's by default."),
    ] = None,
    attach: Annotated[
        bool, Option("--attach", help="Attach to the running host instead of starting one.")
    ] = False,
    console: Annotated[
        int | None,
        Option(
            metavar="PORT", help="Also serve the console on this local port; 0 chooses a free one."
        ),
    ] = None,
) -> None:
    """Run configured servers, and approve or deny their calls."""
    finish(
        lambda: run_host(
            HostCommandOptions(tuple(config or ()), approve.value, policy, state, attach, console)
        )
    )


MAX_WAITING_NOTICES = 100  # kept for the end of a question

NO_SERVERS_HINT = (
    "no server is configured: isthmus servers add NAME -- COMMAND adds one, --config names a file"
)
RELOAD_HINT = (
    "changes of the files take effect at the next start; pip install 'isthmus[host]' has them take "
    "effect at once"
)
CALL_HINT = "isthmus call --host SERVER__TOOL calls it"
HOST_ENDS_HINT = "open questions are denied, and the servers are stopped"
HOST_STAYS_HINT = "open questions are denied unless somebody else can answer"


class HostCommandOptions(Struct, frozen=True):
    """Options of ``isthmus host``.

    Attributes:
        config: files instead of the usual ones.
        approve: where questions are asked.
        policy: the name or file of a policy; None for the configuration's.
        state: the folder of what lasts; None for the configuration's.
        attach: show the host that runs already.
        console: the port of the console; None for none.
    """

    config: tuple[str, ...] = ()
    approve: Literal["tui", "prompt", "none"] = "tui"
    policy: str | None = None
    state: str | None = None
    attach: bool = False
    console: int | None = None


def run_host(options: HostCommandOptions) -> Exit:
    """Run a host, or show one, until its user or a signal ends it.

    Raises:
        UsageError: this terminal cannot show what was asked for.
        ConfigError: the configuration cannot be read.
        HostGone: there is no host to be shown.
    """
    if options.approve == "tui":
        require_full_screen()
    return asyncio.run(_run_attached(options) if options.attach else _start_host(options))


def require_full_screen() -> None:
    """See that the full screen can be shown.

    Raises:
        UsageError: it cannot; the message says what to do instead.
    """
    other = "--approve=prompt asks line by line"
    if not is_installed("textual"):
        raise UsageError(f"the full screen needs pip install 'isthmus[host]'; {other} without it")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(f"the full screen needs a terminal; {other}, --approve=none nowhere here")


async def _run_attached(options: HostCommandOptions) -> Exit:
    with set_on_signals() as end:
        async with AttachedHost(find_folder(options)) as view:
            await _show_host(view, options, end, HOST_STAYS_HINT)
        if view.gone:
            print_note(f"isthmus: {view.gone}")
    return Exit.OK


def find_folder(options: HostCommandOptions) -> str | os.PathLike[str]:
    """The folder of the running host's state."""
    return options.state or load_config(options.config or None).options.state or find_user_folder()


async def _start_host(options: HostCommandOptions) -> Exit:
    """Start the host, let others attach, and show it here."""
    host = Host.from_config(*options.config, policy=options.policy, state=options.state, watch=True)
    for name, why in host.config.broken.items():
        print_note(f"isthmus: {name}: {why}")
    for passed in host.config.notes:
        print_note(f"isthmus: {passed}")
    if not (host.config.servers or host.config.broken):
        print_note(f"isthmus: {NO_SERVERS_HINT}")
    if not is_installed("watchfiles"):
        print_note(f"isthmus: {RELOAD_HINT}")
    async with AsyncExitStack() as stack:
        end = stack.enter_context(set_on_signals())
        folder = host.state.folder
        if folder is not None:
            # Before the host is open: it is seen there that no other one runs on the same state.
            await stack.enter_async_context(Control(host.view, folder))
        if options.approve != "none":
            # Servers that start at once may have to be asked about: their questions wait for us.
            await stack.enter_async_context(host.view.attend(options.approve))
        await stack.enter_async_context(host)
        if options.console is not None:
            from isthmus.console.serving import serve_console  # only who wants it

            tell = partial(_tell_login, host if options.approve == "tui" else None)
            served = await stack.enter_async_context(
                serve_console(host.view, options.console, tell=tell)
            )
            print_note(f"isthmus: the console is at {served.login_address}")
        await _show_host(host.view, options, end, HOST_ENDS_HINT)
    return Exit.OK


async def _show_host(
    view: HostView, options: HostCommandOptions, end: asyncio.Event, leaving: str
) -> None:
    """Show a host here until its user, its own end or a signal ends that."""
    if options.approve == "tui":
        from isthmus.terminal.approver.app import approve  # with the extra only
        from isthmus.terminal.approver.questions import TerminalSurface

        await approve(view, TerminalSurface(leaving=leaving), end=end)
        return
    if options.approve == "none":
        print_note(
            f"isthmus: the host runs; isthmus host --attach shows it, {CALL_HINT}, control-C ends it"
        )
        await _run_until_first(end.wait(), _print_notices(view))
        return
    prompt = TerminalPrompt()
    print_note("isthmus: the host runs and asks here; control-C ends it while no question is open")
    with _route_interrupts(prompt, end):
        await _run_until_first(
            end.wait(), run_prompt(view, prompt), _print_notices(view, lambda: prompt.asks)
        )


def _tell_login(host: Host | None, address: str) -> None:
    """Tell the operator's terminal where to sign in, after a sign-out everywhere.

    Args:
        host: whose full screen the terminal shows, which prints nothing; None for a plain one.
        address: with the token.
    """
    text = f"signed out everywhere; sign in again at {address}"
    if host is None:
        print_note(f"isthmus: {text}")
    else:
        host.core.events.tell(HostNotice(about="console", text=text))


async def _print_notices(view: HostView, busy: Callable[[], bool] = lambda: False) -> None:
    """Say what a person should see, until the host ends by itself.

    Args:
        view: the host.
        busy: whether a question stands there just now; a notice waits until it is over.
    """
    waiting: list[HostNotice] = []
    async for event in view.events():
        if isinstance(event, HostNotice):
            waiting.append(event)
        if waiting and not busy():
            for one in waiting:
                print_note(f"isthmus: {one.server or one.about}: {one.text}")
            waiting.clear()
        del waiting[:-MAX_WAITING_NOTICES]


async def _run_until_first(*works: Coroutine[Any, Any, object]) -> None:
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
def _route_interrupts(prompt: TerminalPrompt, end: asyncio.Event) -> Iterator[None]:
    """Control-C answers the question that is asked; where none is, it ends the host."""

    def interrupted() -> None:
        if not prompt.interrupt():
            end.set()

    with handle_signals({"SIGINT": interrupted}):
        yield


@app.command("console")
def console(
    *,
    config: ConfigFiles = None,
    state: Annotated[
        str | None,
        Option(metavar="FOLDER", help="State folder of the running host; the user's by default."),
    ] = None,
    port: Annotated[
        int, Option(metavar="PORT", help="Serve the console on this local port.")
    ] = DEFAULT_CONSOLE_PORT,
    no_open: Annotated[
        bool, Option("--no-open", help="Print the URL without opening a browser.")
    ] = False,
) -> None:
    """Watch the running host and answer its questions in a browser."""
    options = HostCommandOptions(config=tuple(config or ()), state=state)
    finish(lambda: asyncio.run(_run_console(options, port, open_page=not no_open)))


async def _run_console(options: HostCommandOptions, port: int, *, open_page: bool) -> Exit:
    """Attach to the running host, and serve its console until a signal or its end.

    Raises:
        HostGone: no host runs on this state.
        UsageError: the port is taken.
    """
    from isthmus.console.serving import open_browser, serve_console

    async with AsyncExitStack() as stack:
        end = stack.enter_context(set_on_signals())
        view = await stack.enter_async_context(AttachedHost(find_folder(options)))
        tell = partial(_tell_login, None)
        served = await stack.enter_async_context(serve_console(view, port, tell=tell))
        print_note(f"isthmus: the console is at {served.login_address} (control-C ends it)")
        if open_page:
            stack.enter_context(open_browser(served.login_address))
        ending = asyncio.ensure_future(_wait_for_end(view))
        stopping = asyncio.ensure_future(end.wait())
        done, _ = await asyncio.wait({ending, stopping}, return_when=asyncio.FIRST_COMPLETED)
        gone = view.gone if ending in done else ""
        ending.cancel()
        stopping.cancel()
    if gone:
        print_note(f"isthmus: {gone}")
    return Exit.OK


async def _wait_for_end(view: AttachedHost) -> None:
    """Wait until the host ends, and say what a person should see."""
    async for event in view.events():
        if isinstance(event, HostNotice):
            print_note(f"isthmus: {event.server or event.about}: {event.text}")
