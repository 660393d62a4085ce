"""What a line that somebody types in a conversation does, whichever surface it was typed into."""

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, TypeAlias, get_args

from msgspec import Struct

from isthmus.errors import IsthmusError, UsageError
from isthmus.host.attempt import Attempt, new_id
from isthmus.host.conversation import Conversation
from isthmus.host.errors import Unknown
from isthmus.host.providers.provider import Provider
from isthmus.host.turns import ConversationEvent, ToolDone
from isthmus.host.view import HostView, ServerDo
from isthmus.terminal.chat_lines import shown
from isthmus.terminal.chat_typing import COMMANDS, filled, named_resources, words_of
from isthmus.terminal.lines import Line, brief, field, head, name, trouble, warning
from isthmus.terminal.rows import written
from isthmus.wire import Prompt

if TYPE_CHECKING:
    from isthmus.host.host import Host

__all__ = ["Item", "Session", "Voice"]

CONTEXT = 8_000
"""Tokens of a context that somebody has go along with their words."""

Item: TypeAlias = Line | ConversationEvent
"""What a surface shows: a line of ours, or what happens in the conversation."""


class Voice(Struct, frozen=True):
    """A model that may be talked to.

    Attributes:
        provider: has it write.
        model: the provider's name of it.
        window: tokens that it reads at most; 0 where that is not known.
    """

    provider: Provider
    model: str
    window: int = 0


class Session:
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
        self, host: "Host", talk: Conversation, voices: Mapping[str, Voice], voice: str
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

    def concerns(self) -> Sequence[Line]:
        """What a person should know from the beginning: what of the configuration cannot be used."""
        broken = [f"{server}: {why}" for server, why in self.host.config.broken.items()]
        policy = self.host.kernel.pipeline.policy.broken
        return [line for text in (*policy, *broken) for line in trouble(text)]

    async def enter(self, text: str) -> AsyncGenerator[Item, None]:
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
            for line in trouble(str(error)):
                yield line

    async def _enter(self, text: str) -> AsyncGenerator[Item, None]:
        if text.startswith("/"):
            async for item in self._command(*words_of(text[1:]) or [""]):
                yield item
        elif text:
            async for item in self._attach(text):
                yield item
            async with aclosing(self.talk.say(text)) as events:
                async for event in events:
                    yield event

    async def _attach(self, text: str) -> AsyncGenerator[Item, None]:
        for resource in named_resources(text):
            try:
                self.host.catalog.resolve_resource(resource, self.talk.viewer)
            except Unknown:
                continue  # somebody's name, an address: not everything with an @ is a resource
            got = await self.talk.attach(resource)
            yield Line(f"* attached {name(got.uri)} of {got.server}, {got.tokens} tokens", "head")

    # Commands

    async def _command(self, word: str, *words: str) -> AsyncGenerator[Item, None]:
        if word == "quit":
            self.quitting = True
        elif word in COMMANDS:
            lines = await getattr(self, f"_on_{word}")(*words)
            for line in lines:
                yield line
        else:
            arguments = filled(await self._prompt(word), words)
            async with aclosing(self.talk.prompt(word, arguments)) as events:
                async for event in events:
                    yield event

    async def _prompt(self, word: str) -> Prompt:
        try:
            await self.host.catalog.find_prompt(word, self.talk.viewer)
        except Unknown as error:
            text = f"there is no command /{word}: /help says what there is"
            raise UsageError(text) from error
        return next(
            item.what for item in self.host.catalog.prompts(self.talk.viewer) if item.name == word
        )

    async def _on_help(self, *_words: str) -> Iterator[Line]:
        rows = [field(f"/{word}", about) for word, about in COMMANDS.items()]
        more = [
            field("/SERVER__PROMPT name=value", "takes a server's prompt"),
            field("@SERVER+URI", "attaches a resource to your words"),
        ]
        return iter([head("what can be typed"), *rows, *more])

    async def _on_servers(self, *words: str) -> Sequence[Line]:
        if words:
            if len(words) != 2 or words[0] not in get_args(ServerDo):
                raise UsageError(f"/servers {'|'.join(get_args(ServerDo))} NAME")
            what: ServerDo = words[0]  # type: ignore[assignment] # the check above
            await self.view.server_do(words[1], what)
        found = [
            Line(
                f"  {name(one.name)}: {one.state}"
                + (f", {one.tools} tools" if one.tools is not None else "")
                + (f": {brief(one.error)}" if one.error else ""),
                "warn" if one.error else "text",
            )
            for one in self.view.servers()
        ]
        return [head("servers"), *(found or [Line("  none", "dim")])]

    async def _on_tools(self, *_words: str) -> Sequence[Line]:
        offer = await self.host.catalog.for_model(
            self.talk.principal, run=self.talk.run.id, window=self.talk.window
        )
        tools = [
            Line(f"  {tool.name}: {name(' '.join((tool.description or '').split())[:100])}")
            for tool in offer.tools
        ]
        left = [warning(f"{one.name} is left out: {one.reason}") for one in offer.left_out]
        absent = [
            line for server, why in offer.absent.items() for line in trouble(f"{server}: {why}")
        ]
        searched = [Line(f"  and {offer.found} that the model finds by these, by searching")]
        whole = searched if offer.searching else []
        return [head(f"tools, about {offer.tokens} tokens"), *tools, *whole, *left, *absent]

    async def _on_review(self, *words: str) -> Sequence[Line]:
        if len(words) != 1:
            raise UsageError("/review NAME, with the name that /tools shows")
        talk, servers = self.talk, self.host.kernel.servers
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
        await servers.known(attempt)  # asks, where it is not what it was
        return [Line(f"  {name(words[0])} may be used as it is now.")]

    async def _on_prompts(self, *_words: str) -> Sequence[Line]:
        await self.host.catalog.load(isolation=self.talk.viewer)
        found = [
            Line(
                f"  /{item.name}"
                + "".join(
                    f" {one.name}=…" if one.required else f" [{one.name}=…]"
                    for one in item.what.arguments or ()
                )
                + (f": {item.what.description}" if item.what.description else "")
            )
            for item in self.host.catalog.prompts(self.talk.viewer)
        ]
        return [head("prompts"), *(Line(name(line.text)) for line in found)]

    async def _on_resources(self, *_words: str) -> Sequence[Line]:
        await self.host.catalog.load(isolation=self.talk.viewer)
        found = [
            field(f"@{item.name}", item.what.name)
            for item in self.host.catalog.resources(self.talk.viewer)
        ]
        return [head("resources"), *found]

    async def _on_context(self, *words: str) -> Sequence[Line]:
        talk = self.talk
        built = await self.host.context.build(
            " ".join(words),
            budget_tokens=CONTEXT,
            to=talk.voice,
            run=talk.run,
            principal=talk.principal,
            instructions=False,  # they go along in any case
            resources=True,
        )
        talk.enclose(built.messages)
        manifest = built.manifest
        rows = [
            Line(
                f"  {one.state:9} {one.tokens:6}  {name(one.server)} {name(one.uri)}: "
                f"{name(one.reason)}",
                "dim" if one.state == "dropped" else "text",
            )
            for one in manifest.placed
        ]
        said = f"{manifest.tokens} of {manifest.budget} tokens go along with your next words"
        return [head(f"{said} ({manifest.counter})"), *(rows or [Line("  nothing", "dim")])]

    async def _on_grants(self, *words: str) -> Sequence[Line]:
        if words:
            if len(words) != 2 or words[0] != "revoke":
                raise UsageError("/grants revoke ID")
            gone = await self.view.revoke(words[1])
            return [Line(f"  {'ended' if gone else 'there is no grant'} {name(words[1])}")]
        found = [
            Line(
                f"  {one.id}  {one.scope}  {name(one.server)} {name(one.object)}"
                f" {name(one.text)}{' (ended)' if one.ended else ''}"
            )
            for one in await self.view.grants()
        ]
        return [head("grants"), *(found or [Line("  none", "dim")])]

    async def _on_audit(self, *words: str) -> Sequence[Line]:
        count = int(words[0]) if words and words[0].isdecimal() else 20
        rows = await self.view.audit_tail(min(count, 500))
        return [head("audit log"), *(written(row) for row in rows)]

    async def _on_model(self, *words: str) -> Sequence[Line]:
        if words:
            voice = self._voices.get(words[0])
            if voice is None:
                raise UsageError(f"there is no model {words[0]!r}: {', '.join(self._voices)}")
            self.talk.provider, self.talk.model = voice.provider, voice.model
            self.talk.window = voice.window
            self.voice = words[0]
        rows = [Line(f"  {'>' if id == self.voice else ' '} {name(id)}") for id in self._voices]
        return [head("models"), *rows]

    async def _on_show(self, *_words: str) -> Sequence[Line]:
        if self._last is None:
            return [Line("  no tool was called yet", "dim")]
        return [head(f"what {name(self._last.name)} gave"), *shown(self._last.result)]

    async def _on_clear(self, *_words: str) -> Sequence[Line]:
        self.talk.clear()
        return [Line("  Forgotten. What the run has consumed still counts.", "dim")]
