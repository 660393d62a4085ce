"""``isthmus console``: see and decide in a browser what the running host or gateway does."""

import asyncio
from contextlib import AsyncExitStack
from typing import Annotated

from isthmus.cli.commands.host import HostCommandOptions, find_folder
from isthmus.cli.declarations import CommandSet, Option
from isthmus.cli.exit_codes import Exit
from isthmus.cli.exits import finish, set_on_signals
from isthmus.cli.output import print_note
from isthmus.host.model.events import HostNotice
from isthmus.host.remote.attached import AttachedHost

app = CommandSet()

DEFAULT_PORT = 8765


@app.command("console")
def console(
    *,
    config: Annotated[
        list[str] | None,
        Option("--config", metavar="FILE", help="Instead of the user's and ./mcp.json; repeat it."),
    ] = None,
    state: Annotated[
        str | None, Option(metavar="FOLDER", help="Of the running host; the user's by default.")
    ] = None,
    port: Annotated[int, Option(metavar="PORT", help="On this machine.")] = DEFAULT_PORT,
    no_open: Annotated[
        bool, Option("--no-open", help="Print the address, and open no browser.")
    ] = False,
) -> None:
    """See and decide in a browser what the running host does."""
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
        served = await stack.enter_async_context(serve_console(view, port))
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
