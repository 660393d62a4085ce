"""HTTP of all providers: one POST, its events as they come, and the errors of providers.

Everything is bounded: how long one waits for a piece, how large an event and an answer may be. An
answer that breaks off is an error, never a short answer. The key is in the request's headers and
nowhere else; what a provider says about it is told without it.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from isthmus.auth.net.urls import is_secure
from isthmus.auth.tokens.secret import Secret
from isthmus.core.framing import Oversize
from isthmus.core.http.sse import SseEvent, SseParser
from isthmus.core.text import clean_text
from isthmus.errors import ConnectionLost, Misbehaved
from isthmus.host.model.errors import ConfigError
from isthmus.host.providers.provider import (
    BadCredentials,
    ProviderBroke,
    ProviderError,
    ProviderRefused,
    ProviderUnavailable,
    RateLimited,
    TooLong,
)
from isthmus.transports.http.client.pool import open_requests
from isthmus.transports.http.client.requests import Requests, Response
from isthmus.wire import (
    EmbeddedResource,
    ResourceLink,
    TextContent,
    TextResourceContents,
    ToolResultContent,
)

T = TypeVar("T")

MAX_EVENT_BYTES = 4 * 1024 * 1024
MAX_ANSWER_BYTES = 64 * 1024 * 1024
MAX_ERROR_BYTES = 64 * 1024
MAX_LIST_BYTES = 8 * 1024 * 1024
MAX_REASON_CHARS = 500
CONNECT_TIMEOUT_S = 30.0
MAX_TOOL_NAME_CHARS = 64  # every provider allows that many

# words of providers for a conversation that does not fit
TOO_LONG_PATTERN = re.compile(
    r"context_length|context length|context size|context window|maximum context|too many tokens"
    r"|prompt is too long|exceed.{0,40}\bcontext",
    re.IGNORECASE,
)

ERRORS_BY_STATUS: Mapping[int, type[ProviderError]] = {
    401: BadCredentials,
    403: BadCredentials,
    408: ProviderUnavailable,
    413: TooLong,
    429: RateLimited,
}

# by the members type and code of an error's body, which count before its status
ERRORS_BY_TYPE: Mapping[str, type[ProviderError]] = {
    "authentication_error": BadCredentials,
    "permission_error": BadCredentials,
    "rate_limit_error": RateLimited,
    "insufficient_quota": RateLimited,
    "overloaded_error": ProviderUnavailable,
    "unavailable_error": ProviderUnavailable,
    "exceed_context_size_error": TooLong,
    "context_length_exceeded": TooLong,
    "request_too_large": TooLong,
}


class ProviderProblem(Struct, frozen=True):
    """The body of an error, as the providers write it; members have any type."""

    message: Any = ""
    type: Any = None
    code: Any = None


class ProviderRefusal(Struct, frozen=True):
    """A body that holds an error."""

    error: ProviderProblem | str | None = None


class ProviderHttp:
    """Requests to one provider.

    Args:
        name: the provider's, for messages.
        base_url: what paths are added to.
        headers: for every request, with the key.
        key: what no message may show; None for none.
        timeout: seconds without a piece of an answer after which it counts as lost.
        requests: makes the requests; None makes them on connections of its own, from the first request on.

    Raises:
        ConfigError: the key would go to another machine where anybody on the way can read it.
    """

    def __init__(
        self,
        name: str,
        base_url: str,
        headers: Mapping[str, str],
        *,
        key: Secret | None = None,
        timeout: float = 120.0,
        requests: Requests | None = None,
    ) -> None:
        if key:
            check_key_is_private(name, base_url)
        self.name = name
        self._base = base_url.rstrip("/")
        self._headers = {"Accept": "text/event-stream, application/json", **headers}
        self._key = key
        self._timeout = timeout
        self._requests = requests

    async def events(self, path: str, body: Any) -> AsyncGenerator[SseEvent, None]:
        """POST a body, and the events of the answer as they come.

        Closing the generator closes the connection.

        Raises:
            ProviderError: no answer, or not all of it.
        """
        response = await self._send("POST", path, msgspec.json.encode(body))
        try:
            if response.status != 200:
                raise await self._make_refusal(response)
            events, size = SseParser(MAX_EVENT_BYTES), 0
            while piece := await self._read_piece(response):
                size += len(piece)
                if size > MAX_ANSWER_BYTES:
                    raise self._make_broken(f"more than {MAX_ANSWER_BYTES} bytes came")
                for event in events.feed(piece):
                    if isinstance(event, Oversize):
                        raise self._make_broken(f"an event of {event.size} bytes came")
                    yield event
        finally:
            response.close()

    async def get(self, path: str) -> bytes:
        """The whole answer to a GET.

        Raises:
            ProviderError: there is none.
        """
        response = await self._send("GET", path, None)
        try:
            if response.status != 200:
                raise await self._make_refusal(response)
            async with asyncio.timeout(self._timeout):
                return await response.read(MAX_LIST_BYTES)
        except (ConnectionLost, Misbehaved, TimeoutError) as error:
            raise self._make_broken(str(error)) from error
        finally:
            response.close()

    async def close(self) -> None:
        """Close every connection."""
        if self._requests is not None:
            await self._requests.close()

    def decode(self, decoder: msgspec.json.Decoder[T], data: bytes) -> T:
        """Decode JSON of the provider.

        Raises:
            ProviderBroke: it makes no sense.
        """
        try:
            return decoder.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._make_broken(f"an event makes no sense: {error}") from error

    def unfinished(self) -> ProviderBroke:
        """Make the error of an answer that ended before it was finished."""
        return self._make_broken("it ended before it was finished, so that the rest is missing")

    def problem(
        self, report: ProviderProblem | str | None, status: int = 200, after: float | None = None
    ) -> ProviderError:
        """Make the error that a provider tells of."""
        return make_provider_error(self.name, report, status, after, self._key)

    async def _send(self, method: str, path: str, body: bytes | None) -> Response:
        if self._requests is None:
            self._requests = open_requests(connect_timeout=CONNECT_TIMEOUT_S)
        headers = {**self._headers, **({"Content-Type": "application/json"} if body else {})}
        try:
            try:
                return await self._send_once(self._requests, method, path, headers, body)
            except ConnectionLost as error:
                if not error.sent:
                    raise
                # a connection kept from before, which the server was about to close
                return await self._send_once(self._requests, method, path, headers, body)
        except (ConnectionLost, TimeoutError) as error:
            words = str(error) or f"no answer within {self._timeout:g} s"
            raise ProviderUnavailable(
                f"provider {self.name!r} cannot be reached: {words}", provider=self.name
            ) from error

    async def _send_once(
        self,
        requests: Requests,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes | None,
    ) -> Response:
        async with asyncio.timeout(self._timeout):
            return await requests.send(method, self._base + path, headers, body)

    async def _read_piece(self, response: Response) -> bytes:
        try:
            async with asyncio.timeout(self._timeout):
                return await response.piece()
        except TimeoutError as error:
            raise self._make_broken(f"nothing came for {self._timeout:g} s") from error
        except ConnectionLost as error:
            raise self._make_broken(str(error)) from error

    async def _make_refusal(self, response: Response) -> ProviderError:
        """Make the error of a response with another status than 200."""
        try:
            async with asyncio.timeout(self._timeout):
                body = await response.read(MAX_ERROR_BYTES)
        except (ConnectionLost, Misbehaved, TimeoutError):
            body = b""
        report: ProviderProblem | str | None
        try:
            report = msgspec.json.decode(body, type=ProviderRefusal).error
        except (msgspec.DecodeError, UnicodeDecodeError):
            report = body.decode("utf-8", "replace")
        after = response.headers.get("Retry-After", "")
        seconds = float(after) if re.fullmatch(r"\d{1,6}(\.\d{1,6})?", after) else None
        return self.problem(report, response.status, seconds)

    def _make_broken(self, why: str) -> ProviderBroke:
        return ProviderBroke(f"the answer of provider {self.name!r}: {why}", provider=self.name)


def check_key_is_private(name: str, url: str) -> None:
    """Check that nobody on the way can read the key.

    Raises:
        ConfigError: it is plain HTTP to another machine.
    """
    if not is_secure(url):
        from urllib.parse import urlsplit

        raise ConfigError(
            f"the key of provider {name!r} would go to {urlsplit(url).hostname} unencrypted: use "
            "https://, or leave out the key"
        )


def make_provider_error(
    provider: str,
    report: ProviderProblem | str | None,
    status: int,
    after: float | None = None,
    key: Secret | None = None,
) -> ProviderError:
    """Make the error that a provider tells of, without its key."""
    body = report if isinstance(report, ProviderProblem) else ProviderProblem(message=report or "")
    words = clean_text(str(body.message)).strip()
    if key:
        words = words.replace(key.reveal(), "[secret]")
    kind = ERRORS_BY_TYPE.get(str(body.type)) or ERRORS_BY_TYPE.get(str(body.code))
    if kind is None and TOO_LONG_PATTERN.search(f"{body.code} {words}"):
        kind = TooLong
    if kind is None:
        kind = ERRORS_BY_STATUS.get(status) or (
            ProviderUnavailable if status >= 500 else ProviderRefused
        )
    number = f" with status {status}" if status != 200 else ""
    return kind(
        f"provider {provider!r} refused{number}: {words[:MAX_REASON_CHARS] or 'without a reason'}",
        provider=provider,
        retry_after=after,
    )


def make_aliases(names: list[str]) -> dict[str, str]:
    """Make names of tools that every provider allows: letters, digits, ``_``, ``-``.

    Names that are allowed stay as they are.
    """
    found: dict[str, str] = {}
    taken = {name for name in names if re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name)}
    for name in names:
        if name in taken:
            found[name] = name
            continue
        plain = re.sub(r"[^A-Za-z0-9_-]", "_", name)[: MAX_TOOL_NAME_CHARS - 5] or "tool"
        count = 0
        alias = plain
        while alias in taken:
            count += 1
            alias = f"{plain}_{count}"
        taken.add(alias)
        found[name] = alias
    return found


def format_tool_result(result: ToolResultContent) -> str:
    """Format the result of a tool as one text, for models that read nothing else there."""
    texts: list[str] = []
    for part in result.content:
        if isinstance(part, TextContent):
            texts.append(part.text)
        elif isinstance(part, ResourceLink):
            texts.append(f"[{part.name}: {part.uri}]")
        elif isinstance(part, EmbeddedResource) and isinstance(part.resource, TextResourceContents):
            texts.append(part.resource.text)
        else:
            texts.append(f"[{getattr(part, 'mime_type', 'something')} left out]")
    if not texts and result.structured_content is not msgspec.UNSET:
        texts.append(msgspec.json.encode(result.structured_content).decode())
    text = "\n".join(texts)
    return f"The tool failed: {text}" if result.is_error else text
