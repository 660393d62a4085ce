"""Token verifier: the seam that says whose an access token is, and the simplest that fill it.

:class:`ByIssuer` has each token judged by its own issuer's verifier; :class:`StaticTokens` knows
fixed ones. The claims of a token or an introspection are read here, too.
"""

import hmac
from collections.abc import Callable, Mapping, Sequence
from time import time
from typing import Any, Protocol

import msgspec

from isthmus.auth.cache import BoundedDict
from isthmus.auth.resource_server.credentials import MAX_TOKEN_BYTES, is_token
from isthmus.auth.tokens.jose import InvalidToken, read_token
from isthmus.auth.tokens.secret import Secret, name_token, reveal
from isthmus.core.principal import Principal
from isthmus.errors import AuthError, UsageError
from isthmus.transports.http.authorizer import find_recall

NAME_PART_BYTES = 16  # of a token's name, which a table is looked up by; the rest is compared
NOBODY_KNOWN: tuple[bytes, Principal | None] = (bytes(NAME_PART_BYTES), None)

MAX_REMEMBERED_JUDGES = 16_384  # tokens of which it is remembered who verifies them

MAX_SCOPES = 1000  # scopes of one token that are looked at


class Presented(msgspec.Struct, frozen=True):
    """An access token as it was presented, with its scheme and proof.

    Attributes:
        scheme: ``bearer`` or ``dpop``, in lower case.
        token: the token.
        method: of the HTTP request.
        url: of the HTTP request, as clients spell it.
        proof: the value of its ``DPoP`` header, if there is exactly one.
        limit: bytes that a token may have here.
    """

    scheme: str
    token: Secret
    method: str = "POST"
    url: str = ""
    proof: str | None = None
    limit: int = MAX_TOKEN_BYTES

    @property
    def name(self) -> bytes:
        """The digest by which the token is remembered: keyed, and another in each process."""
        return name_token(self.token)

    @property
    def is_too_long(self) -> bool:
        """Whether the token has more bytes than it may."""
        return len(self.token.reveal()) > self.limit


class TokenVerifier(Protocol):
    """Verifier of access tokens: their principal, and whether they were issued for this resource.

    A proof that the sender holds the token's key is not its business: it says which key that is
    (``Principal.jkt``), and the resource server has the proof checked.

    One that can tell without waiting also has ``def recall(name: bytes, resource: str) -> Principal |
    None``: the principal of a token that it would verify now, which it remembers by ``presented.name``.
    None has ``verify`` asked. A class that has a ``verify`` of its own, and only inherits ``recall``, is asked each time.

    One that knows of tokens which ended before their time also has ``async def lasts(principal) ->
    bool``: whether a stream that was opened by what it said of a token may stay open.

    Example::

        class Ours:
            async def verify(self, presented, resource):
                row = await database.token(sha256(presented.token.reveal()))
                return row and Principal(issuer="https://ours.example", subject=row.user,
                                         scopes=frozenset(row.scopes), expires_at=row.expires)
    """

    async def verify(self, presented: Presented, resource: str) -> Principal | None:
        """The principal of a token; None where it is no token for this resource, whatever the reason.

        Args:
            presented: the token.
            resource: the URL that it must have been issued for.

        Raises:
            VerifierUnavailable: that cannot be told now.
        """
        ...


class VerifierUnavailable(AuthError):
    """Tokens cannot be verified now: the answer is 503, since 401 would start a login.

    Args:
        message: the text of the error.

    Attributes:
        retry_after: seconds until it is worth another try.
    """

    def __init__(self, message: str, retry_after: float = 30.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ByIssuer:
    """Verifier for several issuers: each token goes to the verifier of the issuer that it names.

    That name is not believed: it only says who is to judge, and no other verifier is ever tried.

    Example::

        ByIssuer({
            "https://login.example.com": JWTVerifier("https://login.example.com"),
            "https://partner.example": JWTVerifier("https://partner.example"),
        }, other=IntrospectionVerifier(…))

    Args:
        verifiers: by issuer, as it spells itself.
        other: judges tokens that are no JWT and so name nobody; without it they are refused.
    """

    def __init__(
        self, verifiers: Mapping[str, TokenVerifier], *, other: TokenVerifier | None = None
    ) -> None:
        self._verifiers = dict(verifiers)
        self._other = other
        self._judges: BoundedDict[bytes, TokenVerifier] = BoundedDict(MAX_REMEMBERED_JUDGES)

    def recall(self, name: bytes, resource: str) -> Principal | None:
        """The principal of a known token, as its verifier says; None where it is not known.

        Args:
            name: digest of the token: ``Presented.name``.
            resource: URI of this resource server (RFC 8707).
        """
        recall = find_recall(self._judges.get(name), "verify")
        return None if recall is None else recall(name, resource)

    async def verify(self, presented: Presented, resource: str) -> Principal | None:
        """The principal of a token; None where its issuer is unknown, or says no.

        Args:
            presented: the token and the proof of its holder.
            resource: URI of this resource server (RFC 8707).

        Raises:
            VerifierUnavailable: its issuer's verifier cannot tell now.
        """
        try:
            issuer = read_token(presented.token).claims.get("iss")
        except InvalidToken:
            judge = self._other
        else:
            judge = self._verifiers.get(issuer) if isinstance(issuer, str) else None
        if judge is None:
            return None
        principal = await judge.verify(presented, resource)
        if principal is not None and judge is not self._other and principal.issuer != issuer:
            return None
        if principal is not None:
            self._judges[presented.name] = judge
        return principal

    async def lasts(self, principal: Principal) -> bool:
        """Whether a stream of ``principal`` may stay open, as the issuer's verifier says; True where it cannot tell."""
        judge = self._verifiers.get(principal.issuer, self._other)
        lasts = getattr(judge, "lasts", None)
        return True if lasts is None else bool(await lasts(principal))


class StaticTokens:
    """Fixed tokens, for this server alone, valid for as long as this object has them.

    Only digests of them are kept. Which of them a token is, and whether it is any, is found in the
    same time, however many there are.

    Example::

        from isthmus.core.principal import Principal

        ada = Principal(issuer="static", subject="ada", scopes=frozenset({"files:read"}))
        verifier = StaticTokens({os.environ["FILES_TOKEN"]: ada})

    Args:
        tokens: each token, and whose it is.
        clock: seconds since the epoch.

    Raises:
        UsageError: a token is nobody's.
    """

    def __init__(
        self, tokens: Mapping[str | Secret, Principal], *, clock: Callable[[], float] = time
    ) -> None:
        if not is_token_table(tokens):
            raise UsageError(
                "each token needs a Principal: {token: Principal(issuer='ours', subject='ada', "
                "scopes=frozenset({'files:read'}))}"
            )
        self._known: dict[bytes, tuple[bytes, Principal | None]] = {}
        self._owners: dict[str, list[Principal]] = {}
        self._unsendable: set[bytes] = set()
        for token, principal in tokens.items():
            name = name_token(token)
            self._known[name[:NAME_PART_BYTES]] = (name[NAME_PART_BYTES:], principal)
            self._owners.setdefault(principal.owner, []).append(principal)
            if not is_token(reveal(token).encode("utf-8", "surrogatepass")):
                self._unsendable.add(name)
        self._clock = clock

    def recall(self, name: bytes, resource: str) -> Principal | None:  # noqa: ARG002 - they are for this server
        """The principal of a token by its name; None where it is unknown, or has expired.

        Args:
            name: digest of the token: ``Presented.name``.
            resource: URI of this resource server (RFC 8707).
        """
        return None if name in self._unsendable else self._find(name)

    async def verify(self, presented: Presented, resource: str) -> Principal | None:  # noqa: ARG002 - they are for this server
        """The principal of a token; None where it is unknown.

        Args:
            presented: the token and the proof of its holder.
            resource: URI of this resource server (RFC 8707).
        """
        return self._find(presented.name)

    def _find(self, name: bytes) -> Principal | None:
        rest, found = self._known.get(name[:NAME_PART_BYTES], NOBODY_KNOWN)
        if not hmac.compare_digest(rest, name[NAME_PART_BYTES:]) or found is None:
            return None
        if found.expires_at is not None and found.expires_at <= self._clock():
            return None
        return found

    async def lasts(self, principal: Principal) -> bool:
        """Whether ``principal`` has one of our tokens, and it has not expired."""
        known = principal in self._owners.get(principal.owner, ())
        return known and (principal.expires_at is None or principal.expires_at > self._clock())


def is_token_table(tokens: object) -> bool:
    """Whether each token has a principal, whose scopes are a set."""
    return isinstance(tokens, Mapping) and all(
        isinstance(one, Principal) and not isinstance(one.scopes, str) for one in tokens.values()
    )


# Claims


def read_text_claim(claims: Mapping[str, Any], names: Sequence[str]) -> str | None:
    """The first of some claims that is a text and not empty."""
    for name in names:
        value = claims.get(name)
        if isinstance(value, str) and value:
            return value
    return None


def read_scope_claim(claims: Mapping[str, Any], names: Sequence[str]) -> frozenset[str] | None:
    """The scopes in the first of some claims that is there; None where none is.

    They are one text with spaces (RFC 8693 4.2), or a list as some issuers write it.
    """
    for name in names:
        value = claims.get(name)
        if isinstance(value, str):
            return frozenset(value.split(" ")[:MAX_SCOPES]) - {""}
        if isinstance(value, list):
            return frozenset(one for one in value[:MAX_SCOPES] if isinstance(one, str))
    return None


def read_key_binding(claims: Mapping[str, Any]) -> str | None:
    """The thumbprint of the key that a token is bound to; None if it is bound to none.

    Raises:
        InvalidToken: it is bound to something that cannot be checked here. Without the check it would be
            good for anybody who has it.
    """
    bound = claims.get("cnf")
    if bound is None:
        return None
    jkt = bound.get("jkt") if isinstance(bound, dict) else None
    if not isinstance(jkt, str) or set(bound) != {"jkt"}:
        raise InvalidToken("the token is bound to something else than a DPoP key")
    return jkt
