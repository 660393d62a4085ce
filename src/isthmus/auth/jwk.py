"""Keys of signatures: read from what issuers publish, made, and kept.

Only asymmetric keys are keys here. :mod:`joserfc` does the cryptography; it is imported when the
first key is.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from isthmus.auth.extra import missing
from isthmus.auth.secret import Secret, reveal
from isthmus.core.base64url import from_text, to_text
from isthmus.errors import AuthError, UsageError

__all__ = [
    "ALGORITHMS",
    "COMMON",
    "PRIVATE",
    "InvalidToken",
    "Key",
    "Keys",
    "PrivateKey",
    "joserfc",
    "thumbprint",
]

ALGORITHMS: Mapping[str, tuple[str, str | None]] = {
    "RS256": ("RSA", None),
    "RS384": ("RSA", None),
    "RS512": ("RSA", None),
    "PS256": ("RSA", None),
    "PS384": ("RSA", None),
    "PS512": ("RSA", None),
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", "Ed25519"),
    "Ed25519": ("OKP", "Ed25519"),
}
"""Every algorithm that can be allowed: the type of its keys, and their curve."""

COMMON = ("RS256", "PS256", "ES256", "EdDSA", "Ed25519")
"""What is allowed where nobody says anything else."""

THUMBPRINT: Mapping[str, Sequence[str]] = {
    "EC": ("crv", "kty", "x", "y"),
    "OKP": ("crv", "kty", "x"),
    "RSA": ("e", "kty", "n"),
}
"""The members that make a key what it is, in their order (RFC 7638 3.2, RFC 8037 2)."""

PRIVATE = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})
"""The members that no public key has."""

MOST_KEYS = 100
"""Keys of a set that are looked at."""

TRIES = 4
"""Keys that are tried for a token that names none."""

SHORTEST_RSA, LONGEST_RSA = 2048, 8192
"""Bits."""


class InvalidToken(AuthError):
    """A token, a proof or an assertion that proves nothing. Says why, and shows nothing of it."""


class Parts(NamedTuple):
    """What is used of joserfc."""

    algorithms: Mapping[str, Any]
    keys: Mapping[str, Any]
    faults: tuple[type[Exception], ...]


@cache
def joserfc() -> Parts:
    """The library, imported by the first call.

    Raises:
        UsageError: it is not installed.
    """
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from joserfc import errors, jwk, jws
    except ImportError as error:
        raise missing("Reading or signing tokens", error) from error
    kinds = {"EC": jwk.ECKey, "OKP": jwk.OKPKey, "RSA": jwk.RSAKey}
    faults = (
        errors.JoseError,
        UnsupportedAlgorithm,
        ValueError,
        TypeError,
        KeyError,
        OverflowError,
    )
    return Parts(jws.JWSRegistry.algorithms, kinds, faults)


class Key:
    """One public key of a set.

    Args:
        jwk: the key; private members of it are not looked at.

    Raises:
        InvalidToken: it is no public key that can be used for signatures.
    """

    def __init__(self, jwk: Mapping[str, Any]) -> None:
        kind, use, operations = str(jwk.get("kty")), jwk.get("use"), jwk.get("key_ops")
        checks = operations is None or (isinstance(operations, list) and "verify" in operations)
        if kind not in THUMBPRINT or use not in (None, "sig") or not checks:
            raise InvalidToken("this key is not for signatures")
        public = {name: jwk.get(name) for name in THUMBPRINT[kind]}
        if kind == "RSA":
            check_rsa(public)
        try:
            self._key = joserfc().keys[kind].import_key(public)
        except joserfc().faults:
            raise InvalidToken("this key cannot be read") from None
        self.kid = jwk.get("kid")
        self.kind = (kind, None if kind == "RSA" else public["crv"])
        self._alg = jwk.get("alg")

    def fits(self, alg: str) -> bool:
        """Whether it may be used with an algorithm: type and curve, and its own ``alg`` if any."""
        return ALGORITHMS[alg] == self.kind and (self._alg is None or self._alg == alg)

    def verifies(self, alg: str, signed: bytes, signature: bytes) -> bool:
        """Whether a signature is by this key."""
        parts = joserfc()
        try:
            verdict = parts.algorithms[alg].verify(signed, signature, self._key)
        except parts.faults:
            return False
        return bool(verdict)


def check_rsa(public: Mapping[str, Any]) -> None:
    """Refuse RSA keys that are too small to trust, or so large that checking them costs too much.

    Raises:
        InvalidToken: so it is.
    """
    modulus, exponent = (from_text(str(public.get(name))) or b"" for name in ("n", "e"))
    bits = int.from_bytes(modulus, "big").bit_length()
    if not SHORTEST_RSA <= bits <= LONGEST_RSA or len(exponent) > 8:
        raise InvalidToken(
            f"this key has {bits} bits, and RSA takes {SHORTEST_RSA} to {LONGEST_RSA}"
        )


class Keys:
    """A set of public keys, as an issuer publishes it.

    Keys that cannot be used are left out: an issuer may have some for other purposes.

    Args:
        jwks: the keys, each as a JWK, or the whole set (``{"keys": […]}``).
    """

    def __init__(self, jwks: Iterable[Any] | Mapping[str, Any]) -> None:
        listed = jwks.get("keys") if isinstance(jwks, Mapping) else jwks
        self._keys: list[Key] = []
        for jwk in list(listed)[:MOST_KEYS] if isinstance(listed, Iterable) else []:
            if isinstance(jwk, Mapping):
                try:
                    self._keys.append(Key(jwk))
                except InvalidToken:
                    continue

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def names(self) -> frozenset[str]:
        """The names of those that have one."""
        return frozenset(key.kid for key in self._keys if isinstance(key.kid, str))

    def pick(self, alg: str, kid: str | None) -> Sequence[Key]:
        """The keys that a token may be signed with.

        Args:
            alg: its algorithm.
            kid: the key it names; None if it names none.
        """
        fitting = [key for key in self._keys if key.fits(alg)]
        if kid is None:
            return fitting[:TRIES]
        return [key for key in fitting if key.kid == kid][:TRIES]


def thumbprint(jwk: Mapping[str, Any]) -> str:
    """What a key is called by its own contents (RFC 7638, SHA-256).

    Raises:
        InvalidToken: it is no asymmetric key.
    """
    members = THUMBPRINT.get(str(jwk.get("kty")), ())
    named = {name: jwk.get(name) for name in members}
    if not named or not all(isinstance(value, str) for value in named.values()):
        raise InvalidToken("this is no asymmetric key")
    canonical = json.dumps(named, separators=(",", ":"), sort_keys=True)
    return to_text(hashlib.sha256(canonical.encode()).digest())


class PrivateKey:
    """A key to sign with.

    Example::

        key = PrivateKey(Path("client.pem").read_text(), alg="ES256")
        assertion = sign({"iss": "my-client"}, key, typ="JWT")

    Args:
        material: a private key as PEM, or as JWK (a mapping, or its JSON).
        alg: the algorithm it is used with; None takes the JWK's own, or what its type usually has.
        kid: how others know it; None takes the JWK's own, if any.

    Attributes:
        alg: the algorithm.
        kid: its name, or None.
        jwk: its public half, with ``alg``, ``use`` and ``kid``.
        thumbprint: the RFC 7638 thumbprint of its public half.

    Raises:
        UsageError: it is no private key, or does not fit the algorithm; says which.
    """

    def __init__(
        self,
        material: "Secret | str | bytes | Mapping[str, Any]",
        *,
        alg: str | None = None,
        kid: str | None = None,
    ) -> None:
        key, named = load_private(material)
        public = key.as_dict(private=False)
        kind = (public["kty"], public.get("crv"))
        self.alg = alg or named.get("alg") or usual(kind)
        if kind[0] == "RSA":
            try:
                check_rsa(public)
            except InvalidToken as error:
                raise UsageError(str(error)) from None
        if ALGORITHMS.get(self.alg) != kind:
            raise UsageError(f"a key of type {kind[0]} {kind[1] or ''} does not sign {self.alg}")
        self.kid: str | None = kid or named.get("kid")
        bare = {name: public[name] for name in THUMBPRINT[kind[0]]}
        self.thumbprint = thumbprint(bare)
        named_too = {"kid": self.kid} if self.kid else {}
        self.jwk: Mapping[str, Any] = {**bare, "alg": self.alg, "use": "sig", **named_too}
        self.bare: Mapping[str, Any] = bare
        self._key = key

    @classmethod
    def generate(cls, alg: str = "ES256", kid: str | None = None) -> "PrivateKey":
        """A new key.

        Args:
            alg: what it shall sign with.
            kid: its name; ``"thumbprint"`` is a common choice, None gives it none.
        """
        kind, curve = ALGORITHMS[alg]
        made = joserfc().keys[kind].generate_key(curve or SHORTEST_RSA, private=True)
        key = cls(made.as_dict(private=True), alg=alg, kid=kid)
        return (
            cls(made.as_dict(private=True), alg=alg, kid=key.thumbprint)
            if kid == "thumbprint"
            else key
        )

    def secret_jwk(self) -> Secret:
        """The whole key as the JSON of a JWK, to be kept where it is safe."""
        whole = {**self._key.as_dict(private=True), **self.jwk}
        return Secret(json.dumps(whole))

    def signature(self, data: bytes) -> bytes:
        """The signature of some bytes."""
        made: bytes = joserfc().algorithms[self.alg].sign(data, self._key)
        return made

    def __repr__(self) -> str:
        return f"PrivateKey(alg={self.alg!r}, kid={self.kid!r})"


def usual(kind: tuple[str, str | None]) -> str:
    """The algorithm that keys of a type are used with where nobody says another."""
    return next((name for name, wanted in ALGORITHMS.items() if wanted == kind), "")


def load_private(material: Any) -> tuple[Any, Mapping[str, Any]]:
    """A private key of joserfc, and what its JWK says of it."""
    text = reveal(material) if isinstance(material, Secret) else material
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    parts = joserfc()
    try:
        jwk = json.loads(text) if isinstance(text, str) and text.lstrip()[:1] == "{" else text
        if isinstance(jwk, Mapping):
            kind = str(jwk.get("kty"))
            members = {n: v for n, v in jwk.items() if n not in {"use", "key_ops", "alg", "kid"}}
            return checked_private(parts.keys[kind].import_key(members)), jwk
        return checked_private(from_pem(text)), {}
    except parts.faults:
        raise UsageError("this is no private key: it takes one as PEM, or as JWK") from None


def from_pem(text: str) -> Any:
    """A key of joserfc from PEM.

    Raises:
        ValueError: it is none.
    """
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    native = load_pem_private_key(text.encode(), None)
    for kind in joserfc().keys.values():
        if kind.binding.check_cryptography_key(native):
            return kind.import_key(native)
    raise ValueError("a key of another type")


def checked_private(key: Any) -> Any:
    """A key that can sign.

    Raises:
        ValueError: it cannot.
    """
    if not key.is_private:
        raise ValueError("only the public half")
    return key
