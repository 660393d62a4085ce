"""How a client answers what a server asks: one table, whichever way the question came.

Up to 2025-11-25 a question is a request of the server's own and arrives through the router; since
2026-07-28 it lies in the result of our call and its answer goes into the next attempt. Both ways
lead to :meth:`Answering.answer`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from os import PathLike
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, Raw, structs

from isthmus.client.checking import Checker
from isthmus.core.answers import Accepted, Answer, Cancelled, Declined
from isthmus.errors import Misbehaved, Refuse, UsageError
from isthmus.revisions import METHODS, Revision, project
from isthmus.runtime.inbound import Inbound
from isthmus.runtime.middleware import Handler
from isthmus.wire import (
    ClientCapabilities,
    CreateMessageParams,
    CreateMessageResult,
    ElicitationCapability,
    ElicitParams,
    ElicitResult,
    InputRequest,
    ListRootsParams,
    ListRootsResult,
    PingParams,
    Root,
    RootsCapability,
    SamplingCapability,
    TextContent,
)
from isthmus.wire.base import Wire
from isthmus.wire.jsonrpc import encode
from isthmus.wire.results import EmptyResult

__all__ = ["Answering", "Elicit", "Roots", "Sample"]

Elicit: TypeAlias = Callable[[ElicitParams], Awaitable[Answer[Any]] | Answer[Any]]
"""Asks the user: gets the question, gives ``Accepted(value)``, ``Declined()`` or ``Cancelled()``."""

Sample: TypeAlias = Callable[
    [CreateMessageParams], Awaitable[str | CreateMessageResult] | str | CreateMessageResult
]
"""Has a model write: gets the conversation, gives the text, or the whole result."""

Places: TypeAlias = Sequence[str | PathLike[str] | Root]

Roots: TypeAlias = Places | Callable[[], Awaitable[Places] | Places]
"""Where a server may work: paths, ``file://`` URIs or roots, or a function that gives them."""

ACTIONS: Mapping[type, Any] = {Declined: "decline", Cancelled: "cancel"}


class Answering:
    """The answers to every question a server may put.

    Args:
        elicit: asks the user; without it the client does not offer that.
        sample: has a model write; without it the client does not offer that.
        roots: where the server may work; None does not offer that.
        base: capabilities beyond those that follow from the arguments above.
    """

    def __init__(
        self,
        elicit: Elicit | None = None,
        sample: Sample | None = None,
        roots: Roots | None = None,
        base: ClientCapabilities | None = None,
    ) -> None:
        self.roots = roots
        self._elicit = elicit
        self._sample = sample
        self._base = base or ClientCapabilities()
        self._table: dict[str, Callable[[Any], Awaitable[Wire]]] = {}
        if elicit is not None:
            self._table["elicitation/create"] = self.ask_user
        if sample is not None:
            self._table["sampling/createMessage"] = self.write
        if roots is not None:
            self._table["roots/list"] = self.places

    @property
    def capabilities(self) -> ClientCapabilities:
        """What the client can do for a server; this follows the handlers given."""
        base = self._base
        return structs.replace(
            base,
            elicitation=base.elicitation
            or (ElicitationCapability(form={}, url={}) if self._elicit else UNSET),
            sampling=base.sampling or (SamplingCapability() if self._sample else UNSET),
            roots=base.roots
            or (RootsCapability(list_changed=True) if self.roots is not None else UNSET),
        )

    @property
    def routes(self) -> dict[str, Handler]:
        """Handlers for questions that arrive as requests."""
        return {"ping": pong, **{method: routed(answer) for method, answer in self._table.items()}}

    async def answer(self, question: InputRequest, revision: Revision) -> Raw:
        """The answer to a question that arrived in a result, in the shape of the revision.

        Raises:
            Misbehaved: the server may not ask this, or asks it in the wrong shape.
        """
        answer = self._table.get(question.method)
        if answer is None:
            # spec 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow: servers MUST
            # NOT ask what the client has not declared
            raise Misbehaved(
                f"the server asks {question.method!r}, which this client does not offer"
            )
        try:
            params = METHODS[question.method].decode_params(question.params or b"{}")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Misbehaved(f"the server's question is malformed: {error}") from error
        return Raw(encode(project(await answer(params), revision)))

    async def answers(
        self, questions: Mapping[str, InputRequest], revision: Revision
    ) -> dict[str, Raw]:
        """The answers to all questions of one round, found at the same time."""
        works = [self.answer(question, revision) for question in questions.values()]
        if len(works) == 1:
            return dict(zip(questions, [await works[0]], strict=True))
        tasks = [asyncio.ensure_future(work) for work in works]
        try:
            return dict(zip(questions, await asyncio.gather(*tasks), strict=True))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def ask_user(self, params: ElicitParams) -> ElicitResult:
        """``elicitation/create``: ask, and check what comes back against the form."""
        # spec 2026-07-28 client/elicitation: clients MUST treat requests without mode as forms
        mode = params.mode or "form"
        question = structs.replace(params, mode=mode)
        answer = await given((self._elicit or nobody)(question))
        if isinstance(answer, Accepted):
            if mode == "url":
                return ElicitResult(action="accept")
            schema = params.requested_schema or {}
            return ElicitResult(action="accept", content=filled_in(answer.value, schema))
        action = ACTIONS.get(type(answer))
        if action is None:
            raise UsageError(
                f"an elicitation handler gives Accepted(value), Declined() or Cancelled(), "
                f"not {answer!r}"
            )
        return ElicitResult(action=action)

    async def write(self, params: CreateMessageParams) -> CreateMessageResult:
        """``sampling/createMessage``: have the model write, and wrap bare text."""
        sampling = self.capabilities.sampling
        if (params.tools or params.tool_choice) and not (sampling and sampling.tools is not UNSET):
            # spec 2025-11-25 client/sampling#tools-in-sampling: clients MUST return an error
            raise Refuse(-32602, "Invalid params: this client did not declare sampling.tools")
        written = await given((self._sample or nobody)(params))
        if isinstance(written, CreateMessageResult):
            return written
        if not isinstance(written, str):
            raise UsageError(
                f"a sampling handler gives text or a CreateMessageResult, not {written!r}"
            )
        return CreateMessageResult(
            role="assistant",
            content=TextContent(text=written),
            model="unknown",
            stop_reason="endTurn",
        )

    async def places(self, _params: ListRootsParams) -> ListRootsResult:
        """``roots/list``: where the server may work now."""
        roots = self.roots if self.roots is not None else ()
        if callable(roots):
            roots = await given(roots())
        return ListRootsResult(roots=[root(place) for place in roots])


async def pong(_params: PingParams, _inbound: Inbound) -> EmptyResult:
    """``ping``: we are here."""
    return EmptyResult()


def routed(answer: Callable[[Any], Awaitable[Wire]]) -> Handler:
    """An answer as a handler of the router."""

    async def handle(params: Any, _inbound: Inbound) -> Wire:
        return await answer(params)

    return handle


async def given(value: Any) -> Any:
    """What a handler gave, be it a coroutine function or a plain one."""
    return await value if hasattr(value, "__await__") else value


def nobody(_question: object) -> Any:
    """Stands for a handler that was not given, which nothing can reach."""
    raise UsageError("no handler was given for this question")


def root(place: str | PathLike[str] | Root) -> Root:
    """One place a server may work in; a path becomes a ``file://`` URI."""
    if isinstance(place, Root):
        return place
    if isinstance(place, str) and "://" in place:
        return Root(uri=place)
    from pathlib import Path  # not needed until a server asks

    path = Path(place).expanduser().absolute()
    return Root(uri=path.as_uri(), name=path.name)


def filled_in(value: Any, schema: Mapping[str, Any]) -> dict[str, Any]:
    """A user's answer as the content of a form, with the defaults for blanks left out.

    Raises:
        UsageError: it does not fit the form; nothing is sent.
    """
    content = plain(value)
    if not isinstance(content, dict):
        raise UsageError(f"the answer to a form has members, {value!r} has none")
    blanks = schema.get("properties")
    if isinstance(blanks, dict):
        for name, blank in blanks.items():
            # spec 2026-07-28 client/elicitation#requested-schema: defaults of the schema
            if name not in content and isinstance(blank, dict) and "default" in blank:
                content[name] = blank["default"]
    wrong = Checker(schema, "the form of the question").complaint(content)
    if wrong:
        raise UsageError(f"the answer does not fit the form: {wrong}")
    return content


def plain(value: Any) -> Any:
    """A struct, dataclass, model or mapping as plain data; None as an empty form."""
    if value is None:
        return {}
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True)
    try:
        return msgspec.to_builtins(value)
    except (TypeError, msgspec.ValidationError) as error:
        raise UsageError(f"the answer is no plain data: {error}") from error
