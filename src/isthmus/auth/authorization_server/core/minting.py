"""What all grants have in common: which resource, which key, and that no stock token is made.

Importing this takes the extra ``auth``.
"""

import hmac
from typing import TYPE_CHECKING, Any

from authlib.oauth2 import OAuth2Error

from isthmus.auth.authorization_server.core.requests import OAuthParameters
from isthmus.auth.authorization_server.core.settings import AuthorizationSettings
from isthmus.auth.authorization_server.storage.records import Records
from isthmus.auth.net.urls import canonical_resource
from isthmus.auth.tokens.dpop import InvalidProof, NonceNeeded, Nonces, ReplayCache, check_proof

if TYPE_CHECKING:
    from isthmus.auth.authorization_server.core.oauth_core import OAuthCore

__all__ = ["ProofBoundGrant", "choose_resource", "make_nonces"]


class ProofBoundGrant:
    """A grant whose tokens are ours: it knows the key they are bound to before it judges anything."""

    server: "OAuthCore"
    request: Any

    def authenticate_token_endpoint_client(self) -> Any:
        """The client of a token request, after its proof of possession."""
        self.request.jkt = check_request_proof(self.server, self.request.asked)
        self.request.client = super().authenticate_token_endpoint_client()  # type: ignore[misc]  # Authlib's grant comes next
        return self.request.client


def choose_resource(
    settings: AuthorizationSettings, asked: OAuthParameters, granted: str | None = None
) -> str:
    """The MCP server that tokens are for, spelt as ours.

    Args:
        settings: which there are.
        asked: the request, which may name one.
        granted: what was granted before: it may be repeated, not changed.

    Raises:
        OAuth2Error: ``invalid_target``.
    """
    # spec 2026-07-28 basic/authorization#resource-parameter-implementation: RFC 8707
    found = {find_resource(settings, one) for one in asked.all("resource")}
    if granted is not None:
        found.add(find_resource(settings, granted))
    resource = found.pop() if found else settings.resources[0]
    if found or resource is None:
        raise OAuth2Error(
            error="invalid_target",
            description="The resource is none that tokens are issued for here, or not the one "
            "that was granted.",
        )
    return resource


def find_resource(settings: AuthorizationSettings, resource: str) -> str | None:
    """A resource as we spell it; None for what is none of ours."""
    try:
        named = canonical_resource(resource)
    except ValueError:
        return None
    return next((one for one in settings.resources if canonical_resource(one) == named), None)


class StoredProofs(ReplayCache):
    """The proofs that were taken already, by any process.

    Args:
        records: the store, in a transaction.
    """

    def __init__(self, records: Records) -> None:
        super().__init__(0)
        self._records = records

    def first(self, jkt: str, jti: str, now: float, until: float) -> bool:
        """Whether a proof is new; see :meth:`ReplayCache.first`."""
        return self._records.first_use(f"dpop {jkt}", jti, until)


def check_request_proof(core: "OAuthCore", asked: OAuthParameters) -> str | None:
    """The thumbprint of the key that a request proves; None where it proves none.

    Raises:
        OAuth2Error: it has a proof, which is not good.
    """
    if asked.proof is None:
        return None
    wanted = make_nonces(core) if core.settings.dpop_nonce else None
    try:
        return check_proof(
            asked.proof,
            method="POST",
            url=core.settings.url("token"),
            token=None,
            now=core.records.now,
            replays=StoredProofs(core.records),
            nonce=wanted,
        )
    except NonceNeeded:
        raise OAuth2Error(
            error="use_dpop_nonce", description="The proof needs the nonce that is given here."
        ) from None
    except InvalidProof as flaw:
        text = "".join(sign for sign in str(flaw) if sign not in '"\\' and " " <= sign <= "~")
        raise OAuth2Error(error="invalid_dpop_proof", description=text) from None


def make_nonces(core: "OAuthCore") -> Nonces:
    """The nonces for proofs, the same in every process."""
    mac = core.keyring.mac(core.records)
    return Nonces(hmac.digest(mac, b"dpop nonces", "sha256"))
