"""Echo server: an ASGI application that reads each request as an OpenAPI document says."""

import json
from typing import Any

from support.openapi.described_apis import DescribedOperation
from support.openapi.request_reading import Arrived, Unreadable, read_request


class EchoApp:
    """Reads requests as those of one operation, which is set before each.

    Attributes:
        expected: the operation that is called next.
        arrived: what the last request was; None where none came, or it was not what it must be.
        flaw: what was wrong with it.
        count: requests that came.
    """

    def __init__(self) -> None:
        self.expected: DescribedOperation | None = None
        self.arrived: Arrived | None = None
        self.flaw = ""
        self.count = 0

    def expect(self, operation: DescribedOperation) -> None:
        """Read the next request as one of this operation."""
        self.expected, self.arrived, self.flaw = operation, None, ""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve a request: 200 where it could be read, 418 where not."""
        if scope["type"] != "http":
            raise RuntimeError(f"nothing but HTTP is served here, not {scope['type']}")
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        self.count += 1
        assert self.expected is not None
        try:
            self.arrived = read_request(self.expected, scope, body)
        except (Unreadable, ValueError, KeyError, TypeError) as error:
            self.flaw = f"{type(error).__name__}: {error}"
        status = 200 if self.arrived is not None else 418
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        text = json.dumps({"read": not self.flaw, "flaw": self.flaw}).encode()
        await send({"type": "http.response.body", "body": text})
