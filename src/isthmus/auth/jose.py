"""Signed tokens: made, and believed only under the keys and algorithms that were named beforehand.

What a token says of itself decides nothing. Its ``alg`` must be one that the caller listed and fit
the key's type and curve, none is symmetric, and neither a key nor the URL of one is ever taken out of
it.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

import msgspec

from isthmus.auth.jwk import ALGORITHMS, COMMON, InvalidToken, Keys, PrivateKey, thumbprint
from isthmus.auth.secret import Secret, reveal
from isthmus.core.base64url import from_text, to_text

__all__ = [
    "ALGORITHMS",
    "COMMON",
    "Claims",
    "InvalidToken",
    "Keys",
    "PrivateKey",
    "UnknownKey",
    "Unverified",
    "audiences",
    "check_times",
    "media_type",
    "read_token",
    "sign",
    "thumbprint",
    "type_of",
    "verify",
]

LONGEST = 64 * 1024
"""Characters of any JWT that is read; what a request may bring is ``ResourceAuth``'s to say."""

LEEWAY = 30.0
"""Seconds by which clocks may differ."""


class UnknownKey(InvalidToken):
    """Its key is none of those that are known, which may have been changed since."""


class Claims(dict[str, Any]):
    """What a token says, once it is believed.

    Attributes:
        header: its protected header.
    """

    def __init__(self, claims: Mapping[str, Any], header: Mapping[str, Any]) -> None:
        super().__init__(claims)
        self.header = header


class Unverified(NamedTuple):
    """A token taken apart, of which nothing is believed yet."""

    header: Mapping[str, Any]
    claims: Mapping[str, Any]
    signed: bytes
    signature: bytes


OBJECT = msgspec.json.Decoder(dict[str, Any])


def read_token(token: Secret | str, *, limit: int = LONGEST) -> Unverified:
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
    header, claims, signature = map(from_text, parts)
    if header is None or claims is None or signature is None:
        raise InvalidToken("the token is no signed JWT: a part of it is not base64url")
    try:
        decoded = OBJECT.decode(header), OBJECT.decode(claims)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise InvalidToken("the token is no signed JWT: a part of it is no JSON object") from None
    return Unverified(*decoded, text.rpartition(".")[0].encode(), signature)


Trusted: TypeAlias = "Keys | Iterable[Mapping[str, Any]] | Mapping[str, Any]"


def verify(
    token: Secret | str,
    keys: Trusted,
    *,
    algorithms: Collection[str] = COMMON,
    typ: str | Collection[str] | None = None,
    limit: int = LONGEST,
) -> Claims:
    """What a token says, if one of the keys signed it. Times, issuer and audience are the caller's.

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
    known = keys if isinstance(keys, Keys) else Keys(keys)
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
        if media_type(header.get("typ")) not in {media_type(one) for one in wanted}:
            raise InvalidToken(f"the token is of another type than {' or '.join(sorted(wanted))}")
    return alg, kid


def media_type(typ: Any) -> str:
    """A ``typ`` as it is compared (RFC 7515 4.1.9); empty for what is none."""
    return typ.lower().removeprefix("application/") if isinstance(typ, str) else ""


def type_of(token: Secret | str) -> str:
    """What kind of token something says it is, as :func:`media_type`; empty for no token at all."""
    try:
        return media_type(read_token(token).header.get("typ"))
    except InvalidToken:
        return ""


def check_times(claims: Mapping[str, Any], now: float, leeway: float = LEEWAY) -> float:
    """When a token ends, if it has begun and not ended yet.

    Args:
        claims: what it says.
        now: seconds since the epoch.
        leeway: seconds by which the issuer's clock may differ.

    Raises:
        InvalidToken: it is over, not valid yet, or does not say until when it is.
    """
    exp, nbf = number(claims.get("exp")), claims.get("nbf")
    if exp is None:
        raise InvalidToken("the token does not say when it expires")
    if now >= exp + leeway:
        raise InvalidToken("the token has expired")
    if nbf is not None and ((begin := number(nbf)) is None or now < begin - leeway):
        raise InvalidToken("the token is not valid yet")
    return exp


def number(value: Any) -> float | None:
    """A date of JSON; None for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e12:
        return None
    return float(value) if math.isfinite(value) else None


def audiences(claims: Mapping[str, Any]) -> frozenset[str]:
    """For whom a token is: its ``aud``, which may be one text or several."""
    aud = claims.get("aud")
    listed = [aud] if isinstance(aud, str) else aud if isinstance(aud, list) else []
    return frozenset(one for one in listed if isinstance(one, str))


def sign(
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
    signed = f"{to_text(msgspec.json.encode(header))}.{to_text(msgspec.json.encode(claims))}"
    return f"{signed}.{to_text(key.signature(signed.encode()))}"
