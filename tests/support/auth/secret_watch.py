"""Watches a test for secrets that are seen: in logs, in errors, in pages, in refusals.

What counts as a secret is every :class:`isthmus.auth.tokens.secret.Secret` that was made or alive while
the test ran, and every token, code and client secret that one of our endpoints handed out.
"""

import functools
import json
import logging
import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit
from weakref import WeakValueDictionary

from isthmus.auth.authorization_server.server import AuthorizationServer
from isthmus.auth.tokens import secret
from isthmus.core.redaction import live_secrets
from isthmus.errors import IsthmusError
from isthmus.transports.http.app import HttpApp
from support.http.asgi_driver import Exchange

__all__ = ["SecretWatch", "watching"]

SHORTEST = 8
"""Shorter texts stand in other words by chance, such as a password of a test that is ``pw``."""

HANDED_OUT = ("access_token", "refresh_token", "id_token", "client_secret", "code")
OWN_BUSINESS = {"set-cookie", "location", "dpop-nonce"}
"""Headers whose values are secrets by their nature, and go to whom they are meant for."""

MEANT = {"code", "state", "nonce", "request", "ticket"}
"""Parameters of a redirect that are to be secrets; whatever else it has is not."""

HIDDEN_FIELD = re.compile(rb"<input\b[^>]*\btype=\"?hidden\b[^>]*>")
"""What ties a form to its page; it is that browser's own."""


class SecretWatch(logging.Handler):
    """Keeps all that was seen, and all that must not be."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.secrets: set[str] = set()
        self.seen: list[tuple[str, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        """A record, with its traceback and whatever the logger hung on it."""
        text = logging.Formatter().format(record)
        more = {k: v for k, v in vars(record).items() if k not in {"args", "exc_info"}}
        self.seen.append((f"the log {record.name}", f"{text} {more!r}"))

    def raised(self, error: BaseException) -> None:
        """An error, with what it was raised from."""
        told = "".join(traceback.format_exception_only(error))
        self.seen.append((f"the error {type(error).__name__}", f"{told} {error!r}"))

    def answered(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        """A response of ours: what it hands out is learnt, what it shows is kept."""
        kind = next((v for k, v in headers if k == "content-type"), "")
        told = "\n".join(f"{k}: {v}" for k, v in headers if k not in OWN_BUSINESS)
        if "html" in kind or status >= 400:
            visible = HIDDEN_FIELD.sub(b"", body).decode(errors="replace")
            self.seen.append((f"the answer {status} ({kind})", f"{told}\n{visible}"))
            return
        self.seen.append((f"the headers of an answer {status}", told))
        where = next((v for k, v in headers if k == "location"), "")
        self.seen.append((f"the redirect of an answer {status}", _beside(where)))
        found = dict(parse_qsl(urlsplit(where).query))
        if "json" in kind:
            found = _object(body)
        self.learn(*(found.get(name) for name in HANDED_OUT))

    def learn(self, *texts: object) -> None:
        """These are secrets from now on, and were before."""
        self.secrets |= {t for t in texts if isinstance(t, str) and len(t) >= SHORTEST}

    def leaks(self) -> list[str]:
        """The places where a secret was seen, with the text around it; forgets them all."""
        seen, self.seen = self.seen, []
        forms = {form for hidden in self.secrets for form in (hidden, quote(hidden, safe=""))}
        return [
            f"{where}: {text[:400]}" for where, text in seen if any(form in text for form in forms)
        ]


class _Remembered(WeakValueDictionary[int, secret.Secret]):
    """The secrets that are alive, each told to a watch when it is made."""

    def __init__(self, watch: SecretWatch, before: Any) -> None:
        super().__init__()
        self.watch = watch
        for key, value in before.items():
            self[key] = value

    def __setitem__(self, key: int, value: secret.Secret) -> None:
        self.watch.learn(value.reveal())
        super().__setitem__(key, value)


def _beside(url: str) -> str:
    """A redirect without what it is for."""
    parts = urlsplit(url)
    pairs = parse_qsl(parts.query) + parse_qsl(parts.fragment)
    return f"{parts.path} {[pair for pair in pairs if pair[0] not in MEANT]!r}"


def _object(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _heard(watch: SecretWatch, app: Any) -> Any:
    """An ASGI method that tells a watch what it answers."""

    @functools.wraps(app)
    async def answering(self: Any, scope: Any, receive: Any, send: Any) -> None:
        start: dict[str, Any] = {}
        body = b""

        async def sent(message: Any) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start":
                start = {} if _streamed(message) else message
            elif start:
                body += message.get("body", b"")
                if not message.get("more_body", False):
                    _told(watch, start, body)
            await send(message)

        await app(self, scope, receive, sent)

    return answering


def _streamed(message: Any) -> bool:
    """Whether an answer has no end to wait for."""
    return any(b"event-stream" in value for _, value in message["headers"])


def _told(watch: SecretWatch, start: dict[str, Any], body: bytes) -> None:
    pairs = [(k.decode("latin-1").lower(), v.decode("latin-1")) for k, v in start["headers"]]
    watch.answered(start["status"], pairs, body)


def _driven(watch: SecretWatch, send: Any) -> Any:
    """The ASGI driver's handling of a message, reported to a watch."""

    async def sent(self: Exchange, message: dict[str, Any]) -> None:
        await send(self, message)
        if self.complete.is_set():
            watch.answered(self.status, self.headers, self.body)

    return sent


@contextmanager
def watching(monkeypatch: Any) -> Iterator[SecretWatch]:
    """A watch over everything that happens meanwhile."""
    watch = SecretWatch()
    root = logging.getLogger()
    level = root.level

    def made(self: IsthmusError, *args: object) -> None:
        super(IsthmusError, self).__init__(*args)
        watch.raised(self)

    with monkeypatch.context() as patch:
        patch.setattr(live_secrets, "LIVE_SECRETS", _Remembered(watch, live_secrets.LIVE_SECRETS))
        patch.setattr(IsthmusError, "__init__", made, raising=False)
        for app in (HttpApp, AuthorizationServer):
            patch.setattr(app, "__call__", _heard(watch, app.__call__))
        patch.setattr(Exchange, "send", _driven(watch, Exchange.send))
        root.addHandler(watch)
        root.setLevel(logging.DEBUG)
        try:
            yield watch
        finally:
            root.setLevel(level)
            root.removeHandler(watch)
