"""What can go wrong between a server and a provider behind it; never in the provider's own words.

A provider's error texts may be written by whoever made the request, so nothing of them is shown,
logged or handed on. What is kept is its code, where that is one that a specification defines.
"""

from typing import Any

from isthmus.errors import AuthRefused, ToolError

__all__ = ["UpstreamDenied", "UpstreamFailed", "UpstreamUnavailable", "code_of"]

ENDED = frozenset({
    *("invalid_grant", "access_denied", "login_required", "interaction_required"),
    *("consent_required", "account_selection_required", "bad_refresh_token"),
})  # fmt: skip
"""Codes that say: the user has to log in again. ``bad_refresh_token`` is GitHub's."""

KNOWN = ENDED | {
    *("invalid_request", "invalid_client", "unauthorized_client", "unsupported_grant_type"),
    *("invalid_scope", "invalid_target", "invalid_token", "insufficient_scope", "server_error"),
    *("unsupported_response_type", "temporarily_unavailable", "bad_verification_code"),
    *("incorrect_client_credentials", "redirect_uri_mismatch"),
}
"""Codes that may be named; any other text could say anything."""


class UpstreamDenied(AuthRefused, ToolError):
    """The provider, or its user there, says no for good: they would have to log in again.

    Attributes:
        error: the provider's code, where it is a registered one; else empty.
    """


class UpstreamUnavailable(ToolError):
    """The provider gave no usable answer. It may tomorrow; nothing was taken from anybody."""


class UpstreamFailed(ToolError):
    """The provider's API answered with an error.

    Attributes:
        status: its HTTP status.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def code_of(answer: Any) -> str:
    """The error code in an answer, or empty where it is none that is known."""
    error = answer.get("error") if isinstance(answer, dict) else None
    return error if isinstance(error, str) and error in KNOWN else ""
