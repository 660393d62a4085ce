"""A conversation of a user with a model that may use the tools of a host."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Struct

from isthmus.core.sampling import list_blocks
from isthmus.errors import IsthmusError, UsageError
from isthmus.host.catalog.names import Viewer
from isthmus.host.catalog.offer import ToolOffer
from isthmus.host.chat.tool_replies import (
    add_rest_tool,
    assign_distinct_ids,
    explain_error,
    make_refusal,
    make_tool_result,
    resolve_tool_use,
)
from isthmus.host.chat.turn_events import (
    ConversationEvent,
    Ended,
    Inserted,
    Noted,
    Question,
    Text,
    ToolAsked,
    ToolDone,
    ToolRunning,
    Why,
)
from isthmus.host.model.attempt import asked_by
from isthmus.host.model.errors import Unknown
from isthmus.host.model.events import QuestionAsked
from isthmus.host.model.framing import add_instructions, make_prompt_blocks, make_resource_blocks
from isthmus.host.model.tokens import estimate_tokens, has_media
from isthmus.host.pipeline.pipeline import ActOutcome
from isthmus.host.providers.provider import Completion, Delta, Done, Provider
from isthmus.wire import (
    ProgressParams,
    SamplingMessage,
    SamplingMessageContentBlock,
    TextContent,
    ToolChoice,
    ToolResultContent,
    ToolUseContent,
)

if TYPE_CHECKING:
    from isthmus.host.host import Host
    from isthmus.host.pipeline.runs import Budget, Run

MAX_CALLS_AT_ONCE = 8

MAX_CALLS_OF_ANSWER = 64  # those beyond are answered without being made

PutEvent = Callable[[ConversationEvent], None]


class AttachedResource(Struct, frozen=True, kw_only=True):
    """A resource that goes along with the user's next words.

    Attributes:
        server: whose it is.
        uri: which one.
        tokens: what it takes, estimated.
    """

    server: str
    uri: str
    tokens: int


class Conversation:
    """The user speaks, the model answers, and on the way it may use tools.

    Each call of a tool goes through the host, so that policy, and where it says so the user,
    decides on it. What is denied, unknown or fails is told to the model; it never ends the turn.
    At any time each use of a tool in the history has its result.

    Example::

        talk = Conversation(host, provider, "some-model", system="Be brief.")
        async for event in talk.say("What is in my notes?"):
            if isinstance(event, Text):
                print(event.text, end="")

    Args:
        host: has the servers.
        provider: has the model write.
        model: the provider's name of the model.
        system: what the model is told of its task.
        principal: whose conversation it is.
        run: what its calls belong to; a run of its own by default.
        budget: what that run may do in all.
        max_rounds: how often in one turn the model may use tools before it has to answer.
        max_tokens: the most that it may write at a time.
        tool_tokens: what the definitions of tools may take; None for any number.
        window: tokens that the model reads at most, of which definitions of tools may take a part
            before they are searched; 0 where that is not known.
        temperature: on the provider's scale; None for the provider's own.
        instructions: whether the model is told how servers say they are used.

    Attributes:
        messages: what has been said, the oldest first.
        model: may be another one from the next turn on; so may ``provider``.
    """

    def __init__(
        self,
        host: "Host",
        provider: Provider,
        model: str,
        *,
        system: str = "",
        principal: str = "user:local",
        run: "Run | None" = None,
        budget: "Budget | None" = None,
        max_rounds: int = 20,
        max_tokens: int = 4096,
        tool_tokens: int | None = None,
        window: int = 0,
        temperature: float | None = None,
        instructions: bool = True,
    ) -> None:
        self.host = host
        self.provider = provider
        self.model = model
        self.system = system
        self.principal = principal
        self.run = host.run(principal, budget=budget) if run is None else run
        self.messages: list[SamplingMessage] = []
        self._max_rounds = max_rounds
        self._max_tokens = max_tokens
        self._tool_tokens = tool_tokens
        self.window = window
        self._temperature = temperature
        self._instructions = instructions
        self._attached: list[SamplingMessageContentBlock] = []
        self._turn: asyncio.Task[None] | None = None
        self._noted = ""
        self._offer: ToolOffer | None = None

    # What the user does

    async def say(self, text: str) -> AsyncGenerator[ConversationEvent, None]:
        """Send ``text`` of the user to the model; gives the events until it has answered.

        Leaving the loop early, or :meth:`cancel`, stops the turn.

        Args:
            text: the user's words.

        Raises:
            UsageError: the turn before is not over.
        """
        async with aclosing(self._take_turn(lambda _put: self._said(text))) as events:
            async for event in events:
                yield event

    async def prompt(
        self, name: str, arguments: Mapping[str, str] | None = None
    ) -> AsyncGenerator[ConversationEvent, None]:
        """Send a prompt of a server to the model; gives the events until it has answered.

        Args:
            name: its name in the catalog.
            arguments: values by name.

        Raises:
            UsageError: the turn before is not over.
        """

        async def fetch(put: PutEvent) -> bool:
            server, _ = await self.host.catalog.find_prompt(name, self.viewer)
            found = await self.host.prompt(name, arguments, principal=self.principal, run=self.run)
            messages = tuple(
                SamplingMessage(role=m.role, content=make_prompt_blocks(server, m.content))
                for m in found.messages
            )
            for message in messages:
                self._add(message.role, list_blocks(message.content))
            put(Inserted(name=name, messages=messages))
            return bool(messages) and messages[-1].role == "user"

        async with aclosing(self._take_turn(fetch)) as events:
            async for event in events:
                yield event

    async def attach(self, text: str) -> AttachedResource:
        """Attach a resource to the next words of the user.

        Args:
            text: ``server+uri``, or a URI that one server lists.

        Raises:
            Unknown: no server has it.
            HostError: it may not be read.
            IsthmusError: the server refused, failed or was lost.
        """
        server, uri = self.host.catalog.resolve_resource(text, self.viewer)
        found = await self.host.read(uri, server=server, principal=self.principal, run=self.run)
        parts = make_resource_blocks(server, found.contents)
        self._attached += parts
        return AttachedResource(
            server=server, uri=uri, tokens=sum(estimate_tokens(part) for part in parts)
        )

    def cancel(self) -> None:
        """Stop the turn that is under way: calls are cancelled, and its last event comes."""
        if self._turn is not None:
            self._turn.cancel()

    def clear(self) -> None:
        """Forget what was said; labels and budget of the run stay."""
        self.messages.clear()
        self._attached.clear()

    @property
    def viewer(self) -> Viewer:
        """The viewer of what servers have: on the connections that the calls will use."""
        return Viewer(self.principal, self.run.id)

    @property
    def voice(self) -> str:
        """The model that writes: ``provider/model``."""
        return f"{self.provider.name}/{self.model}"

    def enclose(self, messages: Sequence[SamplingMessage]) -> None:
        """Attach ``messages``, a context that was built, to the user's next words.

        Args:
            messages: the messages of the context, oldest first.
        """
        for message in messages:
            self._attached += list_blocks(message.content)

    @property
    def busy(self) -> bool:
        """Whether a turn is under way."""
        return self._turn is not None

    # A turn

    async def _said(self, text: str) -> bool:
        self._add("user", [*self._attached, TextContent(text=text)])
        self._attached.clear()
        return True

    async def _take_turn(
        self, begin: Callable[[PutEvent], Awaitable[bool]]
    ) -> AsyncGenerator[ConversationEvent, None]:
        if self._turn is not None:
            raise UsageError("the previous turn has not ended: cancel() stops it")
        events = TurnQueue()
        listening = asyncio.ensure_future(self._listen(events.tell))
        turn = self._turn = asyncio.ensure_future(self._whole(begin, events.tell))
        # A task that is cancelled before it began says nothing itself.
        turn.add_done_callback(lambda _: events.tell(Ended(why="cancelled")))
        try:
            event: ConversationEvent = Noted("")
            while not isinstance(event, Ended):
                event = await events.get()
                yield event
        finally:
            listening.cancel()
            turn.cancel()
            await asyncio.gather(listening, turn, return_exceptions=True)
            self._turn = None

    async def _listen(self, put: PutEvent) -> None:
        """Tell of questions to a person that belong to this conversation."""
        async with aclosing(self.host.events()) as events:
            async for event in events:
                if (
                    isinstance(event, QuestionAsked)
                    and event.interaction.attempt.run == self.run.id
                ):
                    put(Question(event.interaction))

    async def _whole(self, begin: Callable[[PutEvent], Awaitable[bool]], put: PutEvent) -> None:
        """A turn to its end, which is one event in any case."""
        turn = ConversationTurn(put)
        why: Why = "failed"
        reason = ""
        try:
            why = await self._rounds(turn) if await begin(put) else "done"
        except asyncio.CancelledError:
            why = "cancelled"
        except IsthmusError as error:
            reason = str(error)
        except Exception as error:  # a bug must not take the user's conversation with it
            import logging

            logging.getLogger("isthmus").exception("a turn of a conversation failed")
            reason = f"isthmus itself failed: {type(error).__name__}: {error}"
        finally:
            self._settle(why)
            put(turn.ended(why, reason))

    async def _rounds(self, turn: "ConversationTurn") -> Why:
        offer = await self._offered()
        if offer.note and offer.note != self._noted:
            turn.put(Noted(offer.missing))
        self._noted = offer.note
        for number in range(self._max_rounds + 1):
            if self._spent():
                return "budget"
            offer = add_rest_tool(offer, self.messages)
            last = number == self._max_rounds
            done = await self._ask(offer, turn, last=last)
            uses = [p for p in list_blocks(self.messages[-1].content) if type(p) is ToolUseContent]
            if not uses:
                return "length" if done.result.stop_reason == "maxTokens" else "done"
            offer = await self._renewed(offer, uses)
            await self._use(uses, {tool.name for tool in offer.tools}, turn, run=not last)
        return "rounds"

    async def _offered(self) -> ToolOffer:
        """The tools that the model is given."""
        self._offer = await self.host.catalog.for_model(
            self.principal,
            run=self.run.id,
            budget_tokens=self._tool_tokens,
            window=self.window,
            before=self._offer,
            is_held=lambda: bool(self.host.view.pending()),
        )
        return self._offer

    async def _renewed(self, offer: ToolOffer, uses: Sequence[ToolUseContent]) -> ToolOffer:
        """The same, with what has only just appeared: a result may have told the model of it."""
        known = {tool.name for tool in offer.tools}
        unknown = [use.name for use in uses if use.name not in known]
        for name in unknown:
            with suppress(Unknown):
                await self.host.catalog.find(name, self.viewer)
        return add_rest_tool(await self._offered(), self.messages) if unknown else offer

    def _spent(self) -> bool:
        most = self.run.budget.tokens
        return most is not None and self.run.tokens >= most

    async def _ask(self, offer: ToolOffer, turn: "ConversationTurn", *, last: bool) -> Done:
        """One message of the model, added to the history as far as it came."""
        instructions = self.host.catalog.instructions(self.viewer) if self._instructions else {}
        completion = Completion(
            model=self.model,
            messages=list(self.messages),
            max_tokens=self._max_tokens,
            system=add_instructions(self.system, instructions, offer.note) or None,
            tools=offer.tools,
            tool_choice=ToolChoice(mode="none") if last and offer.tools else None,
            temperature=self._temperature,
        )
        done: Done | None = None
        written: list[str] = []
        try:
            async with aclosing(self.provider.complete(completion)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, Delta):
                        written.append(piece.text)
                        turn.text(piece.text)
                    else:
                        done = piece
        finally:
            if done is None and written:
                self._add("assistant", [TextContent(text="".join(written))])
        if done is None:
            raise UsageError(f"the provider {self.provider.name!r} gave no message")
        parts = assign_distinct_ids(list_blocks(done.result.content))
        if not written:
            turn.text("".join(p.text for p in parts if isinstance(p, TextContent)))
        self._add("assistant", parts)
        self._count(completion, done, turn)
        return done

    def _count(self, completion: Completion, done: Done, turn: "ConversationTurn") -> None:
        read, wrote = done.tokens_in, done.tokens_out
        if read is None:
            read = estimate_tokens([completion.system, completion.messages, completion.tools])
        if wrote is None:
            wrote = estimate_tokens(done.result.content)
        elif not has_media(completion.messages):
            seen = [completion.system, completion.messages, completion.tools]
            self.host.estimators.of(self.voice).learn(len(msgspec.json.encode(seen)), read)
        turn.tokens_in += read
        turn.tokens_out += wrote
        self.run.spend(ActOutcome(tokens_in=read, tokens_out=wrote))

    # Tools

    async def _use(
        self,
        uses: Sequence[ToolUseContent],
        known: set[str],
        turn: "ConversationTurn",
        *,
        run: bool,
    ) -> None:
        """Make the calls of one message together; each has its result in the history after it."""
        results: dict[str, ToolResultContent] = {}
        room = asyncio.Semaphore(MAX_CALLS_AT_ONCE)
        for use in uses:
            turn.put(self._asked(use, known))

        async def one(use: ToolUseContent) -> None:
            async with room:
                done = await self._call(use, known, turn.put)
                results[use.id] = done.result
                turn.put(done)

        beyond = uses[MAX_CALLS_OF_ANSWER:] if run else uses
        for use in beyond:
            refused = make_refusal(
                use, "it was not called: too many calls, answer with what there is"
            )
            results[use.id] = refused.result
            turn.put(refused)
        tasks = [asyncio.ensure_future(one(use)) for use in uses[: len(uses) - len(beyond)]]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            try:
                await asyncio.gather(*tasks, return_exceptions=True)
            finally:  # also where the user has no patience for that, either
                self._answer(uses, results, turn.put)

    def _answer(
        self, uses: Sequence[ToolUseContent], results: dict[str, ToolResultContent], put: PutEvent
    ) -> None:
        """Put the results into the history; calls that were stopped have one, too."""
        stopped = "the user stopped this call; whether it had an effect is not known"
        for use in uses:
            if use.id not in results:
                done = make_refusal(use, stopped, "Cancelled")
                results[use.id] = done.result
                put(done)
        self._add("user", [results[use.id] for use in uses])

    def _asked(self, use: ToolUseContent, known: set[str]) -> ToolAsked:
        name, arguments = resolve_tool_use(use) if use.name in known else ("", use.input)
        try:
            server, own = self.host.catalog.resolve(name, self.viewer) if name else ("", "")
        except Unknown:  # it went while the model was writing
            server, own = "", ""
        if not server:
            arguments = use.input
        return ToolAsked(id=use.id, name=use.name, server=server, tool=own, arguments=arguments)

    async def _call(self, use: ToolUseContent, known: set[str], put: PutEvent) -> ToolDone:
        """Call a tool; whatever becomes of it is something that the model can read."""
        if use.name not in known:
            near = ", ".join(sorted(known)[:20])
            asked = use.name[:100]
            return make_refusal(use, f"there is no tool {asked!r}; there are: {near}", "Unknown")

        def progress(params: ProgressParams) -> None:
            total = None if params.total is UNSET else params.total
            said = (params.message or "")[:1_000]
            put(ToolRunning(id=use.id, progress=params.progress, total=total, message=said))

        try:
            with asked_by(f"the model {self.model} in a conversation"):
                result = await self.host.call(
                    use.name,
                    use.input,
                    principal=self.principal,
                    run=self.run,
                    on_progress=progress,
                )
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return make_refusal(use, "the call was cancelled", "Cancelled")
        except IsthmusError as error:
            return make_refusal(use, explain_error(error), type(error).__name__)
        except Exception as error:  # a bug of ours in one call is no end of the conversation
            import logging

            logging.getLogger("isthmus").exception("a call in a conversation failed")
            return make_refusal(
                use, f"the call failed: {type(error).__name__}", type(error).__name__
            )
        return ToolDone(
            id=use.id,
            name=use.name,
            result=make_tool_result(use, result.wire),
            failed=result.is_error,
        )

    # The history

    def _add(self, role: Any, parts: Sequence[SamplingMessageContentBlock]) -> None:
        """Add a message; two of the user's in a row are one, since models expect turns."""
        last = self.messages[-1] if self.messages else None
        if last is not None and last.role == role and not _find_results(last):
            parts = [*list_blocks(last.content), *parts]
            self.messages[-1] = SamplingMessage(role=role, content=parts)
            return
        if last is not None and last.role == role:
            self._settle("failed")
        self.messages.append(SamplingMessage(role=role, content=list(parts)))

    def _settle(self, why: Why) -> None:
        """See that the user can speak next: every turn of theirs has an answer."""
        if not self.messages or self.messages[-1].role == "assistant":
            return
        text = "[stopped by the user]" if why == "cancelled" else "[no answer]"
        self.messages.append(SamplingMessage(role="assistant", content=[TextContent(text=text)]))


class ConversationTurn:
    """Counts of a turn while it goes on.

    Args:
        put: tells of an event.
    """

    def __init__(self, put: PutEvent) -> None:
        self.put = put
        self.tokens_in = 0
        self.tokens_out = 0
        self._written: list[str] = []

    def text(self, text: str) -> None:
        """The model has written something."""
        if text:
            self._written.append(text)
            self.put(Text(text))

    def ended(self, why: Why, reason: str) -> Ended:
        """The last event."""
        return Ended(
            why=why,
            text="".join(self._written),
            reason=reason,
            tokens_in=self.tokens_in,
            tokens_out=self.tokens_out,
        )


def _find_results(message: SamplingMessage) -> bool:
    return any(type(part) is ToolResultContent for part in list_blocks(message.content))


MAX_WAITING_EVENTS = 1_000  # then a slow face is spared the progress of servers


class TurnQueue(asyncio.Queue[ConversationEvent]):
    """Events on their way to whoever shows them."""

    def tell(self, event: ConversationEvent) -> None:
        """One more; progress is left out where there is no end of it."""
        if not isinstance(event, ToolRunning) or self.qsize() < MAX_WAITING_EVENTS:
            self.put_nowait(event)
