"""The payment service: an HTTP API that is described by OpenAPI. It is called in this process, without a socket."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

KEY = "a key that only the shop has"

DOCUMENT: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Payments", "version": "1.4"},
    "servers": [{"url": "https://payments.example/v1"}],
    "security": [{"key": []}],
    "components": {
        "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}},
    },
    "paths": {
        "/payments": {
            "post": {
                "operationId": "createPayment",
                "summary": "Take money for an order.",
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/json": {
                            "schema": {
                                "type": "object",
                                "required": ["order", "amount"],
                                "properties": {
                                    "order": {"type": "string"},
                                    "amount": {"type": "integer", "minimum": 1},
                                    "currency": {"type": "string", "default": "EUR"},
                                },
                            }
                        }
                    },
                },
                "responses": {"201": {"description": "The payment."}},
            }
        },
        "/payments/{id}": {
            "get": {
                "operationId": "getPayment",
                "summary": "Look a payment up.",
                "parameters": [
                    {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
                ],
                "responses": {"200": {"description": "The payment."}},
            }
        },
        "/ledger": {
            "get": {
                "operationId": "readLedger",
                "tags": ["internal"],
                "responses": {"200": {"description": "All payments."}},
            }
        },
    },
}

PAYMENTS: dict[str, dict[str, Any]] = {}

Send = Callable[[dict[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[dict[str, Any]]]


async def app(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """The service, as an ASGI application."""
    if scope["type"] != "http":
        return
    message = await receive()
    status, answer = serve(scope, json.loads(message.get("body") or b"null"))
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(answer).encode()})


def serve(scope: dict[str, Any], body: Any) -> tuple[int, Any]:
    """Serve one request: the status and the answer."""
    headers = dict(scope["headers"])
    if headers.get(b"x-key") != KEY.encode():
        return 401, {"error": "who are you?"}
    if scope["method"] == "POST":
        id = f"p{len(PAYMENTS) + 1}"
        PAYMENTS[id] = {"id": id, "currency": "EUR", **body}
        return 201, PAYMENTS[id]
    found = PAYMENTS.get(scope["path"].rpartition("/")[2])
    return (200, found) if found else (404, {"error": "there is no such payment"})
