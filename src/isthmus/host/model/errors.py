"""Errors that a host raises, and what each means for the caller.

The tree::

    HostError
    ├── Unknown              there is no such server, tool, prompt, task or run; also a UsageError
    ├── BadArguments         they do not fit what the tool takes; also a UsageError
    ├── Denied               policy or a person said no, or nobody said yes in time
    │   ├── Quarantined      the tool is not what it was when it was approved
    │   └── ApprovalPending  a person has not decided yet: call again for what they decide
    ├── UserDeclined         a person refused what the server asked in the course of the call
    ├── OutcomeUnknown       it was sent, and nobody can tell what became of it
    ├── ServerUnavailable    the server cannot be reached: its state, and why
    │   └── ConnectRequired  it wants an account there of whoever calls: a page connects one
    ├── Exhausted            too much of it: try again after a while
    ├── AuditUnavailable     what is done cannot be written down, so nothing is done
    └── ConfigError          the configuration says what cannot be
        └── PolicyError      a policy does; also a UsageError

Nothing was sent to a server where one of them is raised, except for ``OutcomeUnknown`` and
``UserDeclined``.
"""

from typing import Literal

from isthmus.errors import AuthRequired, IsthmusError, UsageError

# What a host may be told of another: the control socket makes errors of these names again.
__all__ = [
    "ApprovalPending",
    "AuditUnavailable",
    "BadArguments",
    "ConfigError",
    "ConnectRequired",
    "Denied",
    "Exhausted",
    "HostError",
    "OutcomeUnknown",
    "PolicyError",
    "Quarantined",
    "ServerUnavailable",
    "Unknown",
    "UserDeclined",
]


class HostError(IsthmusError):
    """The root of everything a host raises by itself."""


class Unknown(HostError, UsageError):
    """An unknown name: of a server, tool, resource or prompt; the message has names that are near."""


class BadArguments(HostError, UsageError):
    """The arguments do not fit; the message has the member, the rule and the place."""


class Denied(HostError):
    """A denied attempt: policy or a person said no, and nothing was done.

    Args:
        message: the text of the error.

    Attributes:
        rule: the rule of the policy that decided; empty where it was none.
        by: who decided: ``policy``, a surface, ``deadline``, or ``nobody`` where nobody was there.
        verdict: ``deny``; ``cancel`` where a person turned away, or nobody was there.
        reason: why, in a sentence.
    """

    def __init__(
        self,
        message: str,
        *,
        rule: str = "",
        by: str = "policy",
        verdict: Literal["deny", "cancel"] = "deny",
        reason: str = "",
    ) -> None:
        super().__init__(message)
        self.rule = rule
        self.by = by
        self.verdict = verdict
        self.reason = reason or message


class Quarantined(Denied):
    """The tool's definition has changed since it was approved, and nobody released the new one."""


class ApprovalPending(Denied):
    """A person has not decided yet, and the client is not kept waiting any longer; nothing was done.

    Attributes:
        approval: the name of the question.
        page: the address where a person decides; empty where there is none.
        until: when the question ends, in seconds since the epoch.
    """

    def __init__(
        self, message: str, *, approval: str = "", page: str = "", until: float = 0.0, **more: str
    ) -> None:
        super().__init__(message, rule=more.get("rule", ""), by="approval", verdict="cancel")
        self.approval = approval
        self.page = page
        self.until = until


class UserDeclined(HostError):
    """A refused question: the server asked for something during the call, and a person refused.

    Args:
        message: the text of the error.

    Attributes:
        what: what was asked for, as an action: ``sampling.request``, for example.
    """

    def __init__(self, message: str, *, what: str = "") -> None:
        super().__init__(message)
        self.what = what


class OutcomeUnknown(HostError):
    """A call was sent, and its outcome is not known: no answer came. It is not sent again.

    Args:
        message: the text of the error.

    Attributes:
        call: the attempt's id, as it stands in the audit log.
    """

    def __init__(self, message: str, *, call: str = "") -> None:
        super().__init__(message)
        self.call = call


class ServerUnavailable(HostError):
    """A server that cannot be reached; nothing was sent.

    Args:
        message: the text of the error.

    Attributes:
        server: its name.
        state: the state it is in, as the supervisor calls it.
    """

    def __init__(self, message: str, *, server: str = "", state: str = "") -> None:
        super().__init__(message)
        self.server = server
        self.state = state


class ConnectRequired(ServerUnavailable):
    """The server wants an account of whoever calls, and they have none there that is good; nothing was done.

    Attributes:
        principal: whose account it is to be; empty until it is known who calls.
        reason: what is wrong with the account: ``missing``, ``expired``, ``refused``, or ``scopes`` where
            it does not allow enough.
        scopes: what the server says that it wants, as far as it does.
        url: the page on which it is connected; empty where there is none.
    """

    def __init__(
        self,
        message: str,
        *,
        server: str = "",
        principal: str = "",
        reason: str = "missing",
        scopes: frozenset[str] = frozenset(),
        url: str = "",
    ) -> None:
        super().__init__(message, server=server, state="needs_auth")
        self.principal = principal
        self.reason = reason
        self.scopes = scopes
        self.url = url


class AccountRequired(AuthRequired):
    """The credentials of a connection: only a person can help, by connecting an account.

    Attributes:
        server: the server's name.
        reason: as of :class:`ConnectRequired`.
        scopes: the same.
    """

    def __init__(
        self, message: str, *, server: str, reason: str, scopes: frozenset[str] = frozenset()
    ) -> None:
        super().__init__(message)
        self.server = server
        self.reason = reason
        self.scopes = scopes


class Exhausted(HostError):
    """A limit was reached: too much at once, too often, or over a budget.

    Args:
        message: the text of the error.

    Attributes:
        retry_after: seconds until it may go through; None where waiting does not help.
    """

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class AuditUnavailable(HostError):
    """The audit log cannot be written, so that nothing may be done that belongs into it."""


class ConfigError(HostError):
    """The configuration says what cannot be: the message has what, where, and how to mend it."""


class PolicyError(ConfigError, UsageError):
    """A policy says what cannot be: all of it, a line each, with file, rule and how to mend it."""
