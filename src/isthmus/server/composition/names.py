"""Names of a mounted server: prefixed for clients of the outer one, and taken back.

``forecast`` of a server that is mounted as ``weather`` is ``weather_forecast``. A URI has the prefix as
its first part: ``notes://all`` is ``notes://weather/all``, and one without ``//``, as ``urn:isbn:9``, is
``urn:weather:isbn:9``. Nothing is decoded or normalised on the way, so that what has not the very prefix
is never taken for something of the mounted server.
"""

import re

from isthmus.errors import UsageError

PREFIX_PATTERN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?")
MAX_PREFIX_CHARS = 64  # of the 128 that a tool's name has

_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*:)(//)?(.*)", re.DOTALL)


def check_prefix(prefix: object) -> str | None:
    """A prefix as it was given, looked at.

    Raises:
        UsageError: it cannot be part of a tool's name and of a URI.
    """
    if prefix is None:
        return None
    if (
        not isinstance(prefix, str)
        or len(prefix) > MAX_PREFIX_CHARS
        or not PREFIX_PATTERN.fullmatch(prefix)
    ):
        # spec 2026-07-28 server/tools#tool-names: letters, digits, '_', '-' and '.'
        raise UsageError(
            f"{prefix!r} is no prefix: write 1 to {MAX_PREFIX_CHARS} letters, digits, '_', '-' or '.', "
            "the first and the last a letter or digit; or none, as in mount(other)"
        )
    return prefix


class NameMap:
    """Translates names between the clients of a server and one that is mounted in it.

    Args:
        prefix: what the names have outside; None where they are the same.

    Attributes:
        start: what a tool's or prompt's name begins with outside.
    """

    __slots__ = ("prefix", "start")

    def __init__(self, prefix: str | None) -> None:
        self.prefix = prefix
        self.start = "" if prefix is None else f"{prefix}_"

    def outer_name(self, name: str) -> str:
        """A tool's or prompt's name as clients of the outer server see it."""
        return self.start + name

    def inner_name(self, name: str) -> str | None:
        """The name that the mounted server knows; None for what has not the prefix."""
        start = self.start
        if not name.startswith(start) or len(name) == len(start):
            return None
        return name[len(start) :]

    def outer_uri(self, uri: str) -> str | None:
        """A URI, or a template of URIs, as clients see it; None where it has no scheme to stand after."""
        if self.prefix is None:
            return uri
        parts = _URI.fullmatch(uri)
        if parts is None:
            return None
        scheme, slashes, rest = parts.groups()
        return f"{scheme}//{self.prefix}/{rest}" if slashes else f"{scheme}{self.prefix}:{rest}"

    def inner_uri(self, uri: str) -> str | None:
        """The URI that the mounted server knows; None for what has not the prefix."""
        if self.prefix is None:
            return uri
        parts = _URI.fullmatch(uri)
        if parts is None:
            return None
        scheme, slashes, rest = parts.groups()
        start = f"{self.prefix}/" if slashes else f"{self.prefix}:"
        return f"{scheme}{slashes or ''}{rest[len(start) :]}" if rest.startswith(start) else None
