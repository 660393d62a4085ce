"""Strict replay: every round of questions is asked twice, and must be the same both times.

Since 2026-07-28 a tool that asks runs again from the top for each round (see
``docs/concepts/asking.md``). A tool whose questions depend on a clock, a counter or a live rate then
asks something else than was answered. On a :class:`StrictChannel` channel every first answer with
questions is followed by the same call once more, with the state but without the answers; a sound
tool asks the same again, and effects in ``ctx.once`` do not happen again.
"""

import json
from typing import Any

from isthmus.errors import ConnectionLost
from isthmus.runtime.channel import Channel, Delivery, Outgoing
from isthmus.wire.struct import Id


class QuestionsChanged(AssertionError):
    """A tool asked something else when it ran again; the message has both sequences."""


class StrictChannel:
    """A client's channel that holds servers to asking the same questions again.

    Args:
        channel: the channel to the server.

    Attributes:
        changed: what became of a tool that asked something else, or None.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._calls: dict[str, dict[str, Any]] = {}
        self._again: dict[str, tuple[Id, Delivery, Any]] = {}
        self.changed: QuestionsChanged | None = None

    async def receive(self) -> Delivery | None:
        """The next message; questions only after they were asked a second time.

        Raises:
            ConnectionLost: the second time they were others; ``changed`` has it all.
        """
        while True:
            delivery = await self._channel.receive()
            if delivery is None:
                return None
            message = json.loads(delivery.data)
            if isinstance(message, list):
                return delivery  # only a revision whose calls never run again has batches
            key = json.dumps(message.get("id"))
            if key in self._again:
                return self._compare(message, *self._again.pop(key))
            call = self._calls.pop(key, None) if "method" not in message else None
            questions = _questions(message)
            if call is None or questions is None:
                return delivery
            await self._ask_again(call, message, delivery, questions)

    async def _ask_again(
        self, call: dict[str, Any], answer: dict[str, Any], delivery: Delivery, questions: Any
    ) -> None:
        params = {k: v for k, v in call["params"].items() if k != "inputResponses"}
        if "requestState" in answer["result"]:
            params["requestState"] = answer["result"]["requestState"]
        id = f"{call['id']} again"
        self._again[json.dumps(id)] = (call["id"], delivery, questions)
        data = json.dumps({**call, "id": id, "params": params}).encode()
        await self._channel.send(Outgoing(data, calls=id, method=call["method"]))

    def _compare(self, again: dict[str, Any], id: Id, first: Delivery, questions: Any) -> Delivery:
        others = _questions(again)
        if others != questions:
            self.changed = QuestionsChanged(
                f"call {id!r} asked something else when it ran again; put what changes into "
                f"ctx.once\n   first:  {json.dumps(questions)}\n   second: "
                f"{json.dumps(others if others is not None else again)}"
            )
            raise ConnectionLost(str(self.changed))
        return first

    async def send(self, out: Outgoing) -> None:
        """Send a message; calls are remembered until they are answered."""
        if out.calls is not None:
            self._calls[json.dumps(out.calls)] = json.loads(out.data)
        await self._channel.send(out)

    def abandon(self, id: Id) -> bool:
        """As the channel to the server."""
        self._calls.pop(json.dumps(id), None)
        return self._channel.abandon(id)

    async def close(self) -> None:
        """Close the channel to the server."""
        await self._channel.close()

    def __getattr__(self, name: str) -> Any:
        """Whatever else the channel to the server can do."""
        return getattr(self._channel, name)


def _questions(message: dict[str, Any]) -> Any:
    """The questions an answer brings, by key, or None if it is no such answer."""
    result = message.get("result")
    if not isinstance(result, dict) or result.get("resultType") != "input_required":
        return None
    return result.get("inputRequests", {})
