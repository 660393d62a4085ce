"""The tokens themselves: access tokens that say everything, refresh tokens that say nothing.

A refresh token is ``rt.<grant>.<generation>.<HMAC>``. The current generation gets the next one. The
one before gets, for a short while, the same next one again, so that several processes of a client,
or one whose answer was lost, all end up with the same token. Anything older has been stolen from
somebody, and ends the grant.
"""

import hmac
import secrets
from typing import Any

import msgspec

from isthmus.auth.authorization_server.records import Grant, Records
from isthmus.auth.jose import PrivateKey, sign
from isthmus.auth.secret import Secret
from isthmus.core.base64url import to_text

__all__ = [
    "ACCESS_TYPE",
    "REVOKED",
    "AccessToken",
    "RefreshParts",
    "TokenAnswer",
    "fresh_id",
    "genuine",
    "judge_refresh",
    "read_refresh",
    "refresh_token",
]

ACCESS_TYPE = "at+jwt"
REVOKED = "revoked"
"""The issuer under which the ids of revoked access tokens are kept."""

LONGEST = 512
"""Characters of a refresh token."""


def fresh_id() -> str:
    """128 random bits, as text."""
    return secrets.token_urlsafe(16)


class TokenAnswer(dict[str, Any]):
    """An answer of the token endpoint that shows nothing where it is logged as a whole."""

    def __repr__(self) -> str:
        return f"TokenAnswer({', '.join(self)})"

    __str__ = __repr__


class AccessToken(msgspec.Struct, frozen=True, kw_only=True):
    """What an access token is to say (RFC 9068).

    Attributes:
        issuer: us.
        subject: the user, or the client itself.
        client_id: the client.
        resource: the MCP server that it is for.
        scope: what it allows.
        grant_id: the grant that it belongs to, or None.
        jkt: the key that it is bound to, or None.
        begins: seconds since the epoch.
        life: seconds.
    """

    issuer: str
    subject: str
    client_id: str
    resource: str
    scope: str
    grant_id: str | None
    jkt: str | None
    begins: float
    life: int

    def signed(self, key: PrivateKey) -> Secret:
        """The token."""
        begins = int(self.begins)
        claims: dict[str, Any] = {
            "iss": self.issuer,
            "sub": self.subject,
            # spec 2026-07-28
            # basic/authorization/security-considerations#token-audience-binding-and-validation
            "aud": self.resource,
            "client_id": self.client_id,
            "iat": begins,
            "exp": begins + self.life,
            "jti": fresh_id(),
            "scope": self.scope,
        }
        if self.grant_id is not None:
            claims["gid"] = self.grant_id
        if self.jkt is not None:
            claims["cnf"] = {"jkt": self.jkt}
        return Secret(sign(claims, key, typ=ACCESS_TYPE))


class RefreshParts(msgspec.Struct, frozen=True):
    """A refresh token that was taken apart; nothing of it is believed yet."""

    grant_id: str
    gen: int
    mac: str


def refresh_token(mac_key: bytes, grant_id: str, gen: int, client_id: str) -> Secret:
    """The refresh token of a generation: the same text whenever it is asked for."""
    return Secret(f"rt.{grant_id}.{gen}.{mac_of(mac_key, grant_id, gen, client_id)}")


def mac_of(mac_key: bytes, grant_id: str, gen: int, client_id: str) -> str:
    """What proves that a refresh token is ours."""
    signed = msgspec.json.encode([grant_id, gen, client_id])
    return to_text(hmac.digest(mac_key, signed, "sha256"))


def read_refresh(text: str) -> RefreshParts | None:
    """Take a refresh token apart; None for what is none."""
    parts = text.split(".")
    if len(text) > LONGEST or len(parts) != 4 or parts[0] != "rt":
        return None
    digits = parts[2]
    if not (digits.isascii() and digits.isdigit() and len(digits) < 12):
        return None
    return RefreshParts(parts[1], int(digits), parts[3])


def genuine(mac_key: bytes, presented: RefreshParts, client_id: str) -> bool:
    """Whether we made a refresh token, for this client; takes the same time either way."""
    mine = mac_of(mac_key, presented.grant_id, presented.gen, client_id)
    given = presented.mac.encode("utf-8", "surrogatepass")
    return hmac.compare_digest(mine.encode(), given)


def judge_refresh(records: Records, grant: Grant, gen: int, grace: float) -> bool:
    """Whether a generation of a grant's refresh token may be used now.

    One that was used before, and longer ago than the grace that is given to those who came late,
    ends the grant.

    Args:
        records: the store.
        grant: the grant, which holds.
        gen: the generation that was presented, which is genuine.
        grace: seconds that the one before the current is good for; 0 for none.
    """
    if gen == grant.gen:
        return True
    late = records.now - (grant.rotated_at or 0.0)
    if grant.gen == gen + 1 and grace > 0 and late <= grace:
        return True
    records.revoke_grant(grant.id)
    records.audit(
        "refresh_reuse",
        client_id=grant.client_id,
        user_id=grant.user_id,
        grant_id=grant.id,
        detail=f"generation {gen} of {grant.gen}",
    )
    return False
