"""What a command shows a server over HTTP: a token that was given, or one that a login has kept.

No command but ``login`` opens a browser: where a login is needed the error says how.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from isthmus.auth.client.grants.bearer_token import BearerToken
from isthmus.auth.client.grants.oauth import StoredLogin
from isthmus.auth.tokens.secret import Secret
from isthmus.cli.targets import CliTarget, find_http_url
from isthmus.errors import UsageError

if TYPE_CHECKING:
    from isthmus.transports.http.client.requests import Authorization

__all__ = [
    "make_authorization",
]


def make_authorization(
    target: CliTarget, token_env: str | None, environ: Mapping[str, str]
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
    url = find_http_url(target)
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
    return StoredLogin(target.label)
