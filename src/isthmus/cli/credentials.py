"""What a command shows a server over HTTP: a token that was given, or one that a login has kept.

No command but ``login`` opens a browser: where a login is needed the error says how.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from isthmus.auth.client.bearer_token import BearerToken
from isthmus.auth.client.oauth import OAuth
from isthmus.auth.client.proofs import Proofs
from isthmus.auth.client.session import Want
from isthmus.auth.client.tokens import Tokens
from isthmus.auth.client.user_grant import UserGrant
from isthmus.auth.secret import Secret
from isthmus.cli.targets import Target
from isthmus.errors import AuthRequired, ScopeShortfall, UsageError

if TYPE_CHECKING:
    from isthmus.transports.http.bearer import Authorization

__all__ = ["KeptOAuth", "authorization", "over_http"]

HTTP = ("http://", "https://", "ws://", "wss://")


def over_http(target: Target) -> str | None:
    """The URL of a target that is reached over HTTP; None for the others."""
    where = target.where
    return where if isinstance(where, str) and where.startswith(HTTP) else None


def authorization(
    target: Target, token_env: str | None, environ: Mapping[str, str]
) -> "Authorization | None":
    """What gets a command its tokens, or None where it needs none.

    Args:
        target: the server.
        token_env: the variable that holds a token, or None.
        environ: where it is looked up. A token is never taken from the command line, which
            every other program on the machine can read.

    Raises:
        UsageError: there is no such variable, or nothing that a token could be shown to.
    """
    url = over_http(target)
    if token_env is not None:
        if url is None:
            raise UsageError(
                f"--token-env goes with a URL of HTTP, and {target.label} is none: a server that is "
                "launched takes its credentials from its environment"
            )
        if not environ.get(token_env):
            raise UsageError(f"--token-env {token_env}: there is no such variable, or it is empty")
        return BearerToken(Secret(environ[token_env]))
    if url is None or "authorization" in {name.lower() for name in target.headers}:
        return None
    return KeptOAuth(target.label)


class KeptOAuth(OAuth):
    """Shows and refreshes the tokens of an earlier login, and leaves logging in to another command.

    Args:
        label: the target as it was typed.
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
