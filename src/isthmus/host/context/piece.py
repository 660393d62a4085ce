"""One thing that a model might be given to read, and what became of it."""

from typing import Literal, TypeAlias

from msgspec import Struct

__all__ = ["Kind", "Manifest", "Piece", "Placed"]

Kind: TypeAlias = Literal["pinned", "instructions", "resource", "prompt", "link", "app"]
"""Where it comes from: pinned by the user, what a server says of itself, a resource, a prompt, a
link that a tool gave, what an app wants the model to know."""


class Piece(Struct, frozen=True, kw_only=True):
    """A candidate.

    Attributes:
        server: whose it is.
        uri: what it is called there; for instructions and prompts their own word.
        text: what there is to read.
        kind: where it comes from; what is pinned comes first.
        title: for people.
        mime_type: what kind of text, or of other data.
        media: whether it is a picture or sound, whose ``text`` is base64.
        priority: what the server says of its importance, from 0 to 1; None where it says nothing.
        audience: whom the server means it for; empty for anybody.
        modified: when it changed, in seconds since the epoch; None where nobody says.
    """

    server: str
    uri: str
    text: str
    kind: Kind = "resource"
    title: str = ""
    mime_type: str = "text/plain"
    media: bool = False
    priority: float | None = None
    audience: tuple[str, ...] = ()
    modified: float | None = None


class Placed(Struct, frozen=True, kw_only=True):
    """What became of one candidate.

    Attributes:
        server, uri, title, kind: which it is.
        state: whole, in part, or not at all.
        tokens: what it takes with its frame.
        of: what it would have taken whole; 0 where that was not counted.
        reason: why.
        score: what it was ranked by.
    """

    server: str
    uri: str
    title: str
    kind: Kind
    state: Literal["included", "truncated", "dropped"]
    tokens: int = 0
    of: int = 0
    reason: str = ""
    score: float = 0.0


class Manifest(Struct, frozen=True, kw_only=True):
    """What was included and why, in the order of rank.

    Attributes:
        placed: every candidate.
        tokens: what is included takes in all.
        budget: what there was.
        counter: how tokens were counted.
    """

    placed: tuple[Placed, ...]
    tokens: int
    budget: int
    counter: str

    def __str__(self) -> str:
        lines = [f"{self.tokens} of {self.budget} tokens ({self.counter})"]
        lines += [
            f"{one.state:9} {one.tokens:6}  {one.server} {one.uri}: {one.reason}"
            for one in self.placed
        ]
        return "\n".join(lines)
