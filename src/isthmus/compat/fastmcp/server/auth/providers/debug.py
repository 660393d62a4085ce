"""Verifier by a function, under the name of ``fastmcp.server.auth.providers.debug``."""

import inspect
import logging
from collections.abc import Callable
from typing import Any

from isthmus.compat.fastmcp.server.auth.auth import AccessToken, TokenVerifier

logger = logging.getLogger("fastmcp.server.auth.providers.debug")


def accept_token(token: str) -> bool:
    """Accept every token that is not empty."""
    return bool(token)


class DebugTokenVerifier(TokenVerifier):
    """Verifier for tests: a function says which tokens are good; all are by default.

    Args:
        validate: says whether a token is good.
        client_id: the client of all tokens.
        scopes: the scopes of all tokens.
        required_scopes: scopes that every request takes.
    """

    def __init__(
        self,
        validate: Callable[[str], Any] = accept_token,
        client_id: str = "debug-client",
        scopes: list[str] | None = None,
        required_scopes: list[str] | None = None,
    ) -> None:
        super().__init__(required_scopes=required_scopes)
        self.validate, self.client_id, self.scopes = validate, client_id, scopes or []

    async def verify_token(self, token: str) -> AccessToken | None:
        """Verify a token by the function; None where it says no, or fails."""
        if not token.strip():
            return None
        try:
            verdict = self.validate(token)
            good = bool(await verdict if inspect.isawaitable(verdict) else verdict)
        except Exception:
            logger.debug("Token validation error", exc_info=True)
            return None
        if not good:
            return None
        return AccessToken(
            token=token, client_id=self.client_id, scopes=self.scopes, claims={"token": token}
        )
