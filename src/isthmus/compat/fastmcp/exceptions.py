"""Exceptions under the names of ``fastmcp.exceptions``."""

import logging

from isthmus.errors import CapabilityMissing, Refuse, UrlRequired

# Errors of isthmus that are answers already: nothing translates them
OWN_ERRORS = (Refuse, CapabilityMissing, UrlRequired)


class FastMCPError(Exception):
    """Error of a server written for fastmcp: its text reaches the client.

    Args:
        *args: the text.
        log_level: the level at which it is logged.
    """

    def __init__(self, *args: object, log_level: int = logging.ERROR) -> None:
        super().__init__(*args)
        self.log_level = log_level


class ValidationError(FastMCPError):
    """Arguments or a result that do not fit."""


class ResourceError(FastMCPError):
    """Error in reading a resource."""


class ToolError(FastMCPError):
    """Error in a tool, for the model to read."""


class PromptError(FastMCPError):
    """Error in rendering a prompt."""


class InvalidSignature(Exception):
    """Signature that no tool can have."""


class ClientError(Exception):
    """Error of a client."""


class NotFoundError(Exception):
    """Name of something that is not there."""


class DisabledError(Exception):
    """Name of something that is disabled."""


class ResourceSecurityError(NotFoundError):
    """Argument of a resource template that leads out of its folder."""


class AuthorizationError(FastMCPError):
    """Refusal of an authorization check."""


class InsufficientScopeError(AuthorizationError):
    """Refusal of a token that lacks scopes.

    Args:
        required_scopes: the scopes that it lacks.
        message: the text; one that names the scopes by default.
    """

    def __init__(self, required_scopes: list[str], *, message: str | None = None) -> None:
        self.required_scopes = list(required_scopes)
        named = ", ".join(self.required_scopes) or "(unknown)"
        super().__init__(message or f"Insufficient scope. Required: {named}")


class FastMCPDeprecationWarning(DeprecationWarning):
    """Warning of fastmcp about a name that will go; nothing here raises it."""
