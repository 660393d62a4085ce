"""The tokens of a login that was made before: shown and renewed, and never asked for anew.

For programs that reach many servers, and must not open a browser for any of them by themselves.
"""

from isthmus.auth.client.oauth import OAuth
from isthmus.auth.client.proofs import Proofs
from isthmus.auth.client.session import Want
from isthmus.auth.client.tokens import Tokens
from isthmus.auth.client.user_grant import UserGrant
from isthmus.errors import AuthRequired, ScopeShortfall

__all__ = ["KeptGrant", "KeptOAuth"]


class KeptOAuth(OAuth):
    """Shows and refreshes the tokens of an earlier login, and leaves logging in to ``isthmus login``.

    Args:
        label: the target as one would type it there.
    """

    def __init__(self, label: str) -> None:
        super().__init__()
        self.label = label

    def grant(self, url: str, proofs: Proofs) -> "KeptGrant":
        """The way to the tokens that are kept for one MCP server."""
        return KeptGrant(url, self, proofs)


class KeptGrant(UserGrant):
    """The way to tokens that ends where the user would have to log in.

    Args:
        url: the MCP server.
        auth: how it was typed.
        proofs: binds tokens to a key, where they are bound.
    """

    def __init__(self, url: str, auth: KeptOAuth, proofs: Proofs) -> None:
        super().__init__(url, auth, auth.reach(url), proofs)
        self._label = auth.label

    async def obtain(self, want: Want) -> Tokens:
        """Say how to log in.

        Raises:
            AuthRequired: there are no tokens, or the server takes them no more.
            ScopeShortfall: they are not enough.
        """
        # spec 2026-07-28 basic/authorization#step-up-authorization-flow: and those of before
        before = want.before.scopes if want.before is not None else frozenset[str]()
        words = "".join(f" --scope {scope}" for scope in sorted((want.scopes or before) | before))
        if want.more:
            raise ScopeShortfall(
                f"{self._label} wants more than was granted for {want.operation}: isthmus login "
                f"{self._label}{words}",
                want.scopes or frozenset(),
            )
        reason = "takes the kept tokens no more" if want.before else "wants a login"
        raise AuthRequired(f"{self._label} {reason}: isthmus login {self._label}")
