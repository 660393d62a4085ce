"""The session of a conversation: what each line or command that is typed does, on either surface."""

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, TypeAlias, get_args

from msgspec import Struct

from isthmus.cards.lines import (
    StyledLine,
    display_name,
    error_lines,
    field_line,
    first_sentence,
    format_audit_line,
    head_line,
    warning_line,
)
from isthmus.errors import IsthmusError, UsageError
from isthmus.host.chat.conversation import Conversation
from isthmus.host.model.attempt import Attempt
from isthmus.host.model.errors import Unknown
from isthmus.host.model.view import ServerDo
from isthmus.host.providers.provider import Provider
from isthmus.host.remote.view import HostView
from isthmus.host.turns import ConversationEvent, ToolDone
from isthmus.runtime.sorted_ids import new_id
from isthmus.terminal.chat.completion import (
    COMMANDS,
    find_attached,
    parse_prompt_arguments,
    split_words,
)
from isthmus.terminal.chat.lines import describe_result
from isthmus.wire import Prompt

if TYPE_CHECKING:
    from isthmus.host.host import Host

MAX_CONTEXT_TOKENS = 8_000  # of the context that goes along with the words of the user

ChatItem: TypeAlias = StyledLine | ConversationEvent
"""What a surface shows: a line of ours, or what happens in the conversation."""


class ChatModel(Struct, frozen=True):
    """A model that may be talked to.

    Attributes:
        provider: has it write.
        model: the provider's name of it.
        window: tokens that it reads at most; 0 where that is not known.
    """

    provider: Provider
    model: str
    window: int = 0


class ChatSession:
    """A conversation at a terminal, with its commands.

    Args:
        host: has the servers.
        talk: the conversation.
        voices: the models there are, by the name that people use.
        voice: the name of the one in use.

    Attributes:
        quitting: whether the user wants to leave.
        voice: see above.
    """

    def __init__(
        self, host: "Host", talk: Conversation, voices: Mapping[str, ChatModel], voice: str
    ) -> None:
        self.host = host
        self.talk = talk
        self.voice = voice
        self.quitting = False
        self._voices = voices
        self._last: ToolDone | None = None

    @property
    def view(self) -> HostView:
        """The host, as surfaces see it."""
        return self.host.view

    def concerns(self) -> Sequence[StyledLine]:
        """Faults of the configuration, which a person should know from the beginning."""
        broken = [f"{server}: {why}" for server, why in self.host.config.broken.items()]
        policy = self.host.core.pipeline.policy.broken
        return [line for text in (*policy, *broken) for line in error_lines(text)]

    async def enter(self, text: str) -> AsyncGenerator[ChatItem, None]:
        """Do what a line says; never raises for what is wrong with it.

        Args:
            text: what was typed: a command, or words for the model.
        """
        text = text.strip()
        try:
            async with aclosing(self._enter(text)) as items:
                async for item in items:
                    if isinstance(item, ToolDone):
                        self._last = item
                    yield item
        except IsthmusError as error:
            for line in error_lines(str(error)):
                yield line

    async def _enter(self, text: str) -> AsyncGenerator[ChatItem, None]:
        if text.startswith("/"):
            async for item in self._command(*split_words(text[1:]) or [""]):
                yield item
        elif text:
            async for item in self._attach(text):
                yield item
            async with aclosing(self.talk.say(text)) as events:
                async for event in events:
                    yield event

    async def _attach(self, text: str) -> AsyncGenerator[ChatItem, None]:
        for resource in find_attached(text):
            try:
                self.host.catalog.resolve_resource(resource, self.talk.viewer)
            except Unknown:
                continue  # somebody's name, an address: not everything with an @ is a resource
            got = await self.talk.attach(resource)
            yield StyledLine(
                f"* attached {display_name(got.uri)} of {got.server}, {got.tokens} tokens", "head"
            )

    # Commands

    async def _command(self, word: str, *words: str) -> AsyncGenerator[ChatItem, None]:
        if word == "quit":
            self.quitting = True
        elif word in COMMANDS:
            lines = await getattr(self, f"_on_{word}")(*words)
            for line in lines:
                yield line
        else:
            arguments = parse_prompt_arguments(await self._prompt(word), words)
            async with aclosing(self.talk.prompt(word, arguments)) as events:
                async for event in events:
                    yield event

    async def _prompt(self, word: str) -> Prompt:
        try:
            await self.host.catalog.find_prompt(word, self.talk.viewer)
        except Unknown as error:
            text = f"there is no command /{word}: /help lists the commands"
            raise UsageError(text) from error
        return next(
            item.what for item in self.host.catalog.prompts(self.talk.viewer) if item.name == word
        )

    async def _on_help(self, *_words: str) -> Iterator[StyledLine]:
        rows = [field_line(f"/{word}", about) for word, about in COMMANDS.items()]
        more = [
            field_line("/SERVER__PROMPT name=value", "takes a server's prompt"),
            field_line("@SERVER+URI", "attaches a resource to your message"),
        ]
        return iter([head_line("what can be typed"), *rows, *more])

    async def _on_servers(self, *words: str) -> Sequence[StyledLine]:
        if words:
            if len(words) != 2 or words[0] not in get_args(ServerDo):
                raise UsageError(f"/servers {'|'.join(get_args(ServerDo))} NAME")
            what: ServerDo = words[0]  # type: ignore[assignment] # the check above
            await self.view.server_do(words[1], what, by="terminal")
        found = [
            StyledLine(
                f"  {display_name(one.name)}: {one.state}"
                + (f", {one.tools} tools" if one.tools is not None else "")
                + (f": {first_sentence(one.error)}" if one.error else ""),
                "warn" if one.error else "text",
            )
            for one in self.view.servers()
        ]
        return [head_line("servers"), *(found or [StyledLine("  none", "dim")])]

    async def _on_tools(self, *_words: str) -> Sequence[StyledLine]:
        offer = await self.host.catalog.for_model(
            self.talk.principal, run=self.talk.run.id, window=self.talk.window
        )
        tools = [
            StyledLine(
                f"  {tool.name}: {display_name(' '.join((tool.description or '').split())[:100])}"
            )
            for tool in offer.tools
        ]
        left = [warning_line(f"{one.name} is left out: {one.reason}") for one in offer.left_out]
        absent = [
            line for server, why in offer.absent.items() for line in error_lines(f"{server}: {why}")
        ]
        searched = [
            StyledLine(f"  and {offer.found} more, which the model finds by searching with them")
        ]
        whole = searched if offer.searching else []
        return [head_line(f"tools, about {offer.tokens} tokens"), *tools, *whole, *left, *absent]

    async def _on_review(self, *words: str) -> Sequence[StyledLine]:
        if len(words) != 1:
            raise UsageError("/review NAME, with the name that /tools shows")
        talk, servers = self.talk, self.host.parts.servers
        server, own = await self.host.catalog.find(words[0], talk.viewer)
        attempt = Attempt(
            id=new_id(),
            action="tool.call",
            principal=talk.principal,
            server=server,
            object=own,
            run=talk.run.id,
            isolation=servers.isolation(server, talk.principal, talk.run.id),
        )
        await servers.find_tool(attempt)  # asks, where it is not what it was
        return [StyledLine(f"  {display_name(words[0])} is released.")]

    async def _on_prompts(self, *_words: str) -> Sequence[StyledLine]:
        await self.host.catalog.load(isolation=self.talk.viewer)
        found = [
            StyledLine(
                f"  /{item.name}"
                + "".join(
                    f" {one.name}=…" if one.required else f" [{one.name}=…]"
                    for one in item.what.arguments or ()
                )
                + (f": {item.what.description}" if item.what.description else "")
            )
            for item in self.host.catalog.prompts(self.talk.viewer)
        ]
        return [head_line("prompts"), *(StyledLine(display_name(line.text)) for line in found)]

    async def _on_resources(self, *_words: str) -> Sequence[StyledLine]:
        await self.host.catalog.load(isolation=self.talk.viewer)
        found = [
            field_line(f"@{item.name}", item.what.name)
            for item in self.host.catalog.resources(self.talk.viewer)
        ]
        return [head_line("resources"), *found]

    async def _on_context(self, *words: str) -> Sequence[StyledLine]:
        talk = self.talk
        built = await self.host.context.build(
            " ".join(words),
            budget_tokens=MAX_CONTEXT_TOKENS,
            to=talk.voice,
            run=talk.run,
            principal=talk.principal,
            instructions=False,  # they go along in any case
            resources=True,
        )
        talk.enclose(built.messages)
        manifest = built.manifest
        rows = [
            StyledLine(
                f"  {one.state:9} {one.tokens:6}  {display_name(one.server)} {display_name(one.uri)}: "
                f"{display_name(one.reason)}",
                "dim" if one.state == "dropped" else "text",
            )
            for one in manifest.placed
        ]
        said = f"{manifest.tokens} of {manifest.budget} tokens are attached to your next message"
        return [
            head_line(f"{said} ({manifest.counter})"),
            *(rows or [StyledLine("  nothing", "dim")]),
        ]

    async def _on_grants(self, *words: str) -> Sequence[StyledLine]:
        if words:
            if len(words) != 2 or words[0] != "revoke":
                raise UsageError("/grants revoke ID")
            gone = await self.view.revoke(words[1], by="terminal")
            return [
                StyledLine(f"  {'ended' if gone else 'there is no grant'} {display_name(words[1])}")
            ]
        found = [
            StyledLine(
                f"  {one.id}  {one.scope}  {display_name(one.server)} {display_name(one.object)}"
                f" {display_name(one.text)}{' (ended)' if one.ended else ''}"
            )
            for one in await self.view.grants()
        ]
        return [head_line("grants"), *(found or [StyledLine("  none", "dim")])]

    async def _on_audit(self, *words: str) -> Sequence[StyledLine]:
        count = int(words[0]) if words and words[0].isdecimal() else 20
        rows = await self.view.audit_tail(min(count, 500))
        return [head_line("audit log"), *(format_audit_line(row) for row in rows)]

    async def _on_model(self, *words: str) -> Sequence[StyledLine]:
        if words:
            voice = self._voices.get(words[0])
            if voice is None:
                raise UsageError(f"there is no model {words[0]!r}: {', '.join(self._voices)}")
            self.talk.provider, self.talk.model = voice.provider, voice.model
            self.talk.window = voice.window
            self.voice = words[0]
        rows = [
            StyledLine(f"  {'>' if id == self.voice else ' '} {display_name(id)}")
            for id in self._voices
        ]
        return [head_line("models"), *rows]

    async def _on_show(self, *_words: str) -> Sequence[StyledLine]:
        if self._last is None:
            return [StyledLine("  no tool was called yet", "dim")]
        return [
            head_line(f"what {display_name(self._last.name)} gave"),
            *describe_result(self._last.result),
        ]

    async def _on_clear(self, *_words: str) -> Sequence[StyledLine]:
        self.talk.clear()
        return [StyledLine("  Forgotten. The consumption of the run still counts.", "dim")]
