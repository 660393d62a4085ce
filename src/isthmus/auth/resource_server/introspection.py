"""Token introspection (RFC 7662): the issuer is asked about tokens that only it can read."""

import logging
from collections.abc import Callable, Collection, Mapping
from time import time
from typing import Any, Literal, NamedTuple

from isthmus.auth.arguments import check_number
from isthmus.auth.cache import BoundedDict, SingleFlight
from isthmus.auth.net.network import (
    TOTAL_TIMEOUT_S,
    Network,
    NetworkFailed,
    NetworkPolicy,
    NetworkRefused,
    desktop,
    make_network,
)
from isthmus.auth.protocol import encode_basic
from isthmus.auth.resource_server.verifier import (
    Presented,
    VerifierUnavailable,
    read_key_binding,
    read_scope_claim,
    read_text_claim,
)
from isthmus.auth.tokens.audience import is_issued_for
from isthmus.auth.tokens.jose import LEEWAY_S, InvalidToken, check_times
from isthmus.auth.tokens.secret import Secret
from isthmus.core.principal import Principal
from isthmus.errors import UsageError

# Seconds for which an answer is believed, and so the longest that a revoked token is.
MAX_FRESH_S = 60.0

# Answers that are remembered, and tokens that are asked about again for open streams.
MAX_REMEMBERED_ANSWERS = 16_384

# Tokens that are asked about at the same time; a flood of made-up ones opens no more requests.
MAX_PENDING_TOKENS = 128

MAX_ANSWER_BYTES = 64 * 1024

log = logging.getLogger("isthmus.auth")


class IntrospectedToken(NamedTuple):
    """An answer."""

    principal: Principal
    resource: str
    until: float


class IntrospectionVerifier:
    """Token introspection (RFC 7662): the authorization server judges tokens.

    An answer is believed for a minute at most, and never beyond the token's own end. A token that was
    revoked meanwhile ends open streams, too.

    Example::

        verifier = IntrospectionVerifier(
            "https://login.example.com/introspect", client_id="files",
            client_secret=Secret(os.environ["FILES_SECRET"]), issuer="https://login.example.com")

    Args:
        endpoint: where to ask.
        client_id: who asks.
        client_secret: how it proves that.
        issuer: whose tokens these are, as it spells itself; an answer that names another is refused.
        audience: what ``aud`` must contain; the resource's URL by default.
        method: how the client authenticates.
        fresh: seconds for which an answer is believed, 60 at most; 0 asks for each request.
        leeway: seconds by which the issuer's clock may differ.
        network: makes the requests, or the policy for them; one that may go to the endpoint by default.
        clock: seconds since the epoch.

    Raises:
        UsageError: the endpoint is no URL, or ``fresh`` is too long.
    """

    def __init__(
        self,
        endpoint: str,
        *,
        client_id: str,
        client_secret: Secret | str,
        issuer: str,
        audience: str | Collection[str] | None = None,
        method: Literal["client_secret_basic", "client_secret_post"] = "client_secret_basic",
        fresh: float = MAX_FRESH_S,
        leeway: float = LEEWAY_S,
        network: Network | NetworkPolicy | None = None,
        clock: Callable[[], float] = time,
    ) -> None:
        check_number("fresh", fresh)
        check_number("leeway", leeway)
        if not 0 <= fresh <= MAX_FRESH_S:
            raise UsageError(
                f"fresh= is {fresh:g}: a revoked token is good for {MAX_FRESH_S:g} s at most"
            )
        try:
            self._network = make_network(
                network or desktop(endpoint), keep=False, total=TOTAL_TIMEOUT_S
            )
        except ValueError as error:
            raise UsageError(f"IntrospectionVerifier: {error}") from None
        self.issuer = issuer
        self._endpoint = endpoint
        self._client = (client_id, Secret(client_secret), method)
        self._audience = {audience} if isinstance(audience, str) else audience
        self._times = (fresh, leeway)
        self._clock = clock
        self._remembered: BoundedDict[bytes, IntrospectedToken] = BoundedDict(
            MAX_REMEMBERED_ANSWERS
        )
        self._flights: SingleFlight[Mapping[str, Any]] = SingleFlight()
        self._open: BoundedDict[int, tuple[Principal, Presented, str]] = BoundedDict(
            MAX_REMEMBERED_ANSWERS
        )

    def recall(self, name: bytes, resource: str) -> Principal | None:
        """The principal of a token, while the last answer about it is valid; None otherwise.

        Args:
            name: digest of the token: ``Presented.name``.
            resource: URI of this resource server (RFC 8707).
        """
        known = self._remembered.get(name)
        if known is None or known.resource != resource or self._clock() >= known.until:
            return None
        return known.principal

    async def verify(self, presented: Presented, resource: str) -> Principal | None:
        """The principal of a token; None where it is not active, or not for this resource.

        Args:
            presented: the token and the proof of its holder.
            resource: URI of this resource server (RFC 8707).

        Raises:
            VerifierUnavailable: the authorization server does not answer, or does not let us ask.
        """
        name = presented.name
        believed = self.recall(name, resource)
        if believed is not None:
            return believed
        known = self._remembered.get(name)
        if len(self._flights) >= MAX_PENDING_TOKENS and name not in self._flights:
            raise VerifierUnavailable(
                f"introspection: {MAX_PENDING_TOKENS} tokens are being asked about"
            )
        answer = await self._flights.run(name, lambda: self._ask(presented.token))
        try:
            principal = self._make_principal(answer, resource)
        except InvalidToken as error:
            log.debug("an access token was refused: %s", error)
            self._remembered.pop(name, None)
            return None
        if known is not None and known.principal == principal:
            principal = known.principal  # so that the streams opened with it are still known
        self._remember_answer(name, principal, presented, resource)
        return principal

    async def lasts(self, principal: Principal) -> bool:
        """Whether the token of ``principal`` is still active (RFC 7662).

        An authorization server that does not answer closes no stream.
        """
        holder = self._open.get(id(principal))
        if holder is None or holder[0] is not principal:
            return False
        try:
            return await self.verify(holder[1], holder[2]) is not None
        except VerifierUnavailable:
            return True

    async def _ask(self, token: Secret) -> Mapping[str, Any]:
        client_id, secret, method = self._client
        fields = {"token": token.reveal(), "token_type_hint": "access_token"}
        headers = {}
        if method == "client_secret_post":
            fields |= {"client_id": client_id, "client_secret": secret.reveal()}
        else:
            headers["authorization"] = encode_basic(client_id, secret)
        try:
            answer = await self._network.form(
                self._endpoint, fields, headers, limit=MAX_ANSWER_BYTES
            )
            said = answer.json() if answer.status == 200 else None
        except (NetworkFailed, NetworkRefused) as error:
            raise VerifierUnavailable(f"introspection: {error}") from error
        if not isinstance(said, dict):
            raise VerifierUnavailable(
                f"introspection: {self._endpoint} answered with HTTP status {answer.status}"
                + (": is the client's secret right?" if answer.status in {400, 401, 403} else "")
            )
        return said

    def _make_principal(self, answer: Mapping[str, Any], resource: str) -> Principal:
        """The principal that an answer names.

        Raises:
            InvalidToken: it is not for here, or not now.
        """
        if answer.get("active") is not True:
            raise InvalidToken("it is not active")
        if answer.get("iss", self.issuer) != self.issuer:
            raise InvalidToken("it is of another issuer")
        # spec 2026-07-28
        # basic/authorization/security-considerations#token-audience-binding-and-validation
        if not is_issued_for(answer, self._audience or {resource}):
            raise InvalidToken("it was issued for another resource: see aud of the introspection")
        now, leeway = self._clock(), self._times[1]
        expires = check_times({"exp": now + MAX_FRESH_S, **answer}, now, leeway)
        client = read_text_claim(answer, ("client_id",)) or ""
        subject = read_text_claim(answer, ("sub", "username")) or client
        if not subject:
            raise InvalidToken("the introspection does not say whose it is")
        return Principal(
            issuer=self.issuer,
            subject=subject,
            client_id=client,
            scopes=read_scope_claim(answer, ("scope",)) or frozenset(),
            expires_at=expires if "exp" in answer else None,
            claims={name: value for name, value in answer.items() if name != "active"},
            jkt=read_key_binding(answer),
        )

    def _remember_answer(
        self, name: bytes, principal: Principal, presented: Presented, resource: str
    ) -> None:
        until = self._clock() + self._times[0]
        if principal.expires_at is not None:
            until = min(until, principal.expires_at)
        self._remembered[name] = IntrospectedToken(principal, resource, until)
        self._open[id(principal)] = (principal, presented, resource)
