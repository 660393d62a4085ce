"""How a request that went wrong is told, whatever the library beneath says of it."""

import errno
import socket
import ssl

import pytest

from isthmus.transports.http.requests import hint, said


class FromLibrary(Exception):
    """An exception as aiohttp has them: its own words around the system's error."""

    def __init__(self, os_error: OSError) -> None:
        super().__init__(f"Cannot connect to host a:80 ssl:default [{os_error.strerror}]")
        self.os_error = os_error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (FromLibrary(OSError(errno.ECONNREFUSED, "Connect call failed")), "Connection refused"),
        (FromLibrary(OSError(errno.EHOSTUNREACH, "failed")), "No route to host"),
        (FromLibrary(socket.gaierror(-2, "Name not known")), "Name not known"),
        (ConnectionResetError(errno.ECONNRESET, "gone"), "Connection reset by peer"),
        (FromLibrary(ssl.SSLError(1, "wrong version number")), "Cannot connect to host a:80 "),
        (ValueError("no such scheme"), "no such scheme"),
        (RuntimeError(), "RuntimeError"),
    ],
)
def test_what_went_wrong_is_told_in_the_systems_words(error, words):
    """Ours: a refused connection is told as such, without the library's internals."""
    assert said(error).startswith(words)


class FromProxy(Exception):
    """What is raised where a proxy answers for itself; others have a status, too."""

    def __init__(self, status):
        super().__init__("no")
        self.status = status


class Distrusted(Exception):
    """An exception as aiohttp has them of certificates."""

    certificate_error = ssl.SSLCertVerificationError(1, "self-signed certificate")


@pytest.mark.parametrize(
    ("error", "proxied", "words"),
    [
        (ConnectionRefusedError(errno.ECONNREFUSED, "no"), False, ": is a server running there?"),
        (FromLibrary(socket.gaierror(-2, "Name not known")), False, ": is the name right, and"),
        (Distrusted(), False, ": pass tls= a context that trusts"),
        (ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER]"), False, ": does it speak http:// rather"),
        (TimeoutError(), False, ": nothing answers there; connect_timeout="),
        (FromProxy(407), True, ": it wants credentials"),
        (FromProxy(403), True, ": NO_PROXY names hosts"),
        (FromProxy(403), False, ""),
        (ValueError("no such scheme"), False, ""),
    ],
)
def test_what_to_look_at_first_is_told(error, proxied, words):
    """Ours: where it is known."""
    found = hint(error, proxied=proxied)

    assert (True, bool(words)) == (found.startswith(words), bool(found))


def test_a_timeout_is_told_as_one():
    """Ours: some of aiohttp's say nothing, or too much."""
    assert "no connection in time" == said(TimeoutError("Connection timeout to host x"))
