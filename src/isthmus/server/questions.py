"""What a function may ask the client while it serves a call: its user, its model, its roots."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import msgspec
from msgspec import UNSET, UnsetType

from isthmus.core.answers import Accepted, Answer, Cancelled, Declined
from isthmus.errors import Misbehaved
from isthmus.revisions import METHODS
from isthmus.server.facilities import Facilities
from isthmus.server.polling import Polling
from isthmus.wire import (
    CreateMessageParams,
    ElicitParams,
    ElicitResult,
    ListRootsParams,
    ModelPreferences,
    Root,
    TaskMetadata,
    Tool,
    ToolChoice,
)
from isthmus.wire.base import Wire

# Every server has this class, and few ask: what a question takes is imported when one is asked.
if TYPE_CHECKING:
    from isthmus.server.askers import Asker
    from isthmus.server.sampling import Said, SampledMessage

__all__ = ["Questions"]

T = TypeVar("T")


class Questions(Polling):
    """The part of a context that asks."""

    __slots__ = ()

    _asker: "Asker"
    _facilities: Facilities

    @overload
    async def elicit(
        self, message: str, schema: None = None, *, key: str | None = None, task: bool = False
    ) -> Answer[None]: ...

    @overload
    async def elicit(
        self, message: str, schema: type[T], *, key: str | None = None, task: bool = False
    ) -> Answer[T]: ...

    @overload
    async def elicit(
        self, message: str, schema: Any, *, key: str | None = None, task: bool = False
    ) -> Answer[Any]: ...

    async def elicit(
        self, message: str, schema: Any = None, *, key: str | None = None, task: bool = False
    ) -> Answer[Any]:
        """Ask the user to fill in a form.

        Never ask for passwords or keys this way: the client sees the answer. Use
        :meth:`elicit_url` (spec 2026-07-28 client/elicitation).

        Args:
            message: the question.
            schema: a class with the blanks as fields; or ``bool``, ``str``, a number, an enum or
                a ``Literal`` for one blank; or a JSON Schema, whose answer is a dict; or None
                to ask for consent alone.
            key: a name for the question on the wire, instead of one made up.
            task: let the client make a task of it, where it can (2025-11-25): for questions that
                may take minutes. It is a question as any other elsewhere.

        Returns:
            ``Accepted(value)``, ``Declined()`` or ``Cancelled()``.

        Raises:
            CapabilityMissing: the client shows no forms.
            UsageError: a form cannot have such a blank.
            Misbehaved: the answer does not fit the form; the call is refused with the reason if
                nobody catches it.
            TaskCancelled: the client cancelled the task it made of it.
        """
        from isthmus.server.forms import form_for

        form = form_for(schema)
        params = ElicitParams(
            message=message, mode="form", requested_schema=form.schema, task=wanted(task)
        )
        result: ElicitResult = await self._ask("elicitation/create", params, key)
        if result.action == "accept":
            try:
                return Accepted(form.read(result.content or {}))
            except Misbehaved as misfit:
                raise self._asker.unreadable("elicitation/create", misfit) from misfit
        return Declined() if result.action == "decline" else Cancelled()

    async def elicit_url(
        self,
        message: str,
        url: str,
        *,
        elicitation_id: str | None = None,
        key: str | None = None,
        task: bool = False,
    ) -> Answer[None]:
        """Ask the user to open a page, for what must not pass through the client.

        Args:
            message: why.
            url: the page. Whoever opens it must be the one who is asked: see the specification's
                safe URL handling.
            elicitation_id: what 2025-11-25 calls it by, and what to give
                ``Server.notify_elicitation_complete`` afterwards; made up if not given.
            key: a name for the question on the wire, instead of one made up.
            task: let the client make a task of it, where it can (2025-11-25): for questions that
                may take minutes. It is a question as any other elsewhere.

        Returns:
            ``Accepted(None)`` says that the user agreed to open it, not that anything was done
            there.

        Raises:
            CapabilityMissing: the client opens no pages.
            TaskCancelled: the client cancelled the task it made of it.
        """
        from isthmus.server.needs import require

        id = elicitation_id or os.urandom(16).hex()
        params = ElicitParams(
            message=message, mode="url", url=url, elicitation_id=id, task=wanted(task)
        )
        require(self._inbound.caller, "elicitation/create", params)
        if self._inbound.caller.revision.allows("server", "notifications/elicitation/complete"):
            self._facilities.changes.sent_to_page(self._inbound.link, id)
        result: ElicitResult = await self._ask("elicitation/create", params, key)
        if result.action == "accept":
            return Accepted(None)
        return Declined() if result.action == "decline" else Cancelled()

    async def sample(
        self,
        messages: "Said | Sequence[Said]",
        *,
        max_tokens: int,
        system_prompt: str | None = None,
        model: ModelPreferences | str | Sequence[str] | None = None,
        temperature: float | None = None,
        stop_sequences: Sequence[str] | None = None,
        include_context: Literal["none", "thisServer", "allServers"] | None = None,
        tools: Sequence[Tool] | None = None,
        tool_choice: Literal["auto", "required", "none"] | None = None,
        metadata: Mapping[str, Any] | None = None,
        key: str | None = None,
        task: bool = False,
    ) -> "SampledMessage":
        """Have the client's model write the next message.

        Args:
            messages: a prompt, or the conversation so far.
            max_tokens: the most it may write.
            system_prompt: a suggestion; the client may change or drop it.
            model: which would be best: names, the best first, or preferences.
            temperature: on the provider's scale.
            stop_sequences: where it is to stop.
            include_context: whose context to add; left out where the client cannot.
            tools: what the model may ask to have called.
            tool_choice: whether it must.
            metadata: for the provider, in its own format.
            key: a name for the question on the wire, instead of one made up.
            task: let the client make a task of it, where it can (2025-11-25): for questions that
                may take minutes. It is a question as any other elsewhere.

        Raises:
            CapabilityMissing: the client has no model for servers, or none that uses tools.
            TaskCancelled: the client cancelled the task it made of it.
        """
        from isthmus.server import sampling

        params = CreateMessageParams(
            messages=sampling.conversation(messages),
            max_tokens=max_tokens,
            system_prompt=sampling.given(system_prompt),
            model_preferences=sampling.preferences(model),
            temperature=sampling.given(temperature),
            stop_sequences=UNSET if stop_sequences is None else list(stop_sequences),
            include_context=sampling.allowed_context(
                include_context, self._inbound.caller.capabilities
            ),
            tools=UNSET if tools is None else list(tools),
            tool_choice=UNSET if tool_choice is None else ToolChoice(mode=tool_choice),
            metadata=UNSET if metadata is None else dict(metadata),
            task=wanted(task),
        )
        return sampling.SampledMessage(await self._ask("sampling/createMessage", params, key))

    async def roots(self, *, key: str | None = None) -> list[Root]:
        """Ask where the client lets this server work.

        Args:
            key: a name for the question on the wire, instead of one made up.

        Raises:
            CapabilityMissing: the client has no roots.
        """
        roots: list[Root] = (await self._ask("roots/list", ListRootsParams(), key)).roots
        return roots

    async def _ask(self, method: str, params: Wire, key: str | None) -> Any:
        from isthmus.server.needs import require

        require(self._inbound.caller, method, params)
        if self._notes.busy:
            await self._notes.drain()
        raw = await self._asker.ask(method, params, key)
        try:
            return METHODS[method].decode_result(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._asker.unreadable(method, error) from error


def wanted(task: bool) -> TaskMetadata | UnsetType:
    """What says in a question that it may be a task of the client's."""
    return TaskMetadata() if task else UNSET
