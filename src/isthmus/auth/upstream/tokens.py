"""What a provider gave us for one user, and how it is written down to be encrypted."""

import msgspec

from isthmus.auth.secret import Secret, unwrapped, wrapped

__all__ = ["UpstreamTokens", "pack", "unpack"]

EARLY = 30.0
"""Seconds before its end at which a token counts as expired: it is to arrive while it is good."""


class UpstreamTokens(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of a provider for one of its users. They never leave the server.

    Attributes:
        provider: the name of the :class:`~isthmus.auth.upstream.provider.Provider`.
        issuer: who the provider says it is.
        subject: the user there; empty where nobody asked.
        name: what they are called there; empty where nobody asked.
        access: goes to the provider's API.
        refresh: gets the next ones, or None.
        expires_at: seconds since the epoch when ``access`` ends; None where nobody said.
        ends_at: when the session there ends for good; None where nobody said.
        scopes: what was granted.
        checked_at: when the provider last said that they are good.
    """

    provider: str
    issuer: str
    subject: str
    access: Secret
    refresh: Secret | None = None
    expires_at: float | None = None
    ends_at: float | None = None
    scopes: tuple[str, ...] = ()
    checked_at: float = 0.0
    name: str = ""

    def __repr__(self) -> str:
        return f"UpstreamTokens(provider={self.provider!r}, expires_at={self.expires_at!r})"

    def stale(self, now: float) -> bool:
        """Whether the access token is expired, or will be in a moment."""
        return self.expires_at is not None and now >= self.expires_at - EARLY

    def over(self, now: float) -> bool:
        """Whether the session is over, and nothing can be had by it any more."""
        return self.ends_at is not None and now >= self.ends_at


_encoder = msgspec.json.Encoder(enc_hook=unwrapped)
_decoder = msgspec.json.Decoder(UpstreamTokens, dec_hook=wrapped)


def pack(tokens: UpstreamTokens) -> bytes:
    """Tokens as bytes, in clear: they are to be encrypted at once."""
    return _encoder.encode(tokens)


def unpack(data: bytes) -> UpstreamTokens:
    """Tokens from what :func:`pack` made of them.

    Raises:
        msgspec.ValidationError: they are none.
    """
    tokens: UpstreamTokens = _decoder.decode(data)
    return tokens
