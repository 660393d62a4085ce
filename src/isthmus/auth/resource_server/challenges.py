"""Challenges: the refusals of a resource server, with their status and WWW-Authenticate (RFC 6750)."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from isthmus.auth.net.challenge import write_challenge
from isthmus.core.http.rules import Refusal
from isthmus.revisions.codes import FORBIDDEN_CODE, UNAUTHENTICATED_CODE

CHALLENGE_SCHEMES: Mapping[str, Sequence[str]] = {
    "off": ("bearer",),
    "allow": ("bearer", "dpop"),
    "require": ("dpop",),
}
SCHEME_NAMES = {"bearer": "Bearer", "dpop": "DPoP"}

# RFC 6750 3: an ``error_description`` has neither quotes nor backslashes.
DESCRIPTION_CHARS = str.maketrans({'"': "'", "\\": "/"})


class ResourceChallenges:
    """The refusals of one resource server.

    Args:
        metadata: the URL of its metadata; None where it has none.
        base: the scopes that every request takes.
        dpop: whether tokens may or must be bound to a key.
        algorithms: those of DPoP proofs.

    Attributes:
        nobody: the refusal of a request without a token.
    """

    def __init__(
        self, metadata: str | None, base: frozenset[str], *, dpop: str, algorithms: Sequence[str]
    ) -> None:
        self._metadata = metadata
        self._base = base
        self._schemes = CHALLENGE_SCHEMES[dpop]
        self._algorithms = " ".join(algorithms) or None
        # spec 2026-07-28 basic/authorization#error-handling; RFC 6750 3.1: no error code where
        # there were no credentials. Made once: it is what every stranger gets.
        self.nobody = Refusal(
            401,
            UNAUTHENTICATED_CODE,
            "Authentication is required: send an access token for this server",
            headers=self._headers({"scope": base}),
        )

    def malformed(self, why: str) -> Refusal:
        """The refusal of what cannot be credentials."""
        return self._refusal(400, -32600, "invalid_request", why)

    def invalid(
        self, scheme: str, why: str, error: str = "invalid_token", *, nonce: str | None = None
    ) -> Refusal:
        """The refusal of a token that is not good, or not in these hands.

        Args:
            scheme: how it was presented.
            why: the reason, as much of it as may be told.
            error: the code of it in the challenge.
            nonce: what the next proof is to carry.
        """
        found = self._refusal(
            401, UNAUTHENTICATED_CODE, error, why, scope=self._base, scheme=scheme
        )
        if nonce is None:
            return found
        return replace(found, headers=(*found.headers, ("dpop-nonce", nonce)))

    def insufficient(self, scopes: frozenset[str], *, bound: bool) -> Refusal:
        """The refusal of a token that allows too little.

        Args:
            scopes: all that the operation takes.
            bound: the token is bound to a key.
        """
        # spec 2026-07-28 basic/authorization#runtime-insufficient-scope-errors: 403, with error,
        # scope and resource_metadata
        why = f"this takes the scopes {' '.join(sorted(scopes))}"
        scheme = "dpop" if bound else "bearer"
        return self._refusal(
            403, FORBIDDEN_CODE, "insufficient_scope", why, scope=scopes, scheme=scheme
        )

    def unavailable(self, again: float) -> Refusal:
        """The refusal while nobody can tell whether a token is good: never a reason to log in.

        Args:
            again: seconds after which to try again.
        """
        return Refusal(
            503,
            -32603,
            "Internal error: access tokens cannot be verified just now; try again later",
            headers=(("retry-after", str(max(1, round(again)))),),
        )

    def _refusal(
        self,
        status: int,
        code: int,
        error: str,
        why: str,
        *,
        scope: frozenset[str] = frozenset(),
        scheme: str | None = None,
    ) -> Refusal:
        why = why.encode("ascii", "replace").decode().translate(DESCRIPTION_CHARS)
        why = "".join(sign if " " <= sign <= "~" else "?" for sign in why)
        params = {"error": error, "error_description": why, "scope": scope}
        data: dict[str, Any] = {"error": error}
        if self._metadata is not None:
            data["resource_metadata"] = self._metadata
        if scope:
            data["scope"] = " ".join(sorted(scope))
        # A connection that has no headers for it is told by the error itself.
        return Refusal(
            status, code, f"{why[0].upper()}{why[1:]}", data, self._headers(params, scheme)
        )

    def _headers(
        self, params: dict[str, Any], scheme: str | None = None
    ) -> tuple[tuple[str, str], ...]:
        """A challenge for each scheme that is taken; the error is about the one that was used."""
        used = self._schemes[0] if scheme not in self._schemes else scheme
        # spec 2025-06-18 basic/authorization#server-metadata-discovery: MUST point to the
        # metadata in the challenge of a 401
        shared = {
            "scope": " ".join(sorted(params["scope"])) or None,
            "resource_metadata": self._metadata,
        }
        found = []
        for one in self._schemes:
            said = {**params, **shared} if one == used else dict(shared)
            algorithms = {"algs": self._algorithms} if one == "dpop" else {}
            found.append(
                ("www-authenticate", write_challenge(SCHEME_NAMES[one], {**said, **algorithms}))
            )
        return tuple(found)
