"""DPoP, proof of possession (RFC 9449): a token that is of no use to who has not the key.

The client makes a key, and with each request a proof: a signed note of this method, this URL, this
moment and this token. Who checks it holds each of these to what was really asked, and takes no
proof twice.

Authorization servers and resource servers may have proofs carry a nonce of their own, which shows
that they were made just now and not stored up.
"""

import hmac
import re
import secrets
import struct
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from time import time
from typing import Any, NamedTuple

from isthmus.auth.net.urls import split_url
from isthmus.auth.tokens.jose import (
    PRIVATE_MEMBERS,
    InvalidToken,
    KeySet,
    PrivateKey,
    jwk_thumbprint,
    parse_date,
    read_token,
    sign_jwt,
    verify_jwt,
)
from isthmus.auth.tokens.secret import Secret, s256, sha256_digest
from isthmus.core.encoding import encode_base64url

DPOP_ALGORITHMS = ("ES256", "RS256", "PS256", "ES384", "EdDSA", "Ed25519")
PROOF_WINDOW_S = 300.0  # by which a proof's iat may differ from the checker's time
MAX_PROOF_CHARS = 8 * 1024
MAX_JTI_CHARS = 256  # and of a nonce
MAX_PROOFS = 100_000
PROOF_USED_BEFORE = "DPoP proof: it was used before"

MIN_PROOFS_PER_KEY = 100  # remembered in any case where there is room


class InvalidProof(InvalidToken):
    """A DPoP proof that proves nothing: the answer is ``invalid_dpop_proof``. Says why."""


class NonceNeeded(InvalidProof):
    """A proof without the nonce that is wanted: the answer is ``use_dpop_nonce``, with a new one."""


class DpopKey:
    """A client's key for proofs.

    Example::

        key = DpopKey.generate()
        headers = {"dpop": key.proof("POST", "https://login.example.com/token")}

    Args:
        key: what signs.

    Attributes:
        jkt: the thumbprint that tokens are bound to.
    """

    def __init__(self, key: PrivateKey) -> None:
        self._key = key
        self.jkt = key.thumbprint

    @classmethod
    def generate(cls, alg: str = "ES256") -> "DpopKey":
        """A new key."""
        return cls(PrivateKey.generate(alg))

    @classmethod
    def load(cls, jwk: Secret | str) -> "DpopKey":
        """The key that :meth:`secret_jwk` wrote."""
        return cls(PrivateKey(jwk))

    def secret_jwk(self) -> Secret:
        """The whole key, to be kept where it is safe."""
        return self._key.secret_jwk()

    def proof(
        self,
        method: str,
        url: str,
        *,
        token: Secret | str | None = None,
        nonce: str | None = None,
        now: float | None = None,
    ) -> str:
        """A proof for one request, which is good for no other.

        Args:
            method: of HTTP.
            url: where it goes; its query and fragment are left out.
            token: the access token that goes with it; none at the token endpoint.
            nonce: the last one that the server gave.
            now: seconds since the epoch; this machine's time by default.
        """
        claims: dict[str, Any] = {
            "jti": secrets.token_urlsafe(16),
            "htm": method,
            "htu": re.split(r"[?#]", url, maxsplit=1)[0],
            "iat": int(time() if now is None else now),
        }
        if token is not None:
            claims["ath"] = s256(token)
        if nonce is not None:
            claims["nonce"] = nonce
        return sign_jwt(
            claims, self._key, typ="dpop+jwt", headers={"jwk": self._key.bare, "kid": None}
        )


class ReplayCache:
    """The proofs of the last minutes, so that none is taken twice.

    It is bounded: where it is full of proofs that are still good, further ones are refused rather than
    old ones forgotten, since forgetting is what a replay waits for. Once half of it is taken, no key
    gets more than a tenth, so that nobody's key takes the room of all others.

    Args:
        limit: proofs that are remembered; about 100 bytes each.
    """

    def __init__(self, limit: int = MAX_PROOFS) -> None:
        self._limit = limit
        self._share = max(limit // 10, MIN_PROOFS_PER_KEY)
        self._seen: dict[bytes, float] = {}
        self._held: dict[bytes, int] = {}
        self._tidied = float("-inf")

    def __len__(self) -> int:
        return len(self._seen)

    def first(self, jkt: str, jti: str, now: float, until: float) -> bool:
        """Remember a proof; whether it is the first of its name by this key.

        Args:
            jkt: the key's thumbprint.
            jti: the proof's name.
            now: seconds since the epoch.
            until: when it is of no use any more.

        Raises:
            InvalidProof: there is no room.
        """
        key = sha256_digest(jkt)[:8]
        name = key + sha256_digest(f"{jkt} {jti}")[:16]
        if self._seen.get(name, now - 1) >= now:
            return False
        if self._is_crowded(key):
            self._forget_expired(now)
            if self._is_crowded(key):
                raise InvalidProof("too many proofs at once: try again in a few minutes")
        if name not in self._seen:
            self._held[key] = self._held.get(key, 0) + 1
        self._seen[name] = until
        return True

    def _is_crowded(self, key: bytes) -> bool:
        """Whether there is no room for another proof by a key."""
        taken = len(self._seen)
        greedy = 2 * taken >= self._limit and self._held.get(key, 0) >= self._share
        return greedy or taken >= self._limit

    def _forget_expired(self, now: float) -> None:
        """Forget what is of no use any more; once a second, as it looks at everything."""
        if now < self._tidied + 1:
            return
        self._tidied = now
        self._seen = {name: end for name, end in self._seen.items() if end >= now}
        self._held = {}
        for name in self._seen:
            self._held[name[:8]] = self._held.get(name[:8], 0) + 1


class Nonces:
    """Nonces of a server that keeps nothing: each is a time, sealed.

    Example::

        nonces = Nonces()
        check_proof(proof, method="POST", url=url, token=None, now=now, replays=replays,
                    nonce=nonces)                       # raises NonceNeeded
        headers = {"dpop-nonce": nonces.current(now)}   # for the answer

    Args:
        key: what seals them; servers that share a load share it. A random one by default.
        life: seconds after which a new one is given out; each is taken twice as long.
    """

    def __init__(self, key: bytes | None = None, life: float = 300.0) -> None:
        self._key = secrets.token_bytes(32) if key is None else key
        self._life = life

    def current(self, now: float) -> str:
        """The nonce to give out at the time ``now``, in seconds since the epoch (RFC 9449, section 8).

        Args:
            now: the time, in seconds since the epoch.
        """
        return self._nonce(int(now // self._life))

    def accepts(self, nonce: str, now: float) -> bool:
        """Whether a nonce is the present one, or the one before.

        Args:
            nonce: the nonce of a proof.
            now: seconds since the epoch.
        """
        turn = int(now // self._life)
        given = nonce.encode("utf-8", "surrogatepass")
        known = [self._nonce(at).encode() for at in (turn, turn - 1)]
        return any([hmac.compare_digest(given, one) for one in known])  # noqa: C419 - each is compared

    def _nonce(self, turn: int) -> str:
        moment = struct.pack(">q", turn)
        return encode_base64url(
            moment + hmac.digest(self._key, b"dpop nonce" + moment, "sha256")[:16]
        )


ExpectedNonce = Nonces | str | Callable[[str], bool] | None
"""What a proof's nonce is held against: who gave it out, the nonce itself, a test of it, nothing."""


class DpopProof(NamedTuple):
    """A DPoP proof that is good if it was not used before.

    Attributes:
        jkt: the thumbprint of the key that it is by.
        jti: its name.
        until: seconds since the epoch after which it is of no use any more.
    """

    jkt: str
    jti: str
    until: float


def check_proof(
    proof: str, *, now: float, replays: ReplayCache, bound: str | None = None, **asked: Any
) -> str:
    """The thumbprint of the key that a proof is by, if it is good and new (RFC 9449 4.3).

    Whether the token is bound to that key is the caller's to compare.

    Args:
        proof: the one value of the ``DPoP`` header.
        now: seconds since the epoch.
        replays: the proofs that were taken already.
        bound: the key that the token is bound to, where that is known.
        asked: the other arguments of :func:`judge_proof`.

    Raises:
        NonceNeeded: only the nonce is missing or old.
        InvalidProof: it is not good; says why.
        UsageError: joserfc is not installed.
    """
    found = judge_proof(proof, now=now, **asked)
    # What nothing will be done for is not remembered: keys can be made without end.
    if bound in {None, found.jkt} and not replays.first(found.jkt, found.jti, now, found.until):
        raise InvalidProof(PROOF_USED_BEFORE)
    return found.jkt


def judge_proof(
    proof: str,
    *,
    method: str,
    url: str,
    token: Secret | str | None,
    now: float,
    nonce: "ExpectedNonce" = None,
    algorithms: Collection[str] = DPOP_ALGORITHMS,
    window: float = PROOF_WINDOW_S,
) -> DpopProof:
    """Judge a proof by everything but whether it was used before (RFC 9449 4.3).

    Args:
        proof: the one value of the ``DPoP`` header.
        method: of the request.
        url: of the request, as clients spell it; the server's own configured one behind a proxy.
        token: the access token that came along; None at the token endpoint.
        now: seconds since the epoch.
        nonce: what its nonce is held against; None wants none.
        algorithms: what it may be signed with.
        window: seconds by which its ``iat`` may differ.

    Raises:
        NonceNeeded: only the nonce is missing or old.
        InvalidProof: it is not good; says why.
        UsageError: joserfc is not installed.
    """
    try:
        jwk = read_embedded_key(read_token(proof, limit=MAX_PROOF_CHARS).header)
        keys, jkt = load_proof_key(tuple(jwk.items()))
        claims = verify_jwt(
            proof, keys, algorithms=algorithms, typ="dpop+jwt", limit=MAX_PROOF_CHARS
        )
    except InvalidToken as error:
        raise InvalidProof(f"DPoP proof: {error}") from None
    _check_request(claims, method, url, token)
    iat, jti = parse_date(claims.get("iat")), claims.get("jti")
    if iat is None or abs(now - iat) > window:
        raise InvalidProof(f"DPoP proof: it was not made within {window:g} seconds of now")
    if not isinstance(jti, str) or not 0 < len(jti) <= MAX_JTI_CHARS:
        raise InvalidProof("DPoP proof: it has no jti, or one that is too long")
    _check_nonce(claims.get("nonce"), nonce, now)
    return DpopProof(jkt, jti, iat + window)


def read_embedded_key(header: Mapping[str, Any]) -> Mapping[str, str]:
    """The public key that a proof carries.

    Raises:
        InvalidProof: it carries none, or the private one.
    """
    jwk = header.get("jwk")
    if not isinstance(jwk, dict):
        raise InvalidProof("it carries no key")
    if PRIVATE_MEMBERS & set(jwk):
        raise InvalidProof("it carries a key that should be nobody else's")
    # The key is told by what it is, and what else it says of itself decides nothing.
    members = ("kty", "crv", "x", "y", "n", "e")
    return {name: jwk[name] for name in members if isinstance(jwk.get(name), str)}


@lru_cache(maxsize=1024)
def load_proof_key(members: tuple[tuple[str, str], ...]) -> tuple[KeySet, str]:
    """A client's public key and its thumbprint, read once for the many proofs that it makes.

    Raises:
        InvalidToken: it is no asymmetric key.
    """
    jwk = dict(members)
    return KeySet([jwk]), jwk_thumbprint(jwk)


def _check_request(
    claims: Mapping[str, Any], method: str, url: str, token: Secret | str | None
) -> None:
    if claims.get("htm") != method:
        raise InvalidProof("DPoP proof: it is for another method")
    htu = claims.get("htu")
    if not isinstance(htu, str) or normalize_htu(htu) != normalize_htu(url):
        raise InvalidProof(f"DPoP proof: it is for another URL than {normalize_htu(url)}")
    if token is None:
        return
    ath = claims.get("ath")
    if not isinstance(ath, str) or not hmac.compare_digest(
        ath.encode("utf-8", "surrogatepass"), s256(token).encode()
    ):
        raise InvalidProof("DPoP proof: it is for another access token")


def _check_nonce(given: Any, wanted: "ExpectedNonce", now: float) -> None:
    if wanted is None:
        return
    if not isinstance(given, str) or len(given) > MAX_JTI_CHARS:
        raise NonceNeeded("DPoP proof: it has no nonce")
    if isinstance(wanted, Nonces):
        good = wanted.accepts(given, now)
    elif isinstance(wanted, str):
        good = hmac.compare_digest(given.encode("utf-8", "surrogatepass"), wanted.encode())
    else:
        good = wanted(given)
    if not good:
        raise NonceNeeded("DPoP proof: its nonce is old, or none of ours")


PERCENT_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


@lru_cache(maxsize=128)  # nearly all of them are this server's own
def normalize_htu(url: str) -> str | None:
    """A URL without query and fragment, as ``htu`` is compared: RFC 3986 6.2.2 and 6.2.3.

    None for what is no URL of HTTP.
    """
    try:
        parts = split_url(re.split(r"[?#]", url, maxsplit=1)[0])
    except ValueError:
        return None
    return f"{parts.origin}{remove_dot_segments(PERCENT_ESCAPE.sub(_normalize_escape, parts.path)) or '/'}"


def _normalize_escape(found: re.Match[str]) -> str:
    """An escape as everybody spells it; none where the character needs none."""
    sign = chr(int(found[1], 16))
    return sign if sign in UNRESERVED else found[0].upper()


def remove_dot_segments(path: str) -> str:
    """A path without ``.`` and ``..`` segments (RFC 3986 5.2.4)."""
    if "/." not in path:
        return path
    kept: list[str] = []
    segments = path.split("/")
    for segment in segments[1:]:
        if segment == "..":
            kept[-1:] = []
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in {".", ".."}:
        kept.append("")
    return "/" + "/".join(kept)
