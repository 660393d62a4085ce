"""How tokens are shown, and the proofs that go with those bound to a key (RFC 9449)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from isthmus.auth.client.tokens import Tokens
from isthmus.auth.foreign import members
from isthmus.auth.newest import Newest
from isthmus.auth.secret import Secret
from isthmus.auth.urls import origin

if TYPE_CHECKING:
    from isthmus.auth.dpop import DpopKey

__all__ = ["Proofs"]

MOST = 100
"""Servers whose nonces are remembered."""

NONCE = "dpop-nonce"
LONGEST = 1024  # characters of a nonce


class Proofs:
    """Makes the proofs of one client, and remembers the nonces that servers want in them.

    Args:
        key: what new tokens are to be bound to; None has them bound to nothing.
    """

    def __init__(self, key: "DpopKey | None" = None) -> None:
        self.key = key
        self._known: dict[str, DpopKey] = {}
        # A server may be both, and its two roles know nothing of one another's nonces.
        self._issuing: Newest[str, str] = Newest(MOST)
        self._serving: Newest[str, str] = Newest(MOST)

    @property
    def secret(self) -> Secret | None:
        """The key, as it is kept with the tokens that are bound to it."""
        return None if self.key is None else self.key.secret_jwk()

    def load(self, tokens: Tokens) -> None:
        """Go on with the key that kept tokens are bound to, or without one."""
        self.key = None if tokens.proof_key is None else self._key(tokens.proof_key)

    # Token requests

    def headers(self, method: str, url: str) -> Mapping[str, str]:
        """The header with a new proof for a token request."""
        if self.key is None:
            return {}
        return {"DPoP": self.key.proof(method, url, nonce=self._issuing.get(origin(url)))}

    def wants_again(self, url: str, status: int, headers: Mapping[str, str], body: bytes) -> bool:
        """Learn the nonce of an answer; True where the request is to be made again with it."""
        before = self._issuing.get(origin(url))
        keep(self._issuing, url, headers)
        if self.key is None or status not in {400, 401}:
            return False
        error = members(body).get("error")
        return error == "use_dpop_nonce" and self._issuing.get(origin(url)) != before

    # Requests to the MCP server

    def presented(self, tokens: Tokens, method: str, url: str) -> Mapping[str, str]:
        """The headers that show a token."""
        shown = tokens.access.reveal()
        if tokens.kind != "DPoP" or tokens.proof_key is None:
            return {"Authorization": f"Bearer {shown}"}
        key = self._key(tokens.proof_key)
        nonce = self._serving.get(origin(url))
        proof = key.proof(method, url, token=tokens.access, nonce=nonce)
        return {"Authorization": f"DPoP {shown}", "DPoP": proof}

    def learn(self, url: str, headers: Mapping[str, str]) -> None:
        """Take the nonce that the next proof for a server has to have, if there is a new one."""
        keep(self._serving, url, headers)

    def _key(self, secret: Secret) -> "DpopKey":
        """The key of a token, read once."""
        from isthmus.auth.dpop import DpopKey  # the JOSE library is loaded where it is needed

        found = self._known.get(secret.reveal())
        if found is None:
            self._known.clear()  # there is one at a time
            own = self.key
            ours = own is not None and own.secret_jwk() == secret
            found = own if own is not None and ours else DpopKey.load(secret)
            self._known[secret.reveal()] = found
        return found


def keep(nonces: Newest[str, str], url: str, headers: Mapping[str, str]) -> None:
    """Remember the nonce of an answer, if there is one and it can be one."""
    nonce = headers.get("DPoP-Nonce") or headers.get(NONCE)
    if nonce and len(nonce) <= LONGEST and nonce.isascii() and nonce.isprintable():
        nonces[origin(url)] = nonce
