"""JWT verifier: access tokens signed by an issuer whose keys are public (RFC 9068, and earlier ones)."""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from time import time
from typing import Any, Literal, NamedTuple

from isthmus.auth.arguments import check_number, require_library
from isthmus.auth.cache import BoundedDict
from isthmus.auth.net.network import TOTAL_TIMEOUT_S, Network, NetworkPolicy, desktop, make_network
from isthmus.auth.net.urls import metadata_urls
from isthmus.auth.resource_server.verifier import (
    Presented,
    VerifierUnavailable,
    read_key_binding,
    read_scope_claim,
    read_text_claim,
)
from isthmus.auth.tokens.audience import is_issued_for
from isthmus.auth.tokens.jose import (
    ALGORITHMS,
    DEFAULT_ALGORITHMS,
    LEEWAY_S,
    Claims,
    InvalidToken,
    KeySet,
    check_times,
    read_token,
    verify_jwt,
)
from isthmus.auth.tokens.jwks import Jwks, KeysUnavailable, discover_jwks_uri
from isthmus.core.principal import Principal
from isthmus.errors import UsageError

Profile = Literal["rfc9068", "compat"]

# What ``typ`` may say. The empty one is a header without it.
TYPES_BY_PROFILE: Mapping[Profile, frozenset[str]] = {
    "rfc9068": frozenset({"at+jwt"}),
    "compat": frozenset({"at+jwt", "jwt", ""}),
}

SCOPE_CLAIMS = ("scope", "scp")
CLIENT_CLAIMS = ("client_id", "azp", "appid", "cid")

# Claims that only ID tokens have, which are for the client and nobody else.
ID_TOKEN_CLAIMS = ("at_hash", "c_hash", "s_hash")

MAX_REMEMBERED_TOKENS = 4096  # tokens whose verification is remembered

log = logging.getLogger("isthmus.auth")


class VerifiedToken(NamedTuple):
    """A token that was verified."""

    principal: Principal
    resource: str
    turn: int
    until: float


class JWTVerifier:
    """Verifier of JWT access tokens (RFC 9068, and earlier ones) of one issuer, issued for this server.

    Signature, algorithm, type, issuer (letter by letter), audience, times and binding are checked. The
    keys come from the issuer's metadata, or from where ``jwks`` says. What a token is good for does
    not change while its keys do not, so it is remembered until it expires: nothing can revoke such
    a token anyway. ``remember=0`` has every request verified anew.

    Example::

        verifier = JWTVerifier("https://login.example.com")
        verifier = JWTVerifier("https://login.microsoftonline.com/TENANT/v2.0",
                               audience="api://files", profile="compat")

    Args:
        issuer: the only issuer that is believed, as it spells itself.
        audience: what ``aud`` must contain; the resource's URL by default. For issuers that
            name audiences in a way of their own.
        jwks: where the keys are, or the keys: a JWK set, a list of JWKs, :class:`KeySet`. None looks
            into the issuer's metadata.
        algorithms: what tokens may be signed with; asymmetric ones only.
        profile: ``"rfc9068"`` takes access tokens that say so (``typ: at+jwt``). ``"compat"`` also takes
            a plain ``JWT``, if it has scopes and a client.
        scope_claims: where scopes are, the first that is there.
        client_claims: where the client is, the first that is there.
        leeway: seconds by which the issuer's clock may differ.
        remember: tokens that are remembered.
        network: fetches the keys, or the policy for that; one that may go to the issuer by default.
        clock: seconds since the epoch.

    Raises:
        UsageError: an algorithm cannot be allowed, the issuer is no URL, no key can be used, or
            joserfc is not installed.
    """

    def __init__(
        self,
        issuer: str,
        *,
        audience: str | Collection[str] | None = None,
        jwks: "str | KeySet | Mapping[str, Any] | Iterable[Mapping[str, Any]] | None" = None,
        algorithms: Collection[str] = DEFAULT_ALGORITHMS,
        profile: Profile = "rfc9068",
        scope_claims: Sequence[str] = SCOPE_CLAIMS,
        client_claims: Sequence[str] = CLIENT_CLAIMS,
        leeway: float = LEEWAY_S,
        remember: int = MAX_REMEMBERED_TOKENS,
        network: Network | NetworkPolicy | None = None,
        clock: Callable[[], float] = time,
    ) -> None:
        require_library("joserfc", "JWTVerifier")
        refused = sorted(set(algorithms) - set(ALGORITHMS))
        if refused or not algorithms:
            raise UsageError(
                f"tokens cannot be signed with {', '.join(refused) or 'nothing'}: "
                f"algorithms= takes some of {', '.join(ALGORITHMS)}"
            )
        if profile not in TYPES_BY_PROFILE:
            raise UsageError(f"profile= is 'rfc9068' or 'compat', not {profile!r}")
        check_number("leeway", leeway)
        check_number("remember", remember, whole=True, unit="tokens")
        self.issuer = issuer
        self._audience = {audience} if isinstance(audience, str) else audience
        self._algorithms = frozenset(algorithms)
        self._profile: Profile = profile
        self._names = (scope_claims, client_claims)
        self._leeway = leeway
        self._clock = clock
        self._keys = self._source(jwks, network)
        self._remembered: BoundedDict[bytes, VerifiedToken] = BoundedDict(remember)

    def _source(self, jwks: Any, network: Network | NetworkPolicy | None) -> Jwks | KeySet:
        if jwks is not None and not isinstance(jwks, str):
            keys = jwks if isinstance(jwks, KeySet) else KeySet(jwks)
            if not keys:
                raise UsageError("JWTVerifier: jwks= has no public key that can be used")
            return keys
        try:
            if jwks is None:
                metadata_urls(self.issuer)  # says at once that it has none
            # Both were named by whoever runs this server, so that they may be where nobody else looks.
            policy = network or desktop(self.issuer, *([jwks] if jwks else []))
            asked = make_network(policy, keep=False, total=TOTAL_TIMEOUT_S)
        except ValueError as error:
            raise UsageError(f"JWTVerifier: {error}") from None
        if jwks is not None:
            return Jwks(jwks, asked)
        return Jwks(lambda: discover_jwks_uri(self.issuer, asked), asked)

    def recall(self, name: bytes, resource: str) -> Principal | None:
        """The principal of a token that was verified before, while the keys are the same; None otherwise.

        Args:
            name: digest of the token: ``Presented.name``.
            resource: URI of this resource server (RFC 8707).
        """
        known = self._remembered.get(name)
        if known is None or not self._still(known, resource):
            return None
        return known.principal

    async def verify(self, presented: Presented, resource: str) -> Principal | None:
        """The principal of a token; None where it is none of this issuer for this resource.

        Args:
            presented: the token and the proof of its holder.
            resource: URI of this resource server (RFC 8707).

        Raises:
            VerifierUnavailable: the issuer's keys are not to be had.
            UsageError: joserfc is not installed.
        """
        if presented.is_too_long:
            return None
        name = presented.name
        known = self.recall(name, resource)
        if known is not None:
            return known
        try:
            claims = await self._believed(presented)
            principal = self._make_principal(claims, resource)
        except KeysUnavailable as error:
            if not self._may_be_good(presented, resource):
                return None
            raise VerifierUnavailable(str(error), error.retry_after) from error
        except InvalidToken as error:
            log.debug("an access token was refused: %s", error)
            return None
        self._remember(name, principal, resource)
        return principal

    async def _believed(self, presented: Presented) -> Claims:
        keys, algorithms = self._keys, self._algorithms
        if isinstance(keys, KeySet):
            return verify_jwt(presented.token, keys, algorithms=algorithms)
        return await keys.verify(presented.token, algorithms=algorithms)

    def _may_be_good(self, presented: Presented, resource: str) -> bool:
        """Whether a token would be good for here if one of the issuer's keys had signed it."""
        try:
            parsed = read_token(presented.token)
            self._make_principal(Claims(parsed.claims, parsed.header), resource)
        except InvalidToken as error:
            log.debug("an access token was refused: %s", error)
            return False
        return True

    def _make_principal(self, claims: Claims, resource: str) -> Principal:
        """The principal that the claims name, after all checks beside the signature.

        Raises:
            InvalidToken: it is not for here, not now, or no access token.
        """
        typ = claims.header.get("typ", "")
        kind = typ.lower().removeprefix("application/") if isinstance(typ, str) else None
        if kind not in TYPES_BY_PROFILE[self._profile]:
            raise InvalidToken(f"it is of type {str(typ)[:40]!r}, which is no access token")
        if claims.get("iss") != self.issuer:
            raise InvalidToken("it is of another issuer")
        # spec 2026-07-28
        # basic/authorization/security-considerations#token-audience-binding-and-validation
        if not is_issued_for(claims, self._audience or {resource}):
            raise InvalidToken("it was issued for another resource: see aud")
        expires = check_times(claims, self._clock(), self._leeway)
        scopes, client = self._granted(claims, kind)
        subject = read_text_claim(claims, ("sub",))
        if subject is None:
            raise InvalidToken("it does not say whose it is: sub is missing")
        return Principal(
            issuer=self.issuer,
            subject=subject,
            client_id=client,
            scopes=scopes,
            expires_at=expires,
            claims=dict(claims),
            jkt=read_key_binding(claims),
        )

    def _granted(self, claims: Claims, kind: str) -> tuple[frozenset[str], str]:
        """The scopes, and the client: without both it might be an ID token."""
        scopes, client = (
            read_scope_claim(claims, self._names[0]),
            read_text_claim(claims, self._names[1]),
        )
        if client is None:
            raise InvalidToken("it does not say whose client it was issued to")
        if kind != "at+jwt" and (scopes is None or any(name in claims for name in ID_TOKEN_CLAIMS)):
            raise InvalidToken("it has no scopes, or is an ID token")
        return scopes or frozenset(), client

    def _still(self, known: VerifiedToken, resource: str) -> bool:
        keys = self._keys
        fresh = isinstance(keys, KeySet) or (keys.current and keys.turn == known.turn)
        return fresh and known.resource == resource and self._clock() < known.until

    def _remember(self, name: bytes, principal: Principal, resource: str) -> None:
        if principal.expires_at is None:
            return
        turn = 0 if isinstance(self._keys, KeySet) else self._keys.turn
        until = principal.expires_at + self._leeway
        self._remembered[name] = VerifiedToken(principal, resource, turn, until)
