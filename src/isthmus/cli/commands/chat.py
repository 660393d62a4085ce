"""``isthmus chat``: talk to a model that may use the servers of a host."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Struct

from isthmus.cli.declarations import CommandSet, Option
from isthmus.cli.exit_codes import Exit
from isthmus.cli.exits import finish, handle_signals, set_on_signals
from isthmus.cli.output import print_note
from isthmus.core.text import clean_text
from isthmus.errors import UsageError
from isthmus.lazy import is_installed

if TYPE_CHECKING:
    from isthmus.host.host import Host
    from isthmus.host.providers.provider import Provider
    from isthmus.host.sampling.models import Models
    from isthmus.terminal.chat.plain import LineSource, TtyLines
    from isthmus.terminal.chat.session import ChatModel, ChatSession

app = CommandSet()


@app.command("chat")
def chat(
    *,
    config: Annotated[
        list[str] | None,
        Option(metavar="FILE", help="Configuration; the user's and ./mcp.json by default."),
    ] = None,
    model: Annotated[
        str, Option(metavar="NAME", help="Model; the first available one by default.")
    ] = "",
    provider: Annotated[
        str,
        Option(
            metavar="WHICH",
            help="openai:URL, anthropic, scripted:FILE, or a provider in the models file.",
        ),
    ] = "",
    system: Annotated[str, Option(metavar="TEXT", help="System prompt of the model.")] = "",
    policy: Annotated[
        str, Option(metavar="NAME", help="Policy to use instead of the configured one.")
    ] = "",
    state: Annotated[
        str | None,
        Option(metavar="FOLDER", help="State folder of the host; the user's by default."),
    ] = None,
    attach: Annotated[
        bool,
        Option(
            "--attach/--no-attach",
            help="Also accept answers from isthmus host --attach in another terminal.",
        ),
    ] = True,
    plain: Annotated[
        bool, Option("--plain", help="Print plain lines instead of the full screen.")
    ] = False,
) -> None:
    """Chat with a model that uses your servers; you approve its calls."""
    options = ChatOptions(
        tuple(config or ()), model, provider, system, policy, state, attach=attach, plain=plain
    )
    finish(lambda: run_chat(options))


class ChatOptions(Struct, frozen=True):
    """Options of a conversation; see ``isthmus chat --help``."""

    config: tuple[str, ...] = ()
    model: str = ""
    provider: str = ""
    system: str = ""
    policy: str = ""
    state: str | None = None
    attach: bool = True
    plain: bool = False


async def run_chat(options: ChatOptions) -> Exit:
    """Open the host, and talk until the user leaves.

    Raises:
        UsageError: there is no model, or the command line says what cannot be.
        ConfigError: a file of the configuration cannot be used.
    """
    from isthmus.host.chat.conversation import Conversation
    from isthmus.host.host import Host
    from isthmus.terminal.chat.session import ChatSession

    async with AsyncExitStack() as stack:
        end = stack.enter_context(set_on_signals())
        provider, more = parse_provider(options.provider), dict[str, Any]()
        if provider is not None:  # it also writes for servers that sample, where policy lets them
            stack.push_async_callback(provider.close)
            more["models"] = await make_models(provider, options.model)
            more["providers"] = {provider.name: provider}
        policy = options.policy or None
        host = Host.from_config(*options.config, state=options.state, policy=policy, **more)
        await stack.enter_async_context(host)
        if options.attach:
            await stack.enter_async_context(serve_control(host))
        spec = "" if provider is not None else options.provider
        found, first = list_chat_models(host, spec, options.model)
        voice = found[first]
        talk = Conversation(
            host, voice.provider, voice.model, system=options.system, window=voice.window
        )
        session = ChatSession(host, talk, found, first)
        if can_fill_screen(plain=options.plain):
            from isthmus.terminal.chat.app import show_chat

            await show_chat(session, end=end)
            return Exit.OK
        return await run_in_lines(session, host, end)


@asynccontextmanager
async def serve_control(host: "Host") -> AsyncIterator[None]:
    """Let other terminals attach, where that can be done."""
    from isthmus.host.remote.control import Control, ControlUnavailable, HostRuns

    folder = host.state.folder
    async with AsyncExitStack() as stack:
        try:
            if folder is not None:
                await stack.enter_async_context(Control(host.view, folder))
        except HostRuns:
            print_note(
                "isthmus: a host already runs with this state folder: programs call that host, and this "
                "conversation starts its own servers; --state FOLDER selects another folder"
            )
        except ControlUnavailable:
            pass  # then questions are asked here only
        yield


def can_fill_screen(*, plain: bool) -> bool:
    """Whether there is a screen to fill, and the library that fills it."""
    if plain or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    if not is_installed("textual"):
        print_note("line by line, since the full screen needs: pip install 'isthmus[host]'")
        return False
    return True


async def run_in_lines(session: "ChatSession", host: "Host", end: asyncio.Event) -> Exit:
    """Talk line by line; questions are asked at the terminal, where there is one."""
    from isthmus.terminal.chat.plain import LendingApprover, PlainChat, StdinLines
    from isthmus.terminal.prompt.prompt import TerminalPrompt

    prompt = TerminalPrompt()
    keyboard = open_keyboard()
    lines: LineSource = StdinLines() if keyboard is None else keyboard
    approver = prompt if keyboard is None else LendingApprover(prompt, keyboard)
    plain = PlainChat(session, lines, say=print_model_text, note=print_note)
    if keyboard is not None:
        print_note(
            f"You talk to {clean_text(session.voice)}; /help lists the commands, ^C twice quits."
        )

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


def open_keyboard() -> "TtyLines | None":
    """The keyboard of the terminal; None where lines come from elsewhere, or it is no such one."""
    from isthmus.terminal.chat.plain import TtyLines
    from isthmus.terminal.prompt.tty import NoTerminal

    if not sys.stdin.isatty():
        return None
    try:
        return TtyLines()
    except NoTerminal as error:  # then standard input is read, and what is asked is denied
        print_note(str(error))
        return None


def print_model_text(text: str) -> None:
    """The model's words on standard output, without what a terminal would obey."""
    print(clean_text(text) if sys.stdout.isatty() else text, end="", flush=True)


NO_MODEL_HINT = (
    "no model is known: say --provider openai:URL, --provider anthropic or --provider scripted:FILE, "
    'or name a file of models in the configuration ("host": {"models": "models.toml"})'
)

DEFAULT_CONTEXT_TOKENS = 32_768


def parse_provider(spec: str, environ: Mapping[str, str] = os.environ) -> "Provider | None":
    """The provider that the command line describes; None for the name of one in the file.

    Args:
        spec: what follows ``--provider``.
        environ: where ``OPENAI_API_KEY`` and ``ANTHROPIC_API_KEY`` are looked up.

    Raises:
        UsageError: it is incomplete, or there is no such file.
    """
    from isthmus.auth.tokens.secret import Secret

    kind, _, rest = spec.partition(":")
    if kind == "scripted":
        from isthmus.host.providers.scripted import read_script

        return read_script(rest)
    if kind == "openai":
        if not rest:
            raise UsageError("--provider openai:URL, with the URL that ends in /v1")
        from isthmus.host.providers.openai_compatible import OpenAICompatible

        key = environ.get("OPENAI_API_KEY")
        return OpenAICompatible(rest, Secret(key) if key else None)
    if spec == "anthropic":
        from isthmus.host.providers.anthropic import Anthropic

        key = environ.get("ANTHROPIC_API_KEY")
        if not key:
            raise UsageError("--provider anthropic needs its key in ANTHROPIC_API_KEY")
        return Anthropic(Secret(key))
    return None


async def make_models(provider: "Provider", model: str) -> "Models":
    """The models of a provider of the command line, for the conversation and for servers that sample.

    Args:
        provider: which one.
        model: the one that is wanted; empty for all that it says it has.

    Raises:
        ProviderError: it does not say which it has.
    """
    from isthmus.host.providers.provider import Offered
    from isthmus.host.sampling.models import Model, Models

    offered = [Offered(id=model)] if model else await provider.models()
    return Models(
        [
            Model(
                id=one.id,
                provider=provider.name,
                context=one.context or DEFAULT_CONTEXT_TOKENS,
                tools=True,
            )
            for one in offered
        ],
        source="--provider",
    )


def list_chat_models(host: "Host", spec: str, model: str) -> tuple[dict[str, "ChatModel"], str]:
    """The models there are to talk to, and the one to begin with.

    Args:
        host: has the models.
        spec: the name of a provider; empty for all of them.
        model: the model that is wanted; empty for the first one.

    Raises:
        UsageError: there is none, or no such one.
    """
    from isthmus.terminal.chat.session import ChatModel

    found = {
        one.id: ChatModel(host.providers[one.provider], one.called, one.context)
        for one in host.models
        if one.enabled and one.provider in host.providers and spec in {"", one.provider}
    }
    if not found:
        raise UsageError(f"there is no provider {spec!r}" if spec else NO_MODEL_HINT)
    if model and model not in found:
        raise UsageError(f"there is no model {model!r}: {', '.join(found)}")
    return found, model or next(iter(found))
