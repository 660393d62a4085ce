"""The host: many servers, one user who is in charge of what they see and do.

Names are imported when they are first used.
"""

from typing import TYPE_CHECKING

from isthmus.lazy import lazy_getattr

if TYPE_CHECKING:
    from isthmus.host.chat.conversation import Conversation
    from isthmus.host.host import Host as Host
    from isthmus.host.model.attempt import Attempt
    from isthmus.host.model.entries import (
        Advertise,
        HostConfig,
        HostOptions,
        RootEntry,
        Sandbox,
        ServerLimits,
    )
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
    from isthmus.host.model.interaction import (
        Approver,
        Decision,
        Interaction,
        SamplingAsked,
        SamplingWritten,
    )
    from isthmus.host.model.trace import Trace
    from isthmus.host.pipeline.runs import Budget
    from isthmus.host.policy.policy import Policy as Policy
    from isthmus.host.remote.attached import AttachedHost
    from isthmus.host.remote.control import Control

__all__ = [
    "Advertise",
    "Approver",
    "AttachedHost",
    "Attempt",
    "AuditUnavailable",
    "BadArguments",
    "Budget",
    "ConfigError",
    "Control",
    "Conversation",
    "Decision",
    "Denied",
    "Exhausted",
    "Facts",
    "Host",
    "HostConfig",
    "HostError",
    "HostOptions",
    "Interaction",
    "OutcomeUnknown",
    "Policy",
    "PolicyError",
    "Quarantined",
    "RootEntry",
    "SamplingAsked",
    "SamplingWritten",
    "Sandbox",
    "ServerLimits",
    "ServerUnavailable",
    "Trace",
    "Unknown",
    "UserDeclined",
]

_HOMES = {
    "Advertise": "isthmus.host.model.entries",
    "Approver": "isthmus.host.model.interaction",
    "AttachedHost": "isthmus.host.remote.attached",
    "Attempt": "isthmus.host.model.attempt",
    "AuditUnavailable": "isthmus.host.model.errors",
    "BadArguments": "isthmus.host.model.errors",
    "Budget": "isthmus.host.pipeline.runs",
    "ConfigError": "isthmus.host.model.errors",
    "Control": "isthmus.host.remote.control",
    "Conversation": "isthmus.host.chat.conversation",
    "Decision": "isthmus.host.model.interaction",
    "Denied": "isthmus.host.model.errors",
    "Exhausted": "isthmus.host.model.errors",
    "Facts": "isthmus.host.model.facts",
    "Host": "isthmus.host.host",
    "HostConfig": "isthmus.host.model.entries",
    "HostError": "isthmus.host.model.errors",
    "HostOptions": "isthmus.host.model.entries",
    "Interaction": "isthmus.host.model.interaction",
    "OutcomeUnknown": "isthmus.host.model.errors",
    "Policy": "isthmus.host.policy.policy",
    "PolicyError": "isthmus.host.model.errors",
    "Quarantined": "isthmus.host.model.errors",
    "RootEntry": "isthmus.host.model.entries",
    "SamplingAsked": "isthmus.host.model.interaction",
    "SamplingWritten": "isthmus.host.model.interaction",
    "Sandbox": "isthmus.host.model.entries",
    "ServerLimits": "isthmus.host.model.entries",
    "ServerUnavailable": "isthmus.host.model.errors",
    "Trace": "isthmus.host.model.trace",
    "Unknown": "isthmus.host.model.errors",
    "UserDeclined": "isthmus.host.model.errors",
}

__getattr__ = lazy_getattr(__name__, _HOMES)
