"""The refresh-token grant (RFC 6749 6): a refresh token is rotated on each use, and reuse is detected.

Importing this takes the extra ``auth``.
"""

from typing import Any

from authlib.oauth2.rfc6749 import InvalidGrantError
from authlib.oauth2.rfc6749.grants import RefreshTokenGrant

from isthmus.auth.authorization_server.core.oauth_core import (
    OAuthCore,
    ProofBoundGrant,
    choose_resource,
    earliest_end,
)
from isthmus.auth.authorization_server.core.tokens import (
    TokenAnswer,
    is_genuine,
    make_refresh_token,
    parse_refresh_token,
)
from isthmus.auth.authorization_server.storage.records import ClientGrant, Records
from isthmus.auth.authorization_server.users.users import User
from isthmus.auth.protocol import AUTH_METHODS


class StoredRefresh:
    """A refresh token, as Authlib asks about it."""

    def __init__(self, grant: ClientGrant, gen: int) -> None:
        self.grant = grant
        self.gen = gen

    def check_client(self, client: Any) -> bool:
        """Whether it is this client's."""
        return bool(client.client_id == self.grant.client_id)

    def get_scope(self) -> str:
        """The scopes that it allows at most."""
        return self.grant.scope


class RefreshGrant(ProofBoundGrant, RefreshTokenGrant):  # type: ignore[misc]  # Authlib has no types
    """``make_refresh_token``: rotated on each use, in a way that parallel uses agree on."""

    TOKEN_ENDPOINT_AUTH_METHODS = AUTH_METHODS
    # spec 2026-07-28 basic/authorization/security-considerations#token-theft
    INCLUDE_NEW_REFRESH_TOKEN = True

    def authenticate_refresh_token(self, refresh_token: str) -> StoredRefresh | None:
        """The grant that a refresh token belongs to; None where it is good for nothing."""
        core: OAuthCore = self.server
        records, client = core.records, self.request.client
        presented = parse_refresh_token(refresh_token)
        mac = core.keyring.mac(records)
        if presented is None or not is_genuine(mac, presented, client.client_id):
            return None
        grant = records.grant(presented.grant_id)
        if grant is None or grant.revoked_at is not None or grant.expires_at <= records.now:
            return None
        if grant.jkt is not None and grant.jkt != self.request.jkt:
            return None
        if core.active_user(grant) is None:
            return None
        if not judge_refresh(records, grant, presented.gen, core.settings.rotation_grace):
            return None
        return StoredRefresh(grant, presented.gen)

    def validate_token_request(self) -> None:
        """Judge a token request; by the end of it, everything is known."""
        super().validate_token_request()
        self.request.resource = choose_resource(
            self.server.settings, self.request.parameters, self.request.refresh_token.grant.resource
        )

    def authenticate_user(self, refresh_token: StoredRefresh) -> User | None:
        """The user who approved, unless they are gone or disabled."""
        return self.server.active_user(refresh_token.grant)

    def issue_token(self, user: User, refresh_token: StoredRefresh) -> TokenAnswer:
        """The next tokens of a grant, or once more those that were the next."""
        return self.next_token(refresh_token.grant, refresh_token.gen)

    def next_token(self, grant: ClientGrant, gen: int) -> TokenAnswer:
        """Go on from one generation of a grant."""
        core: OAuthCore = self.server
        records = core.records
        if gen == grant.gen:
            end = earliest_end(records.now + core.settings.refresh_ttl, grant.ends_at)
            if not records.rotate(grant.id, gen, end):  # pragma: no cover - we hold the lock
                raise InvalidGrantError
        mac = core.keyring.mac(records)
        return core.mint(
            self.request,
            subject=grant.user_id,
            scope=self.request.payload.scope or grant.scope,
            grant_id=grant.id,
            refresh=make_refresh_token(mac, grant.id, gen + 1, grant.client_id),
        )

    def revoke_old_credential(self, refresh_token: StoredRefresh) -> None:
        """The old one ended when the generation changed."""


def judge_refresh(records: Records, grant: ClientGrant, gen: int, grace: float) -> bool:
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
