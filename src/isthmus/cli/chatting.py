"""A conversation from its beginning to its end: the host, the model, and the surface that there is."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from isthmus.cli.chat_models import models_of, named, voices
from isthmus.cli.exits import Exit
from isthmus.cli.output import note
from isthmus.cli.signals import handle_signals, set_on_signals
from isthmus.core.plain_text import clean

if TYPE_CHECKING:
    from isthmus.host.host import Host
    from isthmus.terminal.chat_plain import Keyboard, Lines
    from isthmus.terminal.chat_session import Session

__all__ = ["Wanted", "talk"]


class Wanted(Struct, frozen=True):
    """What the command line says; see ``isthmus chat --help``."""

    config: tuple[str, ...] = ()
    model: str = ""
    provider: str = ""
    system: str = ""
    policy: str = ""
    state: str | None = None
    attach: bool = True
    plain: bool = False


async def talk(wanted: Wanted) -> Exit:
    """Open the host, and talk until the user leaves.

    Raises:
        UsageError: there is no model, or the command line says what cannot be.
        ConfigError: a file of the configuration cannot be used.
    """
    from isthmus.host.conversation import Conversation
    from isthmus.host.host import Host
    from isthmus.terminal.chat_session import Session

    async with AsyncExitStack() as stack:
        end = stack.enter_context(set_on_signals())
        provider, options = named(wanted.provider), dict[str, Any]()
        if provider is not None:  # it also writes for servers that sample, where policy lets them
            stack.push_async_callback(provider.close)
            options["models"] = await models_of(provider, wanted.model)
            options["providers"] = {provider.name: provider}
        policy = wanted.policy or None
        host = Host.from_config(*wanted.config, state=wanted.state, policy=policy, **options)
        await stack.enter_async_context(host)
        if wanted.attach:
            await stack.enter_async_context(others(host))
        spec = "" if provider is not None else wanted.provider
        found, first = voices(host, spec, wanted.model)
        voice = found[first]
        talk = Conversation(
            host, voice.provider, voice.model, system=wanted.system, window=voice.window
        )
        session = Session(host, talk, found, first)
        if full_screen(plain=wanted.plain):
            from isthmus.terminal.chat import chat

            await chat(session, end=end)
            return Exit.OK
        return await in_lines(session, host, end)


@asynccontextmanager
async def others(host: "Host") -> AsyncIterator[None]:
    """Let other terminals attach, where that can be done."""
    from isthmus.host.control import Control, ControlUnavailable, HostRuns

    folder = host.kernel.state.folder
    async with AsyncExitStack() as stack:
        try:
            if folder is not None:
                await stack.enter_async_context(Control(host.view, folder))
        except HostRuns:
            note(
                "isthmus: a host runs on this state already: programs call that one, and this "
                "conversation has servers of its own; --state FOLDER names another state"
            )
        except ControlUnavailable:
            pass  # then questions are asked here only
        yield


def full_screen(*, plain: bool) -> bool:
    """Whether there is a screen to fill, and what it is filled with."""
    if plain or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    if find_spec("textual") is None:
        note("line by line, since the full screen needs: pip install 'isthmus[host]'")
        return False
    return True


async def in_lines(session: "Session", host: "Host", end: asyncio.Event) -> Exit:
    """Talk line by line; questions are asked at the terminal, where there is one."""
    from isthmus.terminal.chat_plain import Aside, Plain, Stream
    from isthmus.terminal.prompt import Prompt

    prompt = Prompt()
    keyboard = typed()
    lines: Lines = Stream() if keyboard is None else keyboard
    approver = prompt if keyboard is None else Aside(prompt, keyboard)
    plain = Plain(session, lines, say=spoken, note=note)
    if keyboard is not None:
        note(f"You talk to {clean(session.voice)}; /help says what can be typed, ^C twice leaves.")

    def interrupted() -> None:
        if not prompt.interrupt():
            plain.interrupt()

    host.attach(approver)
    try:
        with handle_signals({"SIGINT": interrupted}):
            await plain.run_until(end)
    finally:
        host.detach(approver)
        if keyboard is not None:
            keyboard.close()
    return Exit.TOOL_FAILED if plain.failed and keyboard is None else Exit.OK


def typed() -> "Keyboard | None":
    """The keyboard of the terminal; None where lines come from elsewhere, or it is no such one."""
    from isthmus.terminal.chat_plain import Keyboard
    from isthmus.terminal.tty import NoTerminal

    if not sys.stdin.isatty():
        return None
    try:
        return Keyboard()
    except NoTerminal as error:  # then standard input is read, and what is asked is denied
        note(str(error))
        return None


def spoken(text: str) -> None:
    """The model's words on standard output, without what a terminal would obey."""
    print(clean(text) if sys.stdout.isatty() else text, end="", flush=True)
