"""What is known about an attempt besides itself: everything else that policy may look at."""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from isthmus.host.config.entries import Labels
from isthmus.host.policy.trace import Assurance
from isthmus.wire import ToolAnnotations

__all__ = ["Facts"]


class Facts(Struct, frozen=True, kw_only=True):
    """The circumstances of an attempt. Unknown is what a stranger would be: the default of each.

    Attributes:
        identity: what the server's name is bound to: its command and program, or its address.
        trust: how far the configuration trusts the server.
        annotations: what the server says of the tool; counts only where ``trust`` says so.
        fingerprint: of the tool's definition, in hex; empty for what is no tool.
        labels: what the run has taken over from results so far.
        chain: where that came from, a line for a person each, the first first.
        target: what the configuration says of the data of the server, or of this tool.
        era: the revision spoken.
        transport: how the server is reached: ``stdio``, ``http``, ``memory`` and so on.
        workspace: the folder that is worked in; empty for none.
        cwd: the folder that the server runs in, for paths that are not absolute; empty where that
            is not known.
        now: seconds since the epoch.
        attended: whether somebody is there who can be asked.
        assurance: how sure one can be that it is a person who would be asked.
        calls: how many attempts of this run each rule let through so far, by the rule's id.
    """

    identity: str = ""
    trust: Literal["untrusted", "annotations", "full"] = "untrusted"
    annotations: ToolAnnotations | None = None
    fingerprint: str = ""
    labels: frozenset[str] = frozenset()
    chain: tuple[str, ...] = ()
    target: Labels = Labels()
    era: str = ""
    transport: str = ""
    workspace: str = ""
    cwd: str = ""
    now: float = 0.0
    attended: bool = True
    assurance: Assurance = "callback"
    calls: Mapping[str, int] = {}
