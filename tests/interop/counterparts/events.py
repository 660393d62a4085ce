"""The events of a server's streams, for the two Python libraries that want to be given a store."""

from mcp.server.streamable_http import EventMessage, EventStore


class Events(EventStore):
    """Every event, in one list."""

    def __init__(self):
        self.events = []

    async def store_event(self, stream_id, message):
        """Keep an event; its number is its id."""
        self.events.append((stream_id, message))
        return str(len(self.events))

    async def replay_events_after(self, last_event_id, send_callback):
        """Send what came after on the same stream."""
        stream_id, _ = self.events[int(last_event_id) - 1]
        for number, (stream, message) in enumerate(self.events[int(last_event_id) :]):
            if stream == stream_id and message is not None:
                id = str(int(last_event_id) + number + 1)
                await send_callback(EventMessage(message, id))
        return stream_id
