"""Fixed tokens: for development, and for machines that know one another."""

import hmac
from collections.abc import Callable, Mapping
from time import time

from isthmus.auth.resource_server.verifier import Presented
from isthmus.auth.secret import Secret, digest
from isthmus.core.principal import Principal
from isthmus.errors import UsageError

__all__ = ["StaticTokens"]


class StaticTokens:
    """Knows tokens by heart. They are good for this server alone, for as long as it knows them.

    Only their hashes are kept, and a token is compared with all of them in the same time.

    Example::

        from isthmus.core.principal import Principal

        ada = Principal(issuer="static", subject="ada", scopes=frozenset({"files:read"}))
        verifier = StaticTokens({os.environ["FILES_TOKEN"]: ada})

    Args:
        tokens: each token, and whose it is.
        clock: seconds since the epoch.

    Raises:
        UsageError: a token is nobody's.
    """

    def __init__(
        self, tokens: Mapping[str | Secret, Principal], *, clock: Callable[[], float] = time
    ) -> None:
        if not whole(tokens):
            raise UsageError(
                "each token is somebody's: {token: Principal(issuer='ours', subject='ada', "
                "scopes=frozenset({'files:read'}))}"
            )
        self._known = [(digest(token), principal) for token, principal in tokens.items()]
        self._clock = clock

    async def verify(self, presented: Presented, resource: str) -> Principal | None:  # noqa: ARG002 - they are for this server
        """Whose a token is; None where nobody's."""
        given = digest(presented.token)
        found = None
        for known, principal in self._known:
            if hmac.compare_digest(given, known):
                found = principal
        if found is not None and found.expires_at is not None and found.expires_at <= self._clock():
            return None
        return found

    async def lasts(self, principal: Principal) -> bool:
        """Whether it is one of ours that has not expired."""
        known = any(principal == one for _, one in self._known)
        return known and (principal.expires_at is None or principal.expires_at > self._clock())


def whole(tokens: object) -> bool:
    """Whether each token has a principal, whose scopes are a set."""
    return isinstance(tokens, Mapping) and all(
        isinstance(one, Principal) and not isinstance(one.scopes, str) for one in tokens.values()
    )
