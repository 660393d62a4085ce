"""The host: many servers, one user who is in charge of what they see and do.

Names are imported when they are first used.
"""

from typing import TYPE_CHECKING

from isthmus.lazy import lazy_getattr

if TYPE_CHECKING:
    from isthmus.host.chat.conversation import Conversation
    from isthmus.host.host import Host as Host
    from isthmus.host.model.attempt import Attempt
    from isthmus.host.model.errors import (
        AuditUnavailable,
        BadArguments,
        ConfigError,
        Denied,
        Exhausted,
        HostError,
        OutcomeUnknown,
        PolicyError,
        Quarantined,
        ServerUnavailable,
        Unknown,
        UserDeclined,
    )
    from isthmus.host.model.facts import Facts
    from isthmus.host.model.interaction import Approver, Decision, Interaction
    from isthmus.host.model.trace import Trace
    from isthmus.host.policy.policy import Policy as Policy

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
    "Approver": "isthmus.host.model.interaction",
    "Attempt": "isthmus.host.model.attempt",
    "AuditUnavailable": "isthmus.host.model.errors",
    "BadArguments": "isthmus.host.model.errors",
    "ConfigError": "isthmus.host.model.errors",
    "Conversation": "isthmus.host.chat.conversation",
    "Decision": "isthmus.host.model.interaction",
    "Denied": "isthmus.host.model.errors",
    "Exhausted": "isthmus.host.model.errors",
    "Facts": "isthmus.host.model.facts",
    "Host": "isthmus.host.host",
    "HostError": "isthmus.host.model.errors",
    "Interaction": "isthmus.host.model.interaction",
    "OutcomeUnknown": "isthmus.host.model.errors",
    "Policy": "isthmus.host.policy.policy",
    "PolicyError": "isthmus.host.model.errors",
    "Quarantined": "isthmus.host.model.errors",
    "ServerUnavailable": "isthmus.host.model.errors",
    "Trace": "isthmus.host.model.trace",
    "Unknown": "isthmus.host.model.errors",
    "UserDeclined": "isthmus.host.model.errors",
}

__getattr__ = lazy_getattr(__name__, _HOMES)
