"""What two that understand each other can do: steps for the client, and what must come of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from isthmus.revisions import BY_NAME, Feature

TOOLS = {
    *("ask", "chat", "echo", "fail", "grow", "slow"),
    *("steps", "stopped", "think", "touch", "where"),
}


class AtLeast:
    """Equal to a list that has all of these."""

    def __init__(self, names: set[str]) -> None:
        self.names = names

    def __eq__(self, other: object) -> bool:
        return isinstance(other, list) and self.names <= set(other)

    def __hash__(self) -> int:
        return hash(frozenset(self.names))

    def __repr__(self) -> str:
        return f"at least {sorted(self.names)}"


class Failed:
    """Equal to the outcome of a call that failed as a tool does."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, dict) and other.get("error") is True

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "an error of the tool"


class Said:
    """Equal to the outcome of a call that went well; its progress counts only where it is given."""

    def __init__(self, text: str, progress: tuple[float, ...]) -> None:
        self.text = text
        self.progress = list(progress)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, dict) or other.get("error") is not False:
            return False
        return other["text"] == self.text and self.progress in ([], other["progress"])

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"{self.text!r} with progress {self.progress}" if self.progress else repr(self.text)


def said(text: str, *progress: float) -> Said:
    """The outcome of a call that went well."""
    return Said(text, progress)


Steps = list[list[Any]]
Expected = Callable[[str], list[Any]]
When = Callable[[str, str], bool]


def anywhere(_transport: str, _revision: str) -> bool:
    """Over every transport, in every revision."""
    return True


def asks(_transport: str, revision: str) -> bool:
    """Where the user can be asked."""
    return BY_NAME[revision].has(Feature.ELICITATION_FORM)


def shakes_hands(_transport: str, revision: str) -> bool:
    """Where there is a handshake, and a ping."""
    return revision <= "2025-11-25"


def polls(transport: str, revision: str) -> bool:
    """Where a server may close a stream before the answer, and the client comes back for it."""
    return transport == "http" and revision == "2025-11-25"


def missing(revision: str) -> list[Any]:
    """What comes of reading a resource that is not there."""
    return [{"code": -32602 if revision > "2025-11-25" else -32002}]


def always(*outcomes: object) -> Expected:
    """The same in every revision."""
    return lambda _revision: list(outcomes)


@dataclass(frozen=True)
class Behaviour:
    """One thing to be seen.

    Attributes:
        steps: what the client does; see ``counterparts/steps.py``.
        expected: what comes of each step.
        when: where there is such a thing.
    """

    steps: Steps
    expected: Expected
    when: When = anywhere


BEHAVIOURS: dict[str, Behaviour] = {
    "tools": Behaviour([["tools"]], always(AtLeast(TOOLS))),
    "a call": Behaviour([["call", "echo", {"text": "hé ☃"}]], always(said("hé ☃"))),
    "a tool that fails": Behaviour([["call", "fail", {}]], always(Failed())),
    "an unknown tool": Behaviour([["call", "nobody", {}]], always({"code": -32602})),
    "resources": Behaviour(
        [["resources"], ["templates"], ["read", "note://one"], ["read", "note://two"]],
        always(["note://one"], ["note://{name}"], "Remember the milk.", "Note two."),
    ),
    "an unknown resource": Behaviour([["read", "missing://x"]], missing),
    "prompts": Behaviour(
        [["prompts"], ["prompt", "hello", {"name": "Ada"}]],
        always(["hello"], "Say hello to Ada."),
    ),
    "completion": Behaviour([["complete", "hello", "name", "A"]], always(["Ada", "Alan"])),
    "progress": Behaviour([["call", "steps", {}]], always(said("done", 1, 2, 3))),
    "logging": Behaviour([["call", "chat", {}], ["logs", 1]], always(said("said"), ["loud"])),
    "elicitation": Behaviour([["call", "ask", {}]], always(said("row 7")), asks),
    "sampling": Behaviour([["call", "think", {"topic": "x"}]], always(said("A thought."))),
    "roots": Behaviour([["call", "where", {}]], always(said("file:///work"))),
    "cancellation": Behaviour(
        [["cancel", "slow", {"key": "KEY"}], ["call", "stopped", {"key": "KEY"}]],
        always("cancelled", said("yes")),
    ),
    "a list that changes": Behaviour(
        [["hear", []], ["call", "grow", {}], ["changed", "tools"]],
        always(True, said("changed"), "tools"),
    ),
    "a resource that changes": Behaviour(
        [["hear", ["note://one"]], ["call", "touch", {}], ["changed", "updated note://one"]],
        always(True, said("touched"), "updated note://one"),
    ),
    "resumption": Behaviour([["call", "drop", {}]], always(said("resumed")), polls),
    "ping": Behaviour([["ping"]], always(True), shakes_hands),
}


PAGE = Behaviour([["call", "pay", {}]], always(said("paid")))  # which our server sends users to


def select_behaviours(
    transport: str, revision: str, *, pages: bool = False
) -> dict[str, Behaviour]:
    """The behaviours there are over a transport in a revision.

    Args:
        transport: the transport.
        revision: the revision.
        pages: whether both sides can have the user sent to a page, where the revision has that.
    """
    found = {name: b for name, b in BEHAVIOURS.items() if b.when(transport, revision)}
    if pages and BY_NAME[revision].has(Feature.ELICITATION_URL):
        found["a page"] = PAGE
    return found


def seen_through_gateway(client: str, server: str, *, pages: bool) -> dict[str, Behaviour]:
    """The behaviours there are where a gateway stands between a client and a server of two revisions.

    Args:
        client: the revision of the client.
        server: the one of the server, which is behind the gateway over HTTP.
        pages: as for :func:`select_behaviours`.
    """
    older = min(client, server)
    found = select_behaviours("", older, pages=pages)
    found.pop("ping", None)
    if shakes_hands("", client):
        found["ping"] = BEHAVIOURS["ping"]
    if polls("http", server):
        found["resumption behind it"] = BEHAVIOURS["resumption"]
    return found
