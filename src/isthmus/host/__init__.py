"""The host: many servers, one user who is in charge of what they see and do.

Names are imported when they are first used.
"""

from typing import TYPE_CHECKING

from isthmus.lazy import lazy_getattr

if TYPE_CHECKING:
    from isthmus.host.chat.conversation import Conversation
    from isthmus.host.config.load import LoadedConfig, load_config
    from isthmus.host.config.write import ConfigFile
    from isthmus.host.confinement.dangers import find_dangers
    from isthmus.host.confinement.folders import RootFolder, resolve_roots
    from isthmus.host.confinement.sandbox import GrantedFolder, describe_sandbox
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
        CallAsked,
        ChangeAsked,
        ConnectAsked,
        Decision,
        FormAsked,
        InstallAsked,
        Interaction,
        PageAsked,
        PromptAsked,
        ReadAsked,
        RootsAsked,
        SamplingAsked,
        SamplingWritten,
        ShareAsked,
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
    "CallAsked",
    "ChangeAsked",
    "ConfigError",
    "ConfigFile",
    "ConnectAsked",
    "Control",
    "Conversation",
    "Decision",
    "Denied",
    "Exhausted",
    "Facts",
    "FormAsked",
    "GrantedFolder",
    "Host",
    "HostConfig",
    "HostError",
    "HostOptions",
    "InstallAsked",
    "Interaction",
    "LoadedConfig",
    "OutcomeUnknown",
    "PageAsked",
    "Policy",
    "PolicyError",
    "PromptAsked",
    "Quarantined",
    "ReadAsked",
    "RootEntry",
    "RootFolder",
    "RootsAsked",
    "SamplingAsked",
    "SamplingWritten",
    "Sandbox",
    "ServerLimits",
    "ServerUnavailable",
    "ShareAsked",
    "Trace",
    "Unknown",
    "UserDeclined",
    "describe_sandbox",
    "find_dangers",
    "load_config",
    "resolve_roots",
]

_HOMES = {
    "Advertise": "isthmus.host.model.entries",
    "Approver": "isthmus.host.model.interaction",
    "AttachedHost": "isthmus.host.remote.attached",
    "Attempt": "isthmus.host.model.attempt",
    "AuditUnavailable": "isthmus.host.model.errors",
    "BadArguments": "isthmus.host.model.errors",
    "Budget": "isthmus.host.pipeline.runs",
    "CallAsked": "isthmus.host.model.interaction",
    "ChangeAsked": "isthmus.host.model.interaction",
    "ConfigError": "isthmus.host.model.errors",
    "ConfigFile": "isthmus.host.config.write",
    "ConnectAsked": "isthmus.host.model.interaction",
    "Control": "isthmus.host.remote.control",
    "Conversation": "isthmus.host.chat.conversation",
    "Decision": "isthmus.host.model.interaction",
    "Denied": "isthmus.host.model.errors",
    "Exhausted": "isthmus.host.model.errors",
    "Facts": "isthmus.host.model.facts",
    "FormAsked": "isthmus.host.model.interaction",
    "GrantedFolder": "isthmus.host.confinement.sandbox",
    "Host": "isthmus.host.host",
    "HostConfig": "isthmus.host.model.entries",
    "HostError": "isthmus.host.model.errors",
    "HostOptions": "isthmus.host.model.entries",
    "InstallAsked": "isthmus.host.model.interaction",
    "Interaction": "isthmus.host.model.interaction",
    "LoadedConfig": "isthmus.host.config.load",
    "OutcomeUnknown": "isthmus.host.model.errors",
    "PageAsked": "isthmus.host.model.interaction",
    "Policy": "isthmus.host.policy.policy",
    "PolicyError": "isthmus.host.model.errors",
    "PromptAsked": "isthmus.host.model.interaction",
    "Quarantined": "isthmus.host.model.errors",
    "ReadAsked": "isthmus.host.model.interaction",
    "RootEntry": "isthmus.host.model.entries",
    "RootFolder": "isthmus.host.confinement.folders",
    "RootsAsked": "isthmus.host.model.interaction",
    "SamplingAsked": "isthmus.host.model.interaction",
    "SamplingWritten": "isthmus.host.model.interaction",
    "Sandbox": "isthmus.host.model.entries",
    "ServerLimits": "isthmus.host.model.entries",
    "ServerUnavailable": "isthmus.host.model.errors",
    "ShareAsked": "isthmus.host.model.interaction",
    "Trace": "isthmus.host.model.trace",
    "Unknown": "isthmus.host.model.errors",
    "UserDeclined": "isthmus.host.model.errors",
    "describe_sandbox": "isthmus.host.confinement.sandbox",
    "find_dangers": "isthmus.host.confinement.dangers",
    "load_config": "isthmus.host.config.load",
    "resolve_roots": "isthmus.host.confinement.folders",
}

__getattr__ = lazy_getattr(__name__, _HOMES)
