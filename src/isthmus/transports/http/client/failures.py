"""Failures of HTTP requests, in words: what happened, and what helps."""

import errno
import os
import socket
import ssl
from collections.abc import Callable
from typing import Any, TypeAlias


def describe_error(error: Exception) -> str:
    """An exception in words: the system's where it comes from there; some of aiohttp's have none."""
    cause = getattr(error, "os_error", error)
    if isinstance(cause, socket.gaierror):
        return str(cause.strerror)
    # The numbers of TLS errors are not the system's.
    if isinstance(cause, OSError) and cause.errno and not isinstance(cause, ssl.SSLError):
        return os.strerror(cause.errno)
    if isinstance(cause, TimeoutError):
        return "no connection in time"
    if any(name in str(error) for name in UNFINISHED_BODY_ERRORS):
        return "the connection ended in the middle of it"
    if hasattr(error, "request_info"):  # its own words have the whole URL in them
        return f"{getattr(error, 'status', '')} {getattr(error, 'message', '')}".strip()
    return str(error) or type(error).__name__


def find_hint(error: Exception, *, proxied: bool = False) -> str:
    """Find the hint that helps after an exception; empty where none is known."""
    cause = getattr(error, "os_error", error)
    cause = getattr(cause, "certificate_error", cause)
    status = getattr(error, "status", None) if proxied else None  # it would not let us through
    for known, words in ERROR_HINTS:
        if known(cause, status):
            return f": {words}"
    return ""


# What aiohttp calls a body whose end never came
UNFINISHED_BODY_ERRORS = ("TransferEncodingError", "ContentLengthError")

ErrorTest: TypeAlias = Callable[[Any, int | None], bool]

# Exceptions by what they are, and what helps
ERROR_HINTS: tuple[tuple[ErrorTest, str], ...] = (
    (
        lambda _, status: status == 407,
        "it wants credentials: http://USER:PASSWORD@HOST in the proxy's URL",
    ),
    (
        lambda _, status: status is not None,
        "NO_PROXY names hosts to be reached without the proxy, proxy=False goes without it",
    ),
    (lambda e, _: getattr(e, "errno", None) == errno.ECONNREFUSED, "is a server running there?"),
    (lambda e, _: isinstance(e, socket.gaierror), "is the name right, and does DNS know it?"),
    (
        lambda e, _: isinstance(e, ssl.SSLCertVerificationError),
        "pass tls= a context that trusts the server's certificate",
    ),
    (
        lambda e, _: isinstance(e, ssl.SSLError) and "WRONG_VERSION" in str(e),
        "does it speak http:// rather than https://?",
    ),
    (
        lambda e, _: isinstance(e, TimeoutError),
        "nothing answers there; connect_timeout= gives it more time",
    ),
)
