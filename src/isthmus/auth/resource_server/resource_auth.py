"""Resource server: an MCP server that takes access tokens, and the model of its scopes."""

import inspect
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Literal

from isthmus.auth.arguments import check_number
from isthmus.auth.net.urls import is_secure, origin_of, split_url, well_known_url
from isthmus.auth.resource_server.challenges import ResourceChallenges
from isthmus.auth.resource_server.credentials import (
    MAX_PROOF_BYTES,
    MAX_TOKEN_BYTES,
    Credentials,
    MalformedCredentials,
    read_bearer_token,
    read_credentials,
    read_proof,
)
from isthmus.auth.resource_server.metadata import (
    METADATA_SUFFIX,
    list_metadata_paths,
    make_metadata_page,
    make_resource_metadata,
)
from isthmus.auth.resource_server.verifier import Presented, TokenVerifier, VerifierUnavailable
from isthmus.auth.tokens.jose import LEEWAY_S
from isthmus.auth.tokens.secret import Secret, name_token
from isthmus.core.http.rules import Refusal
from isthmus.core.principal import Principal, check_scopes
from isthmus.errors import UsageError
from isthmus.transports.http.authorizer import AsgiApp, KnownScopes, MethodScopes, find_recall
from isthmus.transports.http.reply import Scope

if TYPE_CHECKING:
    from isthmus.auth.resource_server.replays import ReplayStore
    from isthmus.auth.tokens.dpop import DpopProof, Nonces
    from isthmus.store.kv import KV

# ``(principal, name)``: the way to a service behind the server; see ``ctx.upstream``.
FindUpstream = Callable[[Principal, str], Awaitable[Any]]

MAX_EXPANSIONS = 1024

RETRY_AFTER_S = 5  # after which a store that could not be asked is worth another try

NO_ROUTES: Mapping[str, AsgiApp] = {}


class ScopeModel:
    """The scopes of one server.

    Example:
        >>> model = ScopeModel({"files:read"}, implies={"files:admin": {"files:read", "files:write"}})
        >>> model.satisfied(frozenset({"files:admin"}), frozenset({"files:write"}))
        True

    Args:
        base: what every request takes, whatever it asks for; the metadata lists these, so that
            clients begin with the least.
        implies: for a scope those that whoever has it has as well, also in several steps.

    Attributes:
        base: what every request takes.
        known: every scope that stands in here.

    Raises:
        UsageError: something is no scope, or is one that no resource takes.
    """

    def __init__(
        self,
        base: Collection[str] = (),
        implies: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        self.base = check_scopes(base, "base")
        self._implies = {one: check_scopes(those, one) for one, those in (implies or {}).items()}
        self.known = self.base.union(
            check_scopes(tuple(self._implies), "implies"), *self._implies.values()
        )
        self._reached: dict[frozenset[str], frozenset[str]] = {}

    def satisfied(self, granted: frozenset[str], required: frozenset[str]) -> bool:
        """Whether granted scopes contain the required ones, by themselves or by implication.

        Args:
            granted: scopes of the token.
            required: scopes that the request takes.
        """
        # spec 2026-07-28 basic/authorization#step-up-authorization-flow: the hierarchy of scopes
        # is the server's to honour
        return required <= granted or required <= self.reached(granted)

    def reached(self, granted: frozenset[str]) -> frozenset[str]:
        """The ``granted`` scopes with all scopes that they imply.

        Args:
            granted: the scopes that a token has.
        """
        if not self._implies:
            return granted
        found = self._reached.get(granted)
        if found is None:
            every, pending = set(granted), list(granted)
            while pending:
                more = self._implies.get(pending.pop(), frozenset()) - every
                every |= more
                pending += more
            found = frozenset(every)
            if len(self._reached) < MAX_EXPANSIONS:
                self._reached[granted] = found
        return found


class ResourceAuth:
    """OAuth resource server: admits requests with a token for this server, to what its scopes allow.

    Example:
        >>> from isthmus import Server
        >>> from isthmus.auth.resource_server import JWTVerifier, ResourceAuth, ScopeModel
        >>> auth = ResourceAuth(
        ...     "https://mcp.example/mcp",
        ...     authorization_servers=["https://login.example"],
        ...     verifier=JWTVerifier(
        ...         issuer="https://login.example", audience="https://mcp.example/mcp"
        ...     ),
        ...     scopes=ScopeModel({"files:read"}, implies={"files:admin": {"files:write"}}),
        ... )  # doctest: +SKIP
        >>> server = Server("files", auth=auth)  # doctest: +SKIP

    Args:
        resource: the URL of the MCP endpoint as clients know it, which tokens must be issued for;
            kept letter by letter.
        authorization_servers: the issuers to get tokens from, one or more.
        verifier: tells whose a token is, and whether it is good.
        scopes: what every request takes, or a model of all there is.
        anonymous: JSON-RPC methods that nobody has to authenticate for, such as ``tools/list``;
            with ``initialize`` among them, anybody may open sessions.
        dpop: whether tokens may, or must, be bound to a key (RFC 9449).
        nonces: has proofs carry a nonce of the server's; none is asked for if not given.
        replays: remembers proofs for other processes and for the next start, as
            ``SQLiteReplays(path)`` does. Without it the store of ``Server(store=…)`` does, and
            where there is none, this process remembers its own.
        list_visibility: ``"granted"`` lists only what its reader may use.
        alone: the only server on its origin, so that its metadata is at the root as well.
        sse: the URL of the stream of HTTP+SSE as clients of 2024-11-05 know it, where they log in,
            too; it is a resource of its own, which their tokens must be issued for.
        routes: further pages of the origin, such as an authorization server's, by exact path.
        name: what the server is called, for people.
        documentation: a URL where developers read more.
        upstream: gives the way to a service behind the server.
        max_token_bytes: bytes of an access token; the HTTP endpoint's ``head_limit`` has to have room
            for it.
        clock: gives seconds since the epoch.

    Attributes:
        resource: the resource.
        authorization_servers: the issuers, as they were given.
        scopes: the model of its scopes.
        metadata: what its metadata says.
        routes: all pages, by path.
        hides: lists hold only what their reader may use.
        sse: guards HTTP+SSE, where that is a resource of its own.
        max_credential_bytes: bytes of a request's head that its credentials may take.

    Raises:
        UsageError: a URL is none, or would have tokens travel where others read them; there is no
            authorization server; something is no scope, or no choice.
    """

    def __init__(
        self,
        resource: str,
        authorization_servers: Sequence[str],
        verifier: TokenVerifier,
        *,
        scopes: ScopeModel | Collection[str] = (),
        anonymous: Collection[str] = frozenset(),
        dpop: Literal["off", "allow", "require"] = "off",
        nonces: "Nonces | None" = None,
        replays: "ReplayStore | None" = None,
        list_visibility: Literal["all", "granted"] = "all",
        alone: bool = True,
        sse: str | None = None,
        routes: Mapping[str, AsgiApp] = NO_ROUTES,
        name: str | None = None,
        documentation: str | None = None,
        upstream: FindUpstream | None = None,
        max_token_bytes: int = MAX_TOKEN_BYTES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        check_number("max_token_bytes", max_token_bytes, least=256, whole=True, unit="bytes")
        check_urls(resource, authorization_servers, sse)
        check_choice("dpop", dpop, ("off", "allow", "require"))
        check_choice("list_visibility", list_visibility, ("all", "granted"))
        check_kind("verifier", verifier, "verify", "JWTVerifier(issuer)")
        self.scopes = scopes if isinstance(scopes, ScopeModel) else ScopeModel(scopes)
        self.hides = list_visibility == "granted"
        self._verifier = verifier
        self._recall = None if dpop == "require" else find_recall(verifier, "verify")
        self._anonymous = expand_anonymous(anonymous)
        self._dpop = dpop
        self._max_token_bytes = max_token_bytes
        self.max_credential_bytes = max_token_bytes + (0 if dpop == "off" else MAX_PROOF_BYTES)
        self._upstream = upstream
        self._clock = clock
        self._nonces = nonces
        if replays is not None:
            check_kind("replays", replays, "first", "SQLiteReplays(path)")
        self._stored_replays = replays
        self._algorithms: Sequence[str] = ()
        if dpop != "off":
            from isthmus.auth.tokens.dpop import (  # few tokens are bound
                DPOP_ALGORITHMS,
                ReplayCache,
            )

            self._algorithms, self._replays = DPOP_ALGORITHMS, ReplayCache()
        self.authorization_servers = authorization_servers
        self._told = {"resource_name": name, "resource_documentation": documentation}
        self._stand_at(resource)
        self.sse = None if sse is None else self._beside(sse)
        self.routes: Mapping[str, AsgiApp] = {
            **({} if self.sse is None else self.sse.routes),
            **self._pages(alone=alone),
            **routes,
        }

    def _stand_at(self, resource: str) -> None:
        """Take a URL for the resource."""
        self.resource = resource
        self.metadata = make_resource_metadata(
            resource,
            self.authorization_servers,
            self.scopes.base,
            algorithms=self._algorithms,
            bound=self._dpop == "require",
            more=self._told,
        )
        self._origin, self._path = origin_of(resource), split_url(resource).path.rstrip("/")
        self._challenges = ResourceChallenges(
            well_known_url(resource, METADATA_SUFFIX),
            self.scopes.base,
            dpop=self._dpop,
            algorithms=self._algorithms,
        )

    def _beside(self, resource: str) -> "ResourceAuth":
        """The same for another resource of the server."""
        found = copy(self)
        found.sse = None
        found._stand_at(resource)  # noqa: SLF001 - it is one of us
        found.routes = found._pages(alone=False)  # noqa: SLF001 - and here
        return found

    def _pages(self, *, alone: bool) -> Mapping[str, AsgiApp]:
        return dict.fromkeys(
            list_metadata_paths(self.resource, alone=alone), make_metadata_page(self.metadata)
        )

    def __repr__(self) -> str:
        return f"ResourceAuth({self.resource!r})"

    # Who

    def recall(self, headers: Sequence[tuple[bytes, bytes]]) -> Principal | None:
        """The principal of a known token in the ``headers`` of a request, or None; see ``Authorizer.recall``.

        Only what :meth:`admit` would let in is known here: one bearer token and no proof. A token that is
        bound to a key is left to it, since each request has a proof of its own.

        Args:
            headers: names, in lower case, and values of the request's headers.
        """
        if self._recall is None:
            return None
        token = read_bearer_token(headers)
        if token is None or len(token) > self._max_token_bytes:
            return None
        principal = self._recall(name_token(token), self.resource)
        return None if principal is None or principal.jkt is not None else principal

    async def admit(self, scope: Scope) -> Principal | Refusal | None:
        """Find the sender of a request, given as ASGI ``scope``, by its token; see ``Authorizer.admit``.

        Args:
            scope: the ASGI scope of the request.

        Returns:
            The principal; the refusal; or None for an anonymous request, where those are let in.
        """
        headers = scope["headers"]
        try:
            found = read_credentials(headers, self._max_token_bytes)
            proof = read_proof(headers)
        except MalformedCredentials as flaw:
            return self._challenges.malformed(str(flaw))
        if found is None or not self._takes(found.scheme):
            return None if found is None and self._anonymous else self._challenges.nobody
        presented = Presented(
            scheme=found.scheme,
            token=Secret(found.token),
            method=scope.get("method", "GET"),
            url=self._make_url(scope),
            proof=proof,
            limit=self._max_token_bytes,
        )
        try:
            # spec 2026-07-28 basic/authorization#token-handling: validated, and issued for this
            # very server
            principal = await self._verifier.verify(presented, self.resource)
        except VerifierUnavailable as error:
            return self._challenges.unavailable(error.retry_after)
        if principal is None:
            return self._challenges.invalid(found.scheme, "the access token is not valid here")
        if found.scheme == "dpop" and principal.jkt is not None:
            return await self._proven(presented, principal)
        return self._check_unbound(found, principal)

    def _takes(self, scheme: str) -> bool:
        return self._dpop == "allow" or (scheme == "dpop") == (self._dpop == "require")

    def _check_unbound(self, found: Credentials, principal: Principal) -> Principal | Refusal:
        """Refuse a bound token that comes as a bearer token."""
        if found.scheme == "dpop":
            return self._challenges.invalid("dpop", "the access token is not bound to a key")
        if principal.jkt is None:
            return principal
        # RFC 9449 7.2: a bound token is good for nothing without its key
        return self._challenges.invalid("bearer", "the access token is bound to a key")

    async def _proven(self, presented: Presented, principal: Principal) -> Principal | Refusal:
        """RFC 9449 4.3 and 7.1: a proof for this request and this token, by the token's key."""
        from isthmus.auth.tokens.dpop import (  # few tokens are bound
            InvalidProof,
            NonceNeeded,
            judge_proof,
        )
        from isthmus.store.kv import StoreFull
        from isthmus.store.store import StoreUnavailable

        now, nonces = self._clock(), self._nonces
        if presented.proof is None:
            return self._challenges.invalid("dpop", "there is no DPoP proof", "invalid_dpop_proof")
        try:
            found = judge_proof(
                presented.proof,
                method=presented.method,
                url=presented.url,
                token=presented.token,
                now=now,
                nonce=nonces,
            )
            if found.jkt != principal.jkt:
                return self._challenges.invalid("dpop", "the access token is bound to another key")
            # What nothing will be done for is not remembered: keys can be made without end.
            await self._take_proof(found, now)
        except (StoreUnavailable, StoreFull):
            return self._challenges.unavailable(RETRY_AFTER_S)
        except NonceNeeded as flaw:
            fresh = None if nonces is None else nonces.current(now)
            return self._challenges.invalid("dpop", str(flaw), "use_dpop_nonce", nonce=fresh)
        except InvalidProof as flaw:
            return self._challenges.invalid("dpop", str(flaw), "invalid_dpop_proof")
        return principal

    async def _take_proof(self, proof: "DpopProof", now: float) -> None:
        """Take a proof, once.

        Raises:
            InvalidProof: it was used before, here or by another process.
            StoreUnavailable: that cannot be told now.
        """
        from isthmus.auth.tokens.dpop import PROOF_USED_BEFORE, InvalidProof  # few tokens are bound

        # The cache comes first: it is bounded by key, so that no key fills the store.
        if not self._replays.first(proof.jkt, proof.jti, now, proof.until):
            raise InvalidProof(PROOF_USED_BEFORE)
        stored = self._stored_replays
        if stored is not None and not await stored.first(proof.jkt, proof.jti, proof.until):
            raise InvalidProof(PROOF_USED_BEFORE)

    def _make_url(self, scope: Scope) -> str:
        """The URL of a request as its client spells it, for which no header is believed."""
        path: str = scope["path"]
        prefix: str = scope.get("root_path", "").rstrip("/")
        whole = path if not prefix or path.startswith(prefix) else prefix + path
        # A proxy may have taken a prefix away; the endpoint is known all the same.
        if self._path.endswith(whole.rstrip("/")):
            return self.resource
        return f"{self._origin}{whole}"

    def share_proofs(self, kv: "KV", ready: Callable[[], Awaitable[None]]) -> None:
        """Remember proofs in a store that all nodes have, unless ``replays`` remembers them.

        Args:
            kv: the store of the nodes.
            ready: waits until it is open.
        """
        if self._stored_replays is None and self._dpop != "off":
            from isthmus.auth.resource_server.replays import KVReplays  # few tokens are bound

            self._stored_replays = KVReplays(kv, clock=self._clock, ready=ready)
        if self.sse is not None:
            self.sse.share_proofs(kv, ready)

    # What

    def permit(
        self,
        principal: Principal | None,
        asked: Sequence[MethodScopes],
        *,
        modern: bool,
        known: KnownScopes,
    ) -> Refusal | None:
        """The reason to refuse a request, or None; see ``Authorizer.permit``.

        Args:
            principal: the caller, or None.
            asked: the methods in the request, and the scopes they take.
            modern: the request is of revision 2026-07-28 or later.
            known: gives the scopes that anything on the server takes.
        """
        if principal is None:
            return None if self._is_open(asked) else self._challenges.nobody
        required = self.scopes.base
        for one in asked:
            if one.scopes:
                required |= one.scopes
        if self.scopes.satisfied(principal.scopes, required):
            return None
        if not modern:
            # spec 2025-11-25 basic/authorization#runtime-insufficient-scope-errors: those that were
            # granted as well, for its clients may ask for nothing but what they are told
            required |= principal.scopes & (known() | self.scopes.known)
        return self._challenges.insufficient(required, bound=principal.jkt is not None)

    def _is_open(self, asked: Sequence[MethodScopes]) -> bool:
        """Whether nobody has to authenticate for any of these; streams are part of sessions."""
        if not asked:
            return "initialize" in self._anonymous
        return all(one.method in self._anonymous and not one.scopes for one in asked)

    def allows(self, principal: Principal | None, scopes: frozenset[str]) -> bool:
        """Whether a caller was granted scopes; see ``Authorizer.allows``.

        Args:
            principal: the caller; None where nobody has authenticated.
            scopes: the scopes.
        """
        if principal is None:
            return not scopes
        return self.scopes.satisfied(principal.scopes, scopes)

    async def lasts(self, principal: Principal) -> bool:
        """Whether the token of ``principal``, good before, is still good; see ``Authorizer.lasts``."""
        until = principal.expires_at
        if until is not None and self._clock() >= until + LEEWAY_S:  # as verifiers allow a token
            return False
        lasts = getattr(self._verifier, "lasts", None)
        if lasts is None:
            return True
        answer = lasts(principal)
        return bool(await answer if inspect.isawaitable(answer) else answer)

    async def upstream(self, principal: Principal, name: str) -> Any:
        """The API of a service behind the server; see ``ctx.upstream``.

        Args:
            principal: the caller whose account there is used.
            name: of the provider of the service.

        Raises:
            UsageError: there is none.
        """
        if self._upstream is None:
            raise UsageError(f"there is no service {name!r} behind this server: see upstream=")
        return await self._upstream(principal, name)


def check_urls(resource: str, authorization_servers: Sequence[str], sse: str | None = None) -> None:
    """See that a resource, its authorization servers and the URL of HTTP+SSE can be.

    Raises:
        UsageError: they cannot; it says why.
    """
    if isinstance(authorization_servers, str) or not authorization_servers:
        raise UsageError("authorization_servers= is a list of one issuer's URL or more")
    for what, url in (
        ("resource", resource),
        *(() if sse is None else (("sse", sse),)),
        *(("an authorization server", url) for url in authorization_servers),
    ):
        try:
            split_url(url)
        except ValueError as flaw:
            raise UsageError(f"{what}: {flaw}") from flaw
        # spec 2026-07-28 basic/authorization/security-considerations#communication-security
        if not is_secure(url):
            raise UsageError(
                f"{what}: {url!r} would send tokens unencrypted: use https, or http on "
                "this machine; behind a proxy give the URL that clients use"
            )
    if sse is not None and (origin_of(sse) != origin_of(resource) or sse == resource):
        raise UsageError(f"sse={sse!r} is another URL of the server at {resource!r}")


def check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    """See that a setting is one of its choices.

    Raises:
        UsageError: it is not.
    """
    if value not in choices:
        raise UsageError(f"{name}= is {' or '.join(map(repr, choices))}, not {value!r}")


def check_kind(name: str, value: object, method: str, example: str) -> None:
    """See that something of one's own kind was given, which its method tells.

    Raises:
        UsageError: it was not.
    """
    if not hasattr(value, method) or isinstance(value, type):
        kind = type(value).__name__  # and not itself, which may be a secret
        raise UsageError(f"{name}= takes {example} or one of its kind, not {kind}")


def expand_anonymous(methods: Collection[str]) -> frozenset[str]:
    """The methods that are open to everybody, with what a session takes beside its opening."""
    if isinstance(methods, str):
        raise UsageError(f"anonymous= is a set of methods, write {{{methods!r}}}")
    more = {"notifications/initialized", "notifications/cancelled", ""}
    return frozenset(methods) | more if "initialize" in methods else frozenset(methods)
