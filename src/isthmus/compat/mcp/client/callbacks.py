"""Callbacks of ``mcp``'s sessions: they answer a server's questions, and hear its notifications."""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

import msgspec

from isthmus.compat import types
from isthmus.compat.outputs import dump_wire
from isthmus.compat.types.table import MESSAGES
from isthmus.errors import Refuse
from isthmus.revisions import METHODS
from isthmus.runtime.channel import Channel, Delivery, Outgoing
from isthmus.runtime.failures import log_failure
from isthmus.wire.jsonrpc import encode
from isthmus.wire.struct import Id

# The model of each notification, by its method.
NOTIFICATIONS = {
    method: name for name, (method, _) in MESSAGES.items() if method.startswith("notifications/")
}

PARAMS = {
    "sampling/createMessage": "CreateMessageRequestParams",
    "elicitation/create": "ElicitRequestFormParams",
    "roots/list": "RequestParams",
}

# Set when the callback that runs makes a request itself: what the server says next must be read.
CALLBACK_WAITS: ContextVar[asyncio.Event] = ContextVar("isthmus_compat_callback_waits")


class NotificationHead(msgspec.Struct):
    """Beginning of a message: enough to know a notification.

    Attributes:
        method: of a request or a notification.
        params: as they came.
        id: of a request or an answer.
    """

    method: str = ""
    params: Any = None
    id: Any = None


decode_head = msgspec.json.Decoder(NotificationHead).decode


class NotificationTap:
    """Channel that has each notification heard before it is handed on.

    Args:
        channel: the channel.
        hear: hears a notification.
    """

    def __init__(self, channel: Channel, hear: Callable[[Any], Awaitable[None]]) -> None:
        self._channel = channel
        self._hear = hear
        self._progress: NotificationHead | None = None

    def __getattr__(self, name: str) -> Any:
        if name == "attach":  # messages that go by it are not heard
            raise AttributeError(name)
        return getattr(self._channel, name)

    async def receive(self) -> Delivery | None:
        """The next message."""
        if self._progress is not None:  # whose callback is told of it first
            progress, self._progress = self._progress, None
            await self._tell(progress)
        delivery = await self._channel.receive()
        if delivery is not None and b'"notifications/' in delivery.data:
            try:
                head = decode_head(delivery.data)
            except msgspec.DecodeError:
                return delivery  # the peer says what is wrong with it
            if head.method == "notifications/progress":
                self._progress = head
            elif head.id is None:
                await self._tell(head)
        return delivery

    async def _tell(self, head: NotificationHead) -> None:
        name = NOTIFICATIONS.get(head.method)
        if name is None:
            return
        try:
            heard = getattr(types, name).model_validate(
                {"method": head.method, "params": head.params}
            )
        except ValueError:
            return  # malformed: the peer says so
        waits = asyncio.Event()
        token = CALLBACK_WAITS.set(waits)
        try:
            task = asyncio.get_running_loop().create_task(self._run(heard))
        finally:
            CALLBACK_WAITS.reset(token)
        task.add_done_callback(lambda _: waits.set())
        await waits.wait()

    async def _run(self, heard: Any) -> None:
        try:
            await self._hear(heard)
        except Exception as error:  # noqa: BLE001 - a listener's bug must not end the connection
            log_failure("a callback of ClientSession", error)

    async def send(self, out: Outgoing) -> None:
        """Hand one message over."""
        await self._channel.send(out)

    def abandon(self, id: Id) -> bool:
        """Stop waiting for an answer."""
        return self._channel.abandon(id)

    async def close(self) -> None:
        """End the channel."""
        await self._channel.close()


async def answer_question(callback: Any, context: Any, method: str, params: Any) -> Any:
    """The answer of a callback to a question of the server's.

    Raises:
        Refuse: it gave an ``ErrorData``.
    """
    if method == "roots/list":
        answer = await callback(context)
    else:
        name = PARAMS[method]
        if getattr(params, "mode", None) == "url":
            name = "ElicitRequestURLParams"
        answer = await callback(context, getattr(types, name).model_validate_json(encode(params)))
    if isinstance(answer, types.ErrorData):
        raise Refuse(answer.code, answer.message, answer.data)
    return METHODS[method].decode_result(dump_wire(answer))
