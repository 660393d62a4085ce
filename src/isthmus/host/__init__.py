"""The host: many servers, one user who is in charge of what they see and do.

Names are imported when they are first used.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isthmus.host.attempt import Attempt as Attempt
    from isthmus.host.conversation import Conversation as Conversation
    from isthmus.host.errors import AuditUnavailable as AuditUnavailable
    from isthmus.host.errors import BadArguments as BadArguments
    from isthmus.host.errors import ConfigError as ConfigError
    from isthmus.host.errors import Denied as Denied
    from isthmus.host.errors import Exhausted as Exhausted
    from isthmus.host.errors import HostError as HostError
    from isthmus.host.errors import OutcomeUnknown as OutcomeUnknown
    from isthmus.host.errors import PolicyError as PolicyError
    from isthmus.host.errors import Quarantined as Quarantined
    from isthmus.host.errors import ServerUnavailable as ServerUnavailable
    from isthmus.host.errors import Unknown as Unknown
    from isthmus.host.errors import UserDeclined as UserDeclined
    from isthmus.host.host import Host as Host
    from isthmus.host.interaction import Approver as Approver
    from isthmus.host.interaction import Decision as Decision
    from isthmus.host.interaction import Interaction as Interaction
    from isthmus.host.policy.facts import Facts as Facts
    from isthmus.host.policy.policy import Policy as Policy
    from isthmus.host.policy.trace import Trace as Trace

__all__ = [
    "Approver",
    "Attempt",
    "AuditUnavailable",
    "BadArguments",
    "ConfigError",
    "Conversation",
    "Decision",
    "Denied",
    "Exhausted",
    "Facts",
    "Host",
    "HostError",
    "Interaction",
    "OutcomeUnknown",
    "Policy",
    "PolicyError",
    "Quarantined",
    "ServerUnavailable",
    "Trace",
    "Unknown",
    "UserDeclined",
]

_HOMES = {
    "Attempt": "attempt",
    "Conversation": "conversation",
    "Facts": "policy.facts",
    "Host": "host",
    "Policy": "policy.policy",
    "Trace": "policy.trace",
    **dict.fromkeys(
        (
            *("AuditUnavailable", "BadArguments", "ConfigError", "Denied", "Exhausted"),
            *("HostError", "OutcomeUnknown", "PolicyError", "Quarantined", "ServerUnavailable"),
            *("Unknown", "UserDeclined"),
        ),
        "errors",
    ),
    **dict.fromkeys(("Approver", "Decision", "Interaction"), "interaction"),
}


def __getattr__(name: str) -> Any:
    """Import a public name on its first use, and keep it (PEP 562)."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'isthmus.host' has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(f"isthmus.host.{home}"), name)
    return value
