"""Secrets of the user that configurations name: ``${secret:path}``."""

from collections.abc import Mapping

from isthmus.auth.secret import Secret

__all__ = ["UserSecrets"]


class UserSecrets:
    """The user's secrets.

    Args:
        environ: the environment.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def get(self, path: str) -> Secret | None:  # noqa: ARG002 - to come
        """A secret; None where there is none of this name."""
        return None
