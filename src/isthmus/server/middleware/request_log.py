"""Logging: one structured line per request, without arguments unless they are asked for."""

import time
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from isthmus.core.principal import owner_of
from isthmus.core.redaction.values import Redactor
from isthmus.errors import Refuse
from isthmus.server.middleware.hooks import (
    CallNext,
    Middleware,
    MiddlewareContext,
    describe_outcome,
)
from isthmus.wire.jsonrpc import encode

MAX_NAME_CHARS = 200
MAX_ARGUMENTS_CHARS = 2_000


class Logging(Middleware):
    """Writes one line of JSON per request to the logger ``isthmus.requests``.

    A line has ``method``, ``id``, ``revision``, ``transport``, ``ms``, ``outcome``, and where there
    is one the ``name`` of the tool, prompt or resource and the ``error``. JSON has no line breaks, so
    nobody can write a second line by what he sends.

    Args:
        arguments: write the arguments of tools and prompts, too: redacted by
            :class:`~isthmus.core.redaction.values.Redactor` and cut to 2,000 characters.
        principals: write who asked, as ``principal``.
        write: called with each line as a dict; by default it goes to the logger at INFO.
        redactor: takes secrets out of what is written.
    """

    reads_results: ClassVar[bool] = False

    def __init__(
        self,
        *,
        arguments: bool = False,
        principals: bool = False,
        write: Callable[[Mapping[str, Any]], object] | None = None,
        redactor: Redactor | None = None,
    ) -> None:
        self._arguments = arguments
        self._principals = principals
        self._write = write or log_line
        self._redactor = redactor or Redactor()

    async def on_request(self, ctx: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Write the line of a request, once it has ended.

        Args:
            ctx: the request: its params, caller and server.
            call_next: ``await call_next(ctx)`` serves the request and gives its result.

        Returns:
            The result of its method.
        """
        began = time.perf_counter()
        line: dict[str, Any] = {"outcome": "cancelled"}
        try:
            result = await call_next(ctx)
            line = {"outcome": describe_outcome(result)}
        except Refuse as no:
            line = {"outcome": "refused", "error": f"{no.code}: {self._cut_text(str(no))}"}
            raise
        except Exception as error:
            line = {"outcome": "error", "error": type(error).__name__}
            raise
        else:
            return result
        finally:
            ms = round((time.perf_counter() - began) * 1000, 3)
            self._write({**self._describe(ctx), "ms": ms, **line})

    def _describe(self, ctx: MiddlewareContext[Any]) -> dict[str, Any]:
        line: dict[str, Any] = {
            "method": ctx.method,
            "id": ctx.request_id,
            "revision": ctx.revision.name,
            "transport": ctx.transport,
        }
        if ctx.name is not None:
            line["name"] = self._cut_text(ctx.name)
        if self._principals:
            line["principal"] = owner_of(ctx.principal)
        if self._arguments and hasattr(ctx.params, "arguments"):
            line["arguments"] = self._show_arguments(ctx)
        return line

    def _show_arguments(self, ctx: MiddlewareContext[Any]) -> str:
        try:
            given = ctx.arguments
        except Refuse:
            return "[not an object]"
        return encode(self._redactor.redact(given)).decode()[:MAX_ARGUMENTS_CHARS]

    def _cut_text(self, text: str) -> str:
        return self._redactor.text(text[:MAX_NAME_CHARS])


def log_line(line: Mapping[str, Any]) -> None:
    """Write a line to the log as JSON."""
    import logging  # as in runtime/failures.py

    logging.getLogger("isthmus.requests").info("%s", encode(line).decode())
