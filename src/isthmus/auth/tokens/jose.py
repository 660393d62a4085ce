"""JSON Web Tokens and their keys (JOSE): signed, and verified only under keys and algorithms named beforehand.

What a token says of itself decides nothing. Its ``alg`` must be one that the caller listed and fit
the key's type and curve, none is symmetric, and neither a key nor the URL of one is ever taken out of
it. :mod:`joserfc` does the cryptography; it is imported when the first key is.
"""

import hashlib
import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import msgspec

from isthmus.auth.arguments import missing_library_error
from isthmus.auth.tokens.secret import Secret, reveal
from isthmus.core.encoding import decode_base64url, encode_base64url
from isthmus.errors import AuthError, UsageError

# Every algorithm that can be allowed: the type of its keys, and their curve.
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
DEFAULT_ALGORITHMS = ("RS256", "PS256", "ES256", "EdDSA", "Ed25519")

# The members that make a key what it is, in their order (RFC 7638 3.2, RFC 8037 2).
THUMBPRINT_MEMBERS: Mapping[str, Sequence[str]] = {
    "EC": ("crv", "kty", "x", "y"),
    "OKP": ("crv", "kty", "x"),
    "RSA": ("e", "kty", "n"),
}
PRIVATE_MEMBERS = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})  # of no public key
MAX_SET_KEYS = 100
MAX_KEYS_TRIED = 4  # for a token that names none
MIN_RSA_BITS, MAX_RSA_BITS = 2048, 8192
"""Bits."""

MAX_JWT_CHARS = 64 * 1024  # of any JWT that is read; the limit of a request is ResourceAuth's
LEEWAY_S = 30.0
OBJECT_DECODER = msgspec.json.Decoder(dict[str, Any])


class InvalidToken(AuthError):
    """A token, a proof or an assertion that proves nothing. Says why, and shows nothing of it."""


class JoserfcParts(NamedTuple):
    """The parts of joserfc that are used."""

    algorithms: Mapping[str, Any]
    keys: Mapping[str, Any]
    faults: tuple[type[Exception], ...]


@cache
def load_joserfc() -> JoserfcParts:
    """The library, imported by the first call.

    Raises:
        UsageError: it is not installed.
    """
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from joserfc import errors, jwk, jws
    except ImportError as error:
        raise missing_library_error("Reading or signing tokens", error) from error
    kinds = {"EC": jwk.ECKey, "OKP": jwk.OKPKey, "RSA": jwk.RSAKey}
    faults = (
        errors.JoseError,
        UnsupportedAlgorithm,
        ValueError,
        TypeError,
        KeyError,
        OverflowError,
    )
    return JoserfcParts(jws.JWSRegistry.algorithms, kinds, faults)


class PublicKey:
    """A public key of a set.

    Args:
        jwk: the key; private members of it are not looked at.

    Raises:
        InvalidToken: it is no public key that can be used for signatures.
    """

    def __init__(self, jwk: Mapping[str, Any]) -> None:
        kind, use, operations = str(jwk.get("kty")), jwk.get("use"), jwk.get("key_ops")
        checks = operations is None or (isinstance(operations, list) and "verify" in operations)
        if kind not in THUMBPRINT_MEMBERS or use not in (None, "sig") or not checks:
            raise InvalidToken("this key is not for signatures")
        public = {name: jwk.get(name) for name in THUMBPRINT_MEMBERS[kind]}
        if kind == "RSA":
            check_rsa_size(public)
        try:
            self._key = load_joserfc().keys[kind].import_key(public)
        except load_joserfc().faults:
            raise InvalidToken("this key cannot be read") from None
        self.kid = jwk.get("kid")
        self.kind = (kind, None if kind == "RSA" else public["crv"])
        self._alg = jwk.get("alg")

    def fits(self, alg: str) -> bool:
        """Whether it may be used with an algorithm: type and curve, and its own ``alg`` if any."""
        return ALGORITHMS[alg] == self.kind and (self._alg is None or self._alg == alg)

    def verifies(self, alg: str, signed: bytes, signature: bytes) -> bool:
        """Whether a signature is by this key."""
        parts = load_joserfc()
        try:
            verdict = parts.algorithms[alg].verify(signed, signature, self._key)
        except parts.faults:
            return False
        return bool(verdict)


def check_rsa_size(public: Mapping[str, Any]) -> None:
    """Refuse RSA keys that are too small to trust, or so large that checking them costs too much.

    Raises:
        InvalidToken: so it is.
    """
    modulus, exponent = (decode_base64url(str(public.get(name))) or b"" for name in ("n", "e"))
    bits = int.from_bytes(modulus, "big").bit_length()
    if not MIN_RSA_BITS <= bits <= MAX_RSA_BITS or len(exponent) > 8:
        raise InvalidToken(
            f"this key has {bits} bits, and RSA takes {MIN_RSA_BITS} to {MAX_RSA_BITS}"
        )


class KeySet:
    """A set of public keys, as an issuer publishes it.

    Keys that cannot be used are left out: an issuer may have some for other purposes.

    Args:
        jwks: the keys, each as a JWK, or the whole set (``{"keys": […]}``).
    """

    def __init__(self, jwks: Iterable[Any] | Mapping[str, Any]) -> None:
        listed = jwks.get("keys") if isinstance(jwks, Mapping) else jwks
        self._keys: list[PublicKey] = []
        for jwk in list(listed)[:MAX_SET_KEYS] if isinstance(listed, Iterable) else []:
            if isinstance(jwk, Mapping):
                try:
                    self._keys.append(PublicKey(jwk))
                except InvalidToken:
                    continue

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def names(self) -> frozenset[str]:
        """The names of those that have one."""
        return frozenset(key.kid for key in self._keys if isinstance(key.kid, str))

    def pick(self, alg: str, kid: str | None) -> Sequence[PublicKey]:
        """The keys that a token may be signed with.

        Args:
            alg: its algorithm.
            kid: the key it names; None if it names none.
        """
        fitting = [key for key in self._keys if key.fits(alg)]
        if kid is None:
            return fitting[:MAX_KEYS_TRIED]
        return [key for key in fitting if key.kid == kid][:MAX_KEYS_TRIED]


def jwk_thumbprint(jwk: Mapping[str, Any]) -> str:
    """The thumbprint of a key (RFC 7638, SHA-256).

    Raises:
        InvalidToken: it is no asymmetric key.
    """
    members = THUMBPRINT_MEMBERS.get(str(jwk.get("kty")), ())
    named = {name: jwk.get(name) for name in members}
    if not named or not all(isinstance(value, str) for value in named.values()):
        raise InvalidToken("this is no asymmetric key")
    canonical = json.dumps(named, separators=(",", ":"), sort_keys=True)
    return encode_base64url(hashlib.sha256(canonical.encode()).digest())


class PrivateKey:
    """A private key, for signatures.

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
        key, named = load_private_key(material)
        public = key.as_dict(private=False)
        kind = (public["kty"], public.get("crv"))
        self.alg = alg or named.get("alg") or default_algorithm(kind)
        if kind[0] == "RSA":
            try:
                check_rsa_size(public)
            except InvalidToken as error:
                raise UsageError(str(error)) from None
        if ALGORITHMS.get(self.alg) != kind:
            raise UsageError(f"a key of type {kind[0]} {kind[1] or ''} does not sign {self.alg}")
        self.kid: str | None = kid or named.get("kid")
        bare = {name: public[name] for name in THUMBPRINT_MEMBERS[kind[0]]}
        self.thumbprint = jwk_thumbprint(bare)
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
        made = load_joserfc().keys[kind].generate_key(curve or MIN_RSA_BITS, private=True)
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
        """The signature of ``data`` with this key, as JWS has it (RFC 7518).

        Args:
            data: the bytes to sign.
        """
        made: bytes = load_joserfc().algorithms[self.alg].sign(data, self._key)
        return made

    def __repr__(self) -> str:
        return f"PrivateKey(alg={self.alg!r}, kid={self.kid!r})"


def default_algorithm(kind: tuple[str, str | None]) -> str:
    """The algorithm that keys of a type are used with where nobody says another."""
    return next((name for name, wanted in ALGORITHMS.items() if wanted == kind), "")


def load_private_key(material: Any) -> tuple[Any, Mapping[str, Any]]:
    """A private key of joserfc, and what its JWK says of it."""
    text = reveal(material) if isinstance(material, Secret) else material
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    parts = load_joserfc()
    try:
        jwk = json.loads(text) if isinstance(text, str) and text.lstrip()[:1] == "{" else text
        if isinstance(jwk, Mapping):
            kind = str(jwk.get("kty"))
            members = {n: v for n, v in jwk.items() if n not in {"use", "key_ops", "alg", "kid"}}
            return require_private(parts.keys[kind].import_key(members)), jwk
        return require_private(load_pem(text)), {}
    except parts.faults:
        raise UsageError("this is no private key: give one as PEM or JWK") from None


def load_pem(text: str) -> Any:
    """A key of joserfc from PEM.

    Raises:
        ValueError: it is none.
    """
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    native = load_pem_private_key(text.encode(), None)
    for kind in load_joserfc().keys.values():
        if kind.binding.check_cryptography_key(native):
            return kind.import_key(native)
    raise ValueError("a key of another type")


def require_private(key: Any) -> Any:
    """A key that can sign.

    Raises:
        ValueError: it cannot.
    """
    if not key.is_private:
        raise ValueError("only the public half")
    return key


class UnknownKey(InvalidToken):
    """Its key is none of those that are known, which may have been changed since."""


class Claims(dict[str, Any]):
    """The claims of a token whose signature was verified.

    Attributes:
        header: its protected header.
    """

    def __init__(self, claims: Mapping[str, Any], header: Mapping[str, Any]) -> None:
        super().__init__(claims)
        self.header = header


class UnverifiedToken(NamedTuple):
    """A token taken apart, of which nothing is believed yet."""

    header: Mapping[str, Any]
    claims: Mapping[str, Any]
    signed: bytes
    signature: bytes


def read_token(token: Secret | str, *, limit: int = MAX_JWT_CHARS) -> UnverifiedToken:
    """Take a token apart; nothing of it is believed by that.

    Args:
        token: in compact form.
        limit: characters that it may have.

    Raises:
        InvalidToken: it is no signed JWT.
    """
    text = reveal(token)
    if len(text) > limit:
        raise InvalidToken(f"the token has more than {limit} characters")
    parts = text.split(".")
    if len(parts) != 3:
        raise InvalidToken("the token is no signed JWT: it has not three parts")
    header, claims, signature = map(decode_base64url, parts)
    if header is None or claims is None or signature is None:
        raise InvalidToken("the token is no signed JWT: a part of it is not base64url")
    try:
        decoded = OBJECT_DECODER.decode(header), OBJECT_DECODER.decode(claims)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise InvalidToken("the token is no signed JWT: a part of it is no JSON object") from None
    return UnverifiedToken(*decoded, text.rpartition(".")[0].encode(), signature)


TrustedKeys: TypeAlias = KeySet | Iterable[Mapping[str, Any]] | Mapping[str, Any]


def verify_jwt(
    token: Secret | str,
    keys: TrustedKeys,
    *,
    algorithms: Collection[str] = DEFAULT_ALGORITHMS,
    typ: str | Collection[str] | None = None,
    limit: int = MAX_JWT_CHARS,
) -> Claims:
    """The claims of a token, if one of the keys signed it. Times, issuer and audience are the caller's to check.

    Args:
        token: in compact form.
        keys: whom to believe.
        algorithms: what it may be signed with; asymmetric ones only.
        typ: what kind of token it must say it is, in any case of letters; None asks nothing.
        limit: characters that it may have.

    Raises:
        UnknownKey: its key is none of these, or it names none and none of these signed it.
        InvalidToken: it proves nothing; says why.
        UsageError: joserfc is not installed.
    """
    parsed = read_token(token, limit=limit)
    alg, kid = check_header(parsed.header, algorithms, typ)
    known = keys if isinstance(keys, KeySet) else KeySet(keys)
    candidates = known.pick(alg, kid)
    if not candidates:
        raise UnknownKey("the token is signed with a key that is not known")
    if not any(key.verifies(alg, parsed.signed, parsed.signature) for key in candidates):
        if kid is None:  # it may be that of a key that is newer than these
            raise UnknownKey("the token's signature is that of no key that is known")
        raise InvalidToken("the token's signature is wrong")
    return Claims(parsed.claims, parsed.header)


def check_header(
    header: Mapping[str, Any], algorithms: Collection[str], typ: str | Collection[str] | None
) -> tuple[str, str | None]:
    """The algorithm and the key that a header names, after what can be told from it alone.

    Raises:
        InvalidToken: it is refused; says why.
    """
    alg, kid = header.get("alg"), header.get("kid")
    if not isinstance(alg, str) or alg not in ALGORITHMS or alg not in algorithms:
        raise InvalidToken("the token's algorithm is none of those that are allowed")
    if kid is not None and not isinstance(kid, str):
        raise InvalidToken("the token's kid is no text")
    # RFC 7515 4.1.11: who does not understand an extension must refuse it, and we know none.
    if "crit" in header or "b64" in header:
        raise InvalidToken("the token needs an extension that is not understood")
    if typ is not None:
        wanted = {typ} if isinstance(typ, str) else set(typ)
        if normalize_type(header.get("typ")) not in {normalize_type(one) for one in wanted}:
            raise InvalidToken(f"the token is of another type than {' or '.join(sorted(wanted))}")
    return alg, kid


def normalize_type(typ: Any) -> str:
    """A ``typ`` as it is compared (RFC 7515 4.1.9); empty for what is none."""
    return typ.lower().removeprefix("application/") if isinstance(typ, str) else ""


def token_type(token: Secret | str) -> str:
    """The type of a token as its header has it, as :func:`normalize_type`; empty for no token at all."""
    try:
        return normalize_type(read_token(token).header.get("typ"))
    except InvalidToken:
        return ""


def check_times(claims: Mapping[str, Any], now: float, leeway: float = LEEWAY_S) -> float:
    """When a token ends, if it has begun and not ended yet.

    Args:
        claims: what it says.
        now: seconds since the epoch.
        leeway: seconds by which the issuer's clock may differ.

    Raises:
        InvalidToken: it is over, not valid yet, or does not say until when it is.
    """
    exp, nbf = parse_date(claims.get("exp")), claims.get("nbf")
    if exp is None:
        raise InvalidToken("the token does not say when it expires")
    if now >= exp + leeway:
        raise InvalidToken("the token has expired")
    if nbf is not None and ((begin := parse_date(nbf)) is None or now < begin - leeway):
        raise InvalidToken("the token is not valid yet")
    return exp


def parse_date(value: Any) -> float | None:
    """A date of JSON; None for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e12:
        return None
    return float(value) if math.isfinite(value) else None


def sign_jwt(
    claims: Mapping[str, Any],
    key: PrivateKey,
    *,
    typ: str | None = None,
    headers: Mapping[str, Any] | None = None,
) -> str:
    """A signed token, in compact form.

    Args:
        claims: what it says.
        key: whose signature it has.
        typ: what kind of token it says it is.
        headers: further members of its header; those that are None are left out.
    """
    own = {"typ": typ, "alg": key.alg, "kid": key.kid, **(headers or {})}
    header = {name: value for name, value in own.items() if value is not None}
    signed = f"{encode_base64url(msgspec.json.encode(header))}.{encode_base64url(msgspec.json.encode(claims))}"
    return f"{signed}.{encode_base64url(key.signature(signed.encode()))}"
