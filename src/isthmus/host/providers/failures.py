"""What goes wrong with a provider of models, by what one can do about it."""

from isthmus.host.errors import HostError

__all__ = [
    "BadCredentials",
    "ProviderBroke",
    "ProviderError",
    "ProviderRefused",
    "ProviderUnavailable",
    "RateLimited",
    "TooLong",
]


class ProviderError(HostError):
    """A provider gave no answer.

    Attributes:
        provider: its name.
        retry_after: seconds after which another try is worth it; None where nobody said so.
    """

    again = False
    """Whether the same request may be sent again soon, as long as nothing of an answer has come."""

    def __init__(
        self, message: str, *, provider: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.provider = provider
        self.retry_after = retry_after


class BadCredentials(ProviderError):
    """The key is missing, wrong, or not allowed to use this model."""


class RateLimited(ProviderError):
    """The provider wants fewer requests, or more money; ``retry_after`` is what it said."""

    again = True


class TooLong(ProviderError):
    """The conversation does not fit into the model's context."""


class ProviderRefused(ProviderError):
    """The provider does not take the request: the model is unknown, or a member has no meaning."""


class ProviderUnavailable(ProviderError):
    """Nobody answers there, or only to say that nobody can."""

    again = True


class ProviderBroke(ProviderError):
    """The answer broke off or made no sense: what had come until then is no answer."""
