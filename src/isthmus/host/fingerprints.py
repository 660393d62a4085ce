"""Whether a tool is still what it was when it was approved."""

from msgspec import Struct

from isthmus.wire import Tool

__all__ = ["Change", "Fingerprints", "fingerprint"]


class Change(Struct, frozen=True, kw_only=True):
    """A tool whose definition is not the one that is known.

    Attributes:
        server: the server's name, ``identity`` what it is bound to, ``tool`` the tool's name.
        before: the definition that is known, as canonical JSON, and ``known`` its fingerprint.
        after: the one the server gives now, and ``fingerprint`` its own.
    """

    server: str
    identity: str
    tool: str
    before: bytes
    after: bytes
    known: str
    fingerprint: str

    def diff(self) -> tuple[str, ...]:
        """The lines in which they differ, ``-`` before and ``+`` after."""
        raise NotImplementedError


def fingerprint(tool: Tool) -> str:
    """SHA-256 of what a tool is, in hex, whatever the order of its members."""
    raise NotImplementedError


class Fingerprints:
    """The definitions that are known, in the host's state."""

    async def load(self) -> None:
        """Read what is known."""
        raise NotImplementedError

    def check(self, server: str, identity: str, tool: Tool) -> str | Change | None:
        """Its fingerprint where it is what is known, a change where it is not; None: never seen."""
        raise NotImplementedError

    async def learn(self, server: str, identity: str, tool: Tool) -> str | Change:
        """Know a tool that was never seen; where another process was first, that one counts."""
        raise NotImplementedError

    async def release(self, change: Change) -> str:
        """From now on the new definition is the known one: a person said yes to it."""
        raise NotImplementedError
