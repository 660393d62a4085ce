"""How a request that went wrong is told, whatever the library beneath says of it."""

import errno
import socket
import ssl

import pytest

from isthmus.transports.http.requests import said


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
