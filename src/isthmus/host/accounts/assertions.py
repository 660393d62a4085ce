"""Assertions about principals: JWTs of the gateway's own, which issuers that trust it exchange for tokens.

What the client has sent is never part of one: a principal is named in it, who was authenticated here.
"""

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from isthmus.auth.tokens.secret import Secret
from isthmus.errors import UsageError
from isthmus.host.model.errors import AccountRequired, ConfigError

if TYPE_CHECKING:
    from isthmus.auth.tokens.jose import PrivateKey
    from isthmus.host.model.entries import ServerEntry

ASSERTION_LIFE_S = 60
DEFAULT_ALGORITHM = "ES256"


class SubjectAssertions:
    """Signs who a principal is, for the issuer that is to exchange it.

    Args:
        server: the server's name, for messages.
        issuer: who signs: the URL under which the issuer knows this gateway.
        key: with what.
        of_issuer: the host of the issuer whose users are named by their subject alone; empty names all by
            their whole principal.
        clock: says seconds since the epoch.
    """

    def __init__(
        self,
        server: str,
        issuer: str,
        key: "PrivateKey",
        *,
        of_issuer: str = "",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.server = server
        self.issuer = issuer
        self.key = key
        self._of_issuer = of_issuer
        self._clock = clock

    def name_subject(self, principal: str) -> str:
        """The subject that a principal is at the issuer.

        Raises:
            AccountRequired: the principal cannot be named there.
        """
        if not self._of_issuer:
            return principal
        kind, _, rest = principal.partition(":")
        subject, _, host = rest.rpartition("@")
        if kind != "user" or host != self._of_issuer or not subject or "!" in subject:
            raise AccountRequired(
                f"{self.server} takes users of {self._of_issuer} only, and {principal} is none",
                server=self.server,
                reason="refused",
            )
        return subject

    def sign(self, principal: str, audience: str) -> Secret:
        """Sign who a principal is, for one audience and one minute."""
        from isthmus.auth.tokens.jose import sign_jwt  # where something is signed

        now = int(self._clock())
        claims = {
            "iss": self.issuer,
            "sub": self.name_subject(principal),
            "aud": audience,
            "jti": Secret.random(16).reveal(),
            "iat": now,
            "exp": now + ASSERTION_LIFE_S,
        }
        return Secret(sign_jwt(claims, self.key))


def make_assertions(
    entry: "ServerEntry", auth: Mapping[str, Any], clock: Callable[[], float]
) -> SubjectAssertions:
    """The assertions for a server, as its entry says.

    Raises:
        ConfigError: it does not say with which key, or who signs.
    """
    from isthmus.auth.tokens.jose import PrivateKey  # authorization is for few servers

    issuer, pem = auth.get("assertionIssuer"), auth.get("assertionKey")
    if not isinstance(issuer, str) or not isinstance(pem, str) or not issuer or not pem:
        raise ConfigError(
            f"{entry.name}: host.auth of the kind {auth['kind']!r} needs 'assertionIssuer', the URL "
            "under which the issuer knows this gateway, and 'assertionKey', its private key (PEM)"
        )
    try:
        key = PrivateKey(pem, alg=str(auth.get("assertionAlgorithm", DEFAULT_ALGORITHM)))
    except UsageError as error:
        raise ConfigError(f"{entry.name}: host.auth.assertionKey: {error}") from None
    return SubjectAssertions(
        entry.name, issuer, key, of_issuer=str(auth.get("subjectsOf", "")), clock=clock
    )
