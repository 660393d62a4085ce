"""LocalVerifier: checks the tokens of an authorization server that runs beside the MCP server, on its store."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from isthmus.auth.authorization_server.core.lookups import is_known_client
from isthmus.auth.authorization_server.core.settings import AuthorizationSettings
from isthmus.auth.authorization_server.core.tokens import ACCESS_JWT_TYPE, REVOKED_ISSUER, Keyring
from isthmus.auth.authorization_server.storage.records import Records
from isthmus.auth.authorization_server.storage.store import (
    LOCKED_RETRY_S,
    AuthStore,
    StoreLocked,
)
from isthmus.auth.authorization_server.users.users import UserBackend
from isthmus.auth.cache import BoundedDict
from isthmus.auth.resource_server.verifier import Presented, VerifierUnavailable
from isthmus.auth.tokens.audience import is_issued_for
from isthmus.auth.tokens.jose import (
    Claims,
    InvalidToken,
    KeySet,
    UnknownKey,
    check_times,
    read_token,
    verify_jwt,
)
from isthmus.auth.tokens.secret import name_token
from isthmus.core.principal import Principal

STANDING_LIFE_S = 2.0  # after which it is looked up again whether a token still stands
KEYS_LIFE_S = 30.0  # after which the keys are read again
KEYS_PAUSE_S = 1.0  # between two looks for a key that is unknown
MAX_REMEMBERED_TOKENS = 10_000


class LocalVerifier:
    """Tells whose a token of our own authorization server is, and that it was not revoked.

    A token that was revoked in this process ends at once, one that another process revoked within
    two seconds.

    Args:
        settings: what the server was set up with.
        store: keeps what was granted and revoked.
        users: knows the users; None where there are none.
        keyring: the keys that tokens are signed with.
        upstream_stands: whether the login at a provider that a grant stands on still does.
        clock: says the seconds since the epoch.
    """

    def __init__(
        self,
        settings: AuthorizationSettings,
        store: AuthStore,
        users: UserBackend | None,
        keyring: Keyring,
        *,
        upstream_stands: Callable[[str], Awaitable[bool]],
        clock: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._store = store
        self._users = users
        self._keyring = keyring
        self._upstream_stands = upstream_stands
        self._clock = clock
        self._keys: KeySet | None = None
        self._algorithms: tuple[str, ...] = ()
        self._read = float("-inf")
        self._reads = 0
        self._known: BoundedDict[bytes, Claims] = BoundedDict(MAX_REMEMBERED_TOKENS)
        self._good: BoundedDict[bytes, tuple[Principal, str]] = BoundedDict(MAX_REMEMBERED_TOKENS)
        self._standing: BoundedDict[str, tuple[float, bool]] = BoundedDict(MAX_REMEMBERED_TOKENS)

    def forget(self) -> None:
        """Something was revoked: look everything up again."""
        self._standing.clear()

    def recall(self, name: bytes, resource: str) -> Principal | None:
        """The principal of a token that was verified for this resource, and stood a moment ago."""
        principal, known_resource = self._good.get(name, (None, ""))
        if principal is None or known_resource != resource:
            return None
        now = self._clock()
        until, stands = self._standing.get(str(principal.claims.get("jti")), (0.0, False))
        expired = principal.expires_at is not None and now >= principal.expires_at
        return principal if stands and now < until and not expired else None

    async def verify(self, presented: Presented, resource: str) -> Principal | None:
        """The principal of a token; see :meth:`TokenVerifier.verify`."""
        if presented.is_too_long:
            return None
        try:
            return await self._verify(presented, resource)
        except StoreLocked as error:
            raise VerifierUnavailable(str(error), LOCKED_RETRY_S) from None

    async def _verify(self, presented: Presented, resource: str) -> Principal | None:
        try:
            claims = await self._verify_claims(presented.token.reveal())
            # What others accept as late, its own server need not.
            check_times(claims, self._clock(), leeway=0.0)
        except InvalidToken:
            return None
        # spec 2026-07-28
        # basic/authorization/security-considerations#token-audience-binding-and-validation
        if claims.get("iss") != self._settings.issuer or not is_issued_for(claims, {resource}):
            return None
        principal = make_principal(claims)
        if not await self._check_standing(principal):
            return None
        self._good[presented.name] = (principal, resource)
        return principal

    async def lasts(self, principal: Principal) -> bool:
        """Whether a token still stands: its grant, its user and its client are there."""
        try:
            return await self._check_standing(principal)
        except StoreLocked as error:
            raise VerifierUnavailable(str(error), LOCKED_RETRY_S) from None

    async def _check_standing(self, principal: Principal) -> bool:
        jti, now = str(principal.claims.get("jti")), self._clock()
        known = self._standing.get(jti)
        if known is not None and now < known[0]:
            return known[1]
        stands = await self._find_standing(principal)
        self._standing[jti] = (now + STANDING_LIFE_S, stands)
        return stands

    async def _find_standing(self, principal: Principal) -> bool:
        import sqlite3

        try:
            found = await self._store.read(lambda records: find_standing(records, principal))
        except sqlite3.Error as error:
            raise VerifierUnavailable(
                f"the store does not answer: {error}", LOCKED_RETRY_S
            ) from None
        if found is None:
            return False
        client_id, upstream_id = found
        if not await is_known_client(self._settings, self._store, client_id):
            return False
        # A program's name may be that of a user; grants are of users alone.
        itself = principal.subject == principal.client_id and "gid" not in principal.claims
        if not itself and not await self._is_user(principal):
            return False
        return upstream_id is None or await self._upstream_stands(upstream_id)

    async def _is_user(self, principal: Principal) -> bool:
        users = self._users
        if users is None:
            return True
        user = await users.get(principal.subject)
        if user is None:  # somebody that an identity provider vouched for has no account here
            return "gid" not in principal.claims
        return not user.disabled

    async def _verify_claims(self, token: str) -> Claims:
        """The claims of a token that we signed; each signature is checked once.

        Raises:
            InvalidToken: it is none of ours.
        """
        name = name_token(token)
        known = self._known.get(name)
        if known is not None:
            self._known.move_to_end(name)
            return known
        before = self._reads
        keys = await self._read_keys(KEYS_LIFE_S)
        try:
            claims = verify_jwt(token, keys, algorithms=self._algorithms, typ=ACCESS_JWT_TYPE)
        except UnknownKey:
            keys = await self._read_keys(KEYS_PAUSE_S)
            # Another process may have changed keys since they were read.
            if self._reads == before and self._is_said_to_be_ours(token):
                raise VerifierUnavailable("the keys were read a moment ago", KEYS_PAUSE_S) from None
            claims = verify_jwt(token, keys, algorithms=self._algorithms, typ=ACCESS_JWT_TYPE)
        self._known[name] = claims
        return claims

    def _is_said_to_be_ours(self, token: str) -> bool:
        parsed = read_token(token)
        return parsed.claims.get("iss") == self._settings.issuer

    async def _read_keys(self, life: float) -> KeySet:
        if self._keys is None or self._clock() - self._read >= life:
            listed = await self._keyring.published(self._store)
            self._keys = KeySet(listed)
            self._algorithms = tuple({key["alg"] for key in listed})
            self._read = self._clock()
            self._reads += 1
        return self._keys


def make_principal(claims: Mapping[str, Any]) -> Principal:
    """Make the principal that a token is about."""
    known = {"iss", "sub", "client_id", "scope", "exp", "cnf"}
    bound = claims.get("cnf")
    return Principal(
        issuer=claims["iss"],
        subject=claims["sub"],
        client_id=claims["client_id"],
        scopes=frozenset(claims["scope"].split()),
        expires_at=float(claims["exp"]),
        claims={name: value for name, value in claims.items() if name not in known},
        jkt=bound["jkt"] if bound else None,
    )


def find_standing(records: Records, principal: Principal) -> tuple[str, str | None] | None:
    """The client of a token and the upstream tokens behind it; None where it was revoked."""
    if records.used(REVOKED_ISSUER, str(principal.claims.get("jti"))):
        return None
    gid = principal.claims.get("gid")
    if gid is None:
        return principal.client_id, None
    grant = records.grant(str(gid))
    if grant is None or grant.revoked_at is not None:
        return None
    return grant.client_id, grant.upstream_id
