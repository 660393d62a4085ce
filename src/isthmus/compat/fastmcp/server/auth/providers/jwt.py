"""Verifiers of JWTs and of fixed tokens, under the names of ``fastmcp.server.auth.providers.jwt``."""

import logging
import math
import os
import time
from collections.abc import Collection, Mapping
from typing import Any

import pydantic

from isthmus.compat.fastmcp.server.auth.auth import AccessToken, TokenVerifier
from isthmus.compat.fastmcp.utilities.auth import parse_scopes
from isthmus.errors import UsageError

logger = logging.getLogger("fastmcp.server.auth.providers.jwt")

HASHES = {"HS256": "sha256", "HS384": "sha384", "HS512": "sha512"}

PEM_MARKS = ("PUBLIC KEY-----", "BEGIN CERTIFICATE-----")

CLOCK_LEEWAY_S = 30.0  # by which an issuer's clock may be ahead

# 2.x takes what is not given from variables with these beginnings
VARIABLE_PREFIX = "FASTMCP_SERVER_AUTH_JWT_"


class JWTVerifier(TokenVerifier):
    """Verifier of JWTs that one key, or the keys at a URL, have signed.

    It checks what fastmcp checks: signature and algorithm, end, and of issuer, audience and scopes those that are
    given. isthmus' own :class:`~isthmus.auth.JWTVerifier` checks all of them.

    Args:
        public_key: a public key as PEM, or the secret of HS256, HS384 and HS512.
        jwks_uri: where a JWK set is.
        issuer: what ``iss`` must be, or one of these.
        audience: what ``aud`` must have, or one of these.
        algorithm: the only one; RS256 by default.
        required_scopes: scopes that every token must have.
        base_url: the public URL of the server.
        ssrf_safe: the keys are fetched from public addresses only.
        http_client: none; isthmus fetches the keys by itself.
        jwks_refresh_interval: seconds between two requests for keys, at least.

    Raises:
        ValueError: there is no key, or two; the algorithm is unknown, or does not go with the key.
        UsageError: a key cannot be read, or the keys would be fetched unencrypted.
    """

    def __init__(
        self,
        *,
        public_key: str | bytes | None = None,
        jwks_uri: str | None = None,
        issuer: str | list[str] | None = None,
        audience: str | list[str] | None = None,
        algorithm: str | None = None,
        required_scopes: Any = None,
        base_url: Any = None,
        ssrf_safe: bool = False,
        http_client: Any = None,
        jwks_refresh_interval: float = 30.0,
    ) -> None:
        public_key = public_key or read_variable("PUBLIC_KEY")
        jwks_uri = jwks_uri or read_variable("JWKS_URI")
        if not public_key and not jwks_uri:
            raise ValueError("Either public_key or jwks_uri must be provided")
        if public_key and jwks_uri:
            raise ValueError("Provide either public_key or jwks_uri, not both")
        if not math.isfinite(jwks_refresh_interval) or jwks_refresh_interval < 0:
            raise ValueError("jwks_refresh_interval must be finite and non-negative")
        if http_client is not None:
            raise UsageError(
                "JWTVerifier(http_client=…) is not offered by isthmus.compat.fastmcp: use JWTVerifier(…, network=…) of "
                "isthmus.auth; see docs/guide/auth-resource-server.md"
            )
        scopes = read_variable("REQUIRED_SCOPES") if required_scopes is None else required_scopes
        super().__init__(base_url or read_variable("BASE_URL"), parse_scopes(scopes))
        self.public_key, self.jwks_uri = public_key, jwks_uri
        self.algorithm = algorithm or read_variable("ALGORITHM") or "RS256"
        self.issuer = issuer or parse_names(read_variable("ISSUER"))
        self.audience = audience or parse_names(read_variable("AUDIENCE"))
        self.ssrf_safe = ssrf_safe
        self._key: Any = None
        self._load_key(jwks_refresh_interval)

    def _load_key(self, interval: float) -> None:
        if self.algorithm in HASHES:
            self._key = read_secret(self.public_key)
            return
        from isthmus.auth.tokens.jose import ALGORITHMS

        if self.algorithm not in ALGORITHMS:
            raise ValueError(f"Unsupported algorithm: {self.algorithm}.")
        if self.jwks_uri is None:
            self._key = read_public_key(self.public_key or "", self.algorithm)
            return
        self._key = make_key_source(self.jwks_uri, interval, ssrf_safe=self.ssrf_safe)

    async def verify_token(self, token: str) -> AccessToken | None:
        """Verify a token; None where it is none.

        Raises:
            VerifierUnavailable: the keys are not to be had.
        """
        return await self.load_access_token(token)

    async def load_access_token(self, token: str) -> AccessToken | None:
        """Verify a token; None where it is none.

        Raises:
            VerifierUnavailable: the keys are not to be had.
        """
        from isthmus.auth.resource_server.verifier import VerifierUnavailable
        from isthmus.auth.tokens.jose import InvalidToken
        from isthmus.auth.tokens.jwks import KeysUnavailable

        try:
            claims = await self._read_claims(token)
        except InvalidToken as flaw:
            logger.debug("Token validation failed: %s", flaw)
            return None
        except KeysUnavailable as error:
            raise VerifierUnavailable(str(error), error.retry_after) from error
        client = str(claims.get("client_id") or claims.get("azp") or claims.get("sub") or "unknown")
        scopes = self._extract_scopes(claims)
        reason = self._find_flaw(claims, scopes)
        if reason is not None:
            logger.warning("Bearer token rejected for client %s: %s", client, reason)
            return None
        ends = claims.get("exp")
        return AccessToken(
            token=token,
            client_id=client,
            scopes=scopes,
            expires_at=None if ends is None else int(ends),
            subject=claims.get("sub") if isinstance(claims.get("sub"), str) else None,
            claims=claims,
        )

    async def _read_claims(self, token: str) -> dict[str, Any]:
        """The claims of a token that the key has signed.

        Raises:
            InvalidToken: it is none, or another key has.
            KeysUnavailable: the keys are not to be had.
        """
        from isthmus.auth.tokens.jose import InvalidToken, check_header, read_token

        if isinstance(self._key, bytes):
            return verify_secret(token, self._key, self.algorithm)
        if self.jwks_uri is not None:
            return dict(await self._key.verify(token, algorithms=(self.algorithm,)))
        parsed = read_token(token)
        alg, _ = check_header(parsed.header, (self.algorithm,), None)
        if not self._key.verifies(alg, parsed.signed, parsed.signature):
            raise InvalidToken("the token's signature is wrong")
        return dict(parsed.claims)

    def _find_flaw(self, claims: Mapping[str, Any], scopes: Collection[str]) -> str | None:
        now, ends, begins = time.time(), claims.get("exp"), claims.get("nbf")
        if ends is not None and (not is_date(ends) or ends < now):
            return "token expired"
        if begins is not None and (not is_date(begins) or begins > now + CLOCK_LEEWAY_S):
            return "token not valid yet"
        if self.issuer and not self._validate_issuer(claims.get("iss")):
            return "issuer mismatch"
        if self.audience and not has_common_name(self.audience, claims.get("aud")):
            return "audience mismatch"
        if not set(self.required_scopes) <= set(scopes):
            return "missing required scopes"
        return None

    def _validate_issuer(self, issuer: Any) -> bool:
        """Whether an issuer is one of those that are believed; subclasses have rules of their own."""
        return issuer in self.issuer if isinstance(self.issuer, list) else issuer == self.issuer

    def _extract_scopes(self, claims: Mapping[str, Any]) -> list[str]:
        """The scopes in the claims."""
        for name in ("scope", "scp"):
            found = claims.get(name)
            if isinstance(found, str):
                return found.split()
            if isinstance(found, list):
                return [one for one in found if isinstance(one, str)]
        return []


BearerAuthProvider = JWTVerifier  # as 2.x called it


class StaticTokenVerifier(TokenVerifier):
    """Verifier of fixed tokens, for development.

    Args:
        tokens: what is known of each token: ``client_id``, ``scopes``, ``expires_at``, ``sub``.
        required_scopes: scopes that every token must have.
    """

    def __init__(
        self, tokens: dict[str, dict[str, Any]], required_scopes: list[str] | None = None
    ) -> None:
        super().__init__(required_scopes=required_scopes)
        self.tokens = tokens

    async def verify_token(self, token: str) -> AccessToken | None:
        """Find a token; None where it is unknown, has expired, or lacks scopes."""
        known = self.tokens.get(token)
        if not known:
            return None
        ends, scopes = known.get("expires_at"), known.get("scopes", [])
        if ends is not None and ends < time.time():
            return None
        if not set(self.required_scopes) <= set(scopes):
            return None
        return AccessToken(
            token=token,
            client_id=known["client_id"],
            scopes=scopes,
            expires_at=ends,
            subject=known.get("sub"),
            claims=known,
        )


def read_variable(name: str) -> str | None:
    """The variable of the environment that 2.x takes an argument from; None where it is not set."""
    return os.environ.get(VARIABLE_PREFIX + name) or None


def parse_names(text: str | None) -> Any:
    """A name, or a list of them as JSON."""
    return parse_scopes(text) if text is not None and text.lstrip().startswith("[") else text


def is_date(value: Any) -> bool:
    """Whether a claim is a time in seconds."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def has_common_name(wanted: str | list[str], named: Any) -> bool:
    """Whether an audience has one of the wanted names."""
    wants = wanted if isinstance(wanted, list) else [wanted]
    names = named if isinstance(named, list) else [named]
    return any(one in names for one in wants)


def read_secret(secret: str | bytes | None) -> bytes:
    """The secret of a symmetric algorithm.

    Raises:
        ValueError: it is none, or a public key.
    """
    if secret is None:
        raise ValueError(
            "Symmetric HS* algorithms cannot be used with jwks_uri; configure a shared secret via public_key instead."
        )
    made = secret.encode() if isinstance(secret, str) else secret
    if any(mark.encode() in made for mark in PEM_MARKS):
        raise ValueError("Symmetric HS* algorithms require a shared secret, not a public key.")
    return made


def verify_secret(token: str, secret: bytes, algorithm: str) -> dict[str, Any]:
    """The claims of a token that a shared secret has signed.

    Raises:
        InvalidToken: it is none, or another secret has.
    """
    import hmac

    from isthmus.auth.tokens.jose import InvalidToken, read_token

    parsed = read_token(token)
    if parsed.header.get("alg") != algorithm or "crit" in parsed.header or "b64" in parsed.header:
        raise InvalidToken("the token's algorithm is none of those that are allowed")
    expected = hmac.digest(secret, parsed.signed, HASHES[algorithm])
    if not hmac.compare_digest(expected, parsed.signature):
        raise InvalidToken("the token's signature is wrong")
    return dict(parsed.claims)


def read_public_key(pem: str | bytes, algorithm: str) -> Any:
    """The public key of a PEM.

    Raises:
        UsageError: it is none, or does not go with the algorithm.
    """
    from isthmus.auth.tokens.jose import ALGORITHMS, InvalidToken, PublicKey, load_joserfc

    parts = load_joserfc()
    faults: tuple[type[Exception], ...] = (InvalidToken, *parts.faults)
    try:
        key = parts.keys[ALGORITHMS[algorithm][0]].import_key(pem)
        made = PublicKey(key.as_dict(private=False))
    except faults:
        made = None
    if made is None or not made.fits(algorithm):
        raise UsageError(
            f"JWTVerifier(public_key=…) has no public key for {algorithm}: give one as PEM"
        )
    return made


def make_key_source(uri: str, interval: float, *, ssrf_safe: bool) -> Any:
    """The keys at a URL.

    Raises:
        UsageError: it is no URL, or one where anybody could put other keys in their place.
    """
    from isthmus.auth.net.network import TOTAL_TIMEOUT_S, NetworkPolicy, desktop, make_network
    from isthmus.auth.net.urls import is_secure
    from isthmus.auth.tokens.jwks import Jwks

    if not is_secure(str(uri)):
        raise UsageError(
            f"JWTVerifier(jwks_uri={str(uri)!r}) would fetch keys unencrypted: use https, or http on this machine"
        )
    policy = NetworkPolicy() if ssrf_safe else desktop(str(uri))
    network = make_network(policy, keep=False, total=TOTAL_TIMEOUT_S)
    return Jwks(str(uri), network, cooldown=interval)


class RSAKeyPair:
    """RSA key pair that signs tokens for tests.

    Args:
        private_key: the private key as PEM.
        public_key: the public key as PEM.
    """

    def __init__(self, *, private_key: pydantic.SecretStr, public_key: str) -> None:
        self.private_key, self.public_key = private_key, public_key

    @classmethod
    def generate(cls) -> "RSAKeyPair":
        """Generate a key pair."""
        from isthmus.auth.tokens.jose import MIN_RSA_BITS, load_joserfc

        made = load_joserfc().keys["RSA"].generate_key(MIN_RSA_BITS, private=True)
        private, public = made.as_pem(private=True).decode(), made.as_pem(private=False).decode()
        return cls(private_key=pydantic.SecretStr(private), public_key=public)

    def create_token(
        self,
        subject: str = "fastmcp-user",
        issuer: str = "https://fastmcp.example.com",
        audience: str | list[str] | None = None,
        scopes: list[str] | None = None,
        expires_in_seconds: int = 3600,
        additional_claims: dict[str, Any] | None = None,
        kid: str | None = None,
    ) -> str:
        """Sign a token."""
        from isthmus.auth.tokens.jose import PrivateKey, sign_jwt

        now = int(time.time())
        claims: dict[str, Any] = {"sub": subject, "iss": issuer, "iat": now}
        claims["exp"] = now + expires_in_seconds
        if audience:
            claims["aud"] = audience
        if scopes:
            claims["scope"] = " ".join(scopes)
        key = PrivateKey(self.private_key.get_secret_value(), alg="RS256", kid=kid)
        return sign_jwt({**claims, **(additional_claims or {})}, key)
