"""Discovery of the authorization server of an MCP server, from metadata that are checked.

Two documents lead to a token endpoint. The protected resource's names its authorization servers
(RFC 9728), and an authorization server's names its endpoints (RFC 8414, or OpenID Connect's way).
Either is somebody else's word: what does not fit the URL it was found by is not used.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from isthmus.auth.net.network import Network, NetworkFailed
from isthmus.auth.net.urls import (
    canonical_resource,
    is_loopback,
    is_same_issuer,
    is_same_resource,
    is_secure,
    metadata_urls,
    origin_of,
    resource_covers,
    split_url,
    well_known_url,
)
from isthmus.auth.protocol import quote_foreign
from isthmus.core.principal import filter_scopes
from isthmus.errors import AuthError, AuthUnsafe, DiscoveryFailed, copy_error
from isthmus.revisions import LATEST

T = TypeVar("T")

VERSION_HEADER: Mapping[str, str] = {"mcp-protocol-version": LATEST.name}
# spec 2025-03-26 basic/authorization#server-metadata-discovery-headers: SHOULD be sent

# Seconds for all of it: a server could name many that are slow, while no call's clock runs.
DISCOVERY_TIMEOUT_S = 30.0

MAX_ISSUERS = 10  # authorization servers of one resource that are looked at


class Compat(msgspec.Struct, frozen=True, kw_only=True):
    """Exceptions for servers that do not keep to the specification.

    Attributes:
        cross_origin_metadata: the challenge may name metadata of another origin than the server's.
        assume_s256: issuers whose metadata do not list ``S256``, and who are known to check it.
        legacy: where a server has no metadata, do as 2025-03-26 says: its origin is the
            authorization server.
        parent_resources: resources such as ``"https://tools.example"`` that servers below them may
            name as their own. A token for one is good at every server below it, and so can be used
            by whoever runs any of them.
        plain_http: origins such as ``"http://tools:8000"`` on a network of one's own, to which
            tokens may go where anybody on the way can read them.
    """

    cross_origin_metadata: bool = False
    assume_s256: frozenset[str] = frozenset()
    legacy: bool = True
    parent_resources: frozenset[str] = frozenset()
    plain_http: frozenset[str] = frozenset()


STRICT_COMPAT = Compat()  # what is put up with unless somebody says otherwise


class ResourceMetadata(msgspec.Struct):
    """Protected resource metadata (RFC 9728)."""

    resource: str
    authorization_servers: list[str] | None = None
    scopes_supported: list[str] | None = None
    dpop_bound_access_tokens_required: bool | None = None
    dpop_signing_alg_values_supported: list[str] | None = None


class ServerMetadata(msgspec.Struct, kw_only=True):
    """Authorization server metadata (RFC 8414, OpenID Connect Discovery).

    Attributes:
        issuer: its name, as it spells it.
    """

    issuer: str
    authorization_endpoint: str = ""
    token_endpoint: str = ""
    registration_endpoint: str | None = None
    revocation_endpoint: str | None = None
    scopes_supported: list[str] | None = None
    grant_types_supported: list[str] | None = None
    token_endpoint_auth_methods_supported: list[str] | None = None
    code_challenge_methods_supported: list[str] | None = None
    client_id_metadata_document_supported: bool | None = None
    authorization_response_iss_parameter_supported: bool | None = None
    dpop_signing_alg_values_supported: list[str] | None = None

    @property
    def methods(self) -> tuple[str, ...]:
        """The ways to authenticate at the token endpoint; empty where it does not say."""
        return tuple(self.token_endpoint_auth_methods_supported or ())


class DiscoveryResult(msgspec.Struct, frozen=True, kw_only=True):
    """The authorization server of an MCP server, and the resource to ask it for.

    Attributes:
        resource: what they are asked for.
        server: who issues them.
        scopes: what the resource says are its basic ones; None where it does not say.
        bound: the resource wants tokens that are bound to a key.
        proofs: it says that it takes such tokens.
        legacy: nobody published metadata, and 2025-03-26 says where the endpoints are.
        below: the canonical URI of the MCP server, where ``resource`` stands above it; empty
            where it is ``resource``.
    """

    resource: str
    server: ServerMetadata
    scopes: frozenset[str] | None = None
    bound: bool = False
    proofs: bool = False
    legacy: bool = False
    below: str = ""


class Discovery:
    """Finds the authorization server of one MCP server.

    Args:
        url: the MCP server.
        network: fetches what stands at URLs that somebody else has chosen.
        authorization_server: the issuer, where the application knows it; nobody is asked then.
        known: the issuers with which a client is registered already, which are preferred.
        compat: what is put up with.
    """

    def __init__(
        self,
        url: str,
        network: Network,
        *,
        authorization_server: str | None = None,
        known: Callable[[str], bool] = lambda _issuer: False,
        compat: Compat | None = None,
    ) -> None:
        self._url = url
        self._network = network
        self._issuer = authorization_server
        self._known = known
        self._compat = compat or STRICT_COMPAT

    def accept_parent(self, resource: str) -> None:
        """Accept a resource above the server, as an earlier login was allowed to."""
        allowed = self._compat.parent_resources | {resource}
        self._compat = msgspec.structs.replace(self._compat, parent_resources=allowed)

    async def find(
        self, announced: str | None = None, *, prefer: str | None = None
    ) -> DiscoveryResult:
        """Find the authorization server.

        Args:
            announced: where the server's challenge says its metadata stand.
            prefer: the issuer that was used before; taken if the server still names it.

        Raises:
            DiscoveryFailed: nobody says, or not in time.
            AuthUnsafe: what is said cannot be believed.
        """
        try:
            async with asyncio.timeout(DISCOVERY_TIMEOUT_S):
                return await self._find(announced, prefer)
        except TimeoutError:
            raise DiscoveryFailed(
                f"whoever {self._url} names as its authorization servers did not say within "
                f"{DISCOVERY_TIMEOUT_S:g} s what they are: try again later"
            ) from None

    async def _find(self, announced: str | None, prefer: str | None) -> DiscoveryResult:
        if self._issuer is not None:
            server = await self.server(self._issuer)
            return DiscoveryResult(resource=canonical_resource(self._url), server=server)
        resource = await self._fetch_resource(announced)
        if resource is None:
            return await self._find_legacy()
        server = await self._choose_server(resource, prefer)
        return DiscoveryResult(
            resource=resource.resource,
            server=server,
            scopes=None
            if resource.scopes_supported is None
            else filter_scopes(resource.scopes_supported),
            bound=bool(resource.dpop_bound_access_tokens_required),
            proofs=bool(resource.dpop_signing_alg_values_supported),
            below=""
            if is_same_resource(resource.resource, self._url)
            else canonical_resource(self._url),
        )

    # The resource

    async def _fetch_resource(self, announced: str | None) -> ResourceMetadata | None:
        """The metadata of the MCP server; None where it has none."""
        # spec 2026-07-28 basic/authorization/authorization-server-discovery#protected-resource-metadata-discovery-requirements:
        # what the challenge names, or else the well-known URI of the path and then the root's
        if announced is not None:
            return self._check_resource(
                await self._fetch_document(self._check_announced(announced)), announced
            )
        suffix = "oauth-protected-resource"
        places = [
            well_known_url(self._url.partition("?")[0], suffix),
            well_known_url(origin_of(self._url), suffix),
        ]
        for place in dict.fromkeys(places):
            document = await self._fetch_document(place, optional=True)
            if document is not None:
                return self._check_resource(document, place)
        return None

    def _check_announced(self, url: str) -> str:
        try:
            same = origin_of(url) == origin_of(self._url)
        except ValueError as error:
            raise AuthUnsafe(f"{self._url} names no usable URL of its metadata: {error}") from None
        if not same and not self._compat.cross_origin_metadata:
            raise AuthUnsafe(
                f"{self._url} says that its metadata stand at {quote_foreign(url)}, which is another "
                "origin: use the URL that the server goes by, or allow it by "
                "Compat(cross_origin_metadata=True) if you trust it"
            )
        return url

    def _check_resource(self, document: Any, place: str) -> ResourceMetadata:
        """Metadata that are about this server."""
        metadata = convert_metadata(document, ResourceMetadata, place)
        # spec 2025-06-18 basic/authorization#server-metadata-discovery, RFC 9728 3.3: what is
        # about another resource must not be used
        if not resource_covers(metadata.resource, self._url):
            raise AuthUnsafe(
                f"the metadata at {quote_foreign(place)} are about {quote_foreign(metadata.resource)}, which does "
                f"not cover {self._url}: no token is asked for; the server has to name its own URL"
            )
        if not self._may_use(metadata.resource):
            raise AuthUnsafe(
                f"the metadata at {quote_foreign(place)} are about {quote_foreign(metadata.resource)}, which stands "
                f"above {self._url}: a token for it is good at every server below it, so none is "
                "asked for; the server has to name its own URL, or, if you trust all of them: "
                f"Compat(parent_resources={{{quote_foreign(metadata.resource)!r}}}), and on the command "
                f"line isthmus login --resource {quote_foreign(metadata.resource)}"
            )
        if not metadata.authorization_servers:
            raise DiscoveryFailed(
                f"the metadata at {quote_foreign(place)} name no authorization server: name it by "
                "OAuth(authorization_server=…)"
            )
        return metadata

    def _may_use(self, resource: str) -> bool:
        """Whether a token may be asked for a resource that covers this server."""
        if is_same_resource(resource, self._url):
            return True
        allowed = self._compat.parent_resources
        return any(is_same_resource(one, resource) for one in allowed)

    async def _choose_server(
        self, resource: ResourceMetadata, prefer: str | None
    ) -> ServerMetadata:
        """Choose the authorization server that knows us, or the first that can be used."""
        # spec 2026-07-28 basic/authorization/authorization-server-discovery#authorization-server-location
        named = (resource.authorization_servers or [])[:MAX_ISSUERS]
        rank = {prefer: 0} if prefer is not None else {}
        named = sorted(named, key=lambda one: rank.get(one, 1 if self._known(one) else 2))
        failures: list[AuthError] = []
        for issuer in named:
            try:
                return await self.server(issuer)
            except (DiscoveryFailed, AuthUnsafe, NetworkFailed) as error:
                failures.append(error.with_traceback(None))
        raise copy_error(failures[0])

    # The authorization server

    async def server(self, issuer: str) -> ServerMetadata:
        """The metadata of an issuer, checked.

        Raises:
            DiscoveryFailed: it publishes none.
            AuthUnsafe: they are not its own, or lack what keeps a flow safe.
        """
        try:
            places = metadata_urls(issuer)
        except ValueError as error:
            raise AuthUnsafe(f"{self._url} names an issuer that cannot be one: {error}") from None
        for place in places:
            document = await self._fetch_document(place, optional=True)
            if document is not None:
                return self._check_server(
                    convert_metadata(document, ServerMetadata, place), issuer, place
                )
        raise DiscoveryFailed(
            f"{quote_foreign(issuer)} publishes no metadata at {', '.join(map(quote_foreign, places))}"
        )

    def _check_server(self, server: ServerMetadata, issuer: str, place: str) -> ServerMetadata:
        # spec 2026-07-28 basic/authorization/authorization-server-discovery#authorization-server-metadata-discovery:
        # the issuer MUST be identical, or the metadata MUST NOT be used
        if not is_same_issuer(server.issuer, issuer):
            raise AuthUnsafe(
                f"the metadata at {quote_foreign(place)} are those of {quote_foreign(server.issuer)} and not of "
                f"{quote_foreign(issuer)}: none of their endpoints is used"
            )
        self._check_endpoints(server)
        return server

    def _check_endpoints(self, server: ServerMetadata) -> None:
        """Refuse endpoints on whose way anybody could read what is sent."""
        local = is_loopback(split_url(self._url).host)
        for name in ("authorization_endpoint", "token_endpoint", "registration_endpoint"):
            url = getattr(server, name)
            # spec 2026-07-28 basic/authorization/security-considerations#communication-security:
            # all endpoints over HTTPS
            secure = not url or (is_secure(url) and (local or url.lower().startswith("https:")))
            if not secure:
                raise AuthUnsafe(
                    f"the {name} of {quote_foreign(server.issuer)} is {quote_foreign(url)}, which is not https: "
                    "nothing is sent there"
                )

    def check_pkce(self, place: DiscoveryResult) -> None:
        """See to it that codes are bound to us by PKCE.

        Raises:
            AuthUnsafe: the authorization server does not say that it checks ``S256``.
        """
        listed = place.server.code_challenge_methods_supported
        # spec 2026-07-28 basic/authorization/security-considerations#authorization-code-protection:
        # without the member clients MUST refuse
        trusted = place.legacy or place.server.issuer in self._compat.assume_s256
        if "S256" not in (listed or ()) and not (trusted and listed is None):
            raise AuthUnsafe(
                f"the metadata of {quote_foreign(place.server.issuer)} do not say that it checks PKCE with "
                "S256 (code_challenge_methods_supported), so a stolen code could be used; if you "
                "know that it does: Compat(assume_s256={issuer})"
            )

    # 2025-03-26

    async def _find_legacy(self) -> DiscoveryResult:
        """Fall back to the rules of 2025-03-26, for a server that publishes no metadata."""
        base = origin_of(self._url)
        if not self._compat.legacy:
            raise DiscoveryFailed(
                f"{self._url} publishes no metadata about its authorization: name the server by "
                "OAuth(authorization_server=…)"
            )
        resource = canonical_resource(self._url)
        # spec 2025-03-26 basic/authorization#authorization-base-url: the origin, without the path
        place = well_known_url(base, "oauth-authorization-server")
        document = await self._fetch_document(place, optional=True)
        if document is not None:
            server = self._check_server(
                convert_metadata(document, ServerMetadata, place), base, place
            )
            listed = server.code_challenge_methods_supported is not None
            return DiscoveryResult(resource=resource, server=server, legacy=not listed)
        # spec 2025-03-26 basic/authorization#fallbacks-for-servers-without-metadata-discovery
        server = ServerMetadata(
            issuer=base,
            authorization_endpoint=f"{base}/authorize",
            token_endpoint=f"{base}/token",
            registration_endpoint=f"{base}/register",
        )
        self._check_endpoints(server)
        return DiscoveryResult(resource=resource, server=server, legacy=True)

    # Documents

    async def _fetch_document(self, url: str, *, optional: bool = False) -> Any:
        """A JSON document; None where there is none, and that is no fault."""
        answer = await self._network.fetch(
            "GET", url, headers={"accept": "application/json", **VERSION_HEADER}
        )
        if answer.status == 200:
            try:
                return answer.json()
            except NetworkFailed:
                if optional:  # a page for people, as catch-all routes give
                    return None
                raise
        if optional and 300 <= answer.status < 500:
            return None
        raise NetworkFailed(f"{quote_foreign(url)} answered with HTTP status {answer.status}")


def convert_metadata(document: Any, kind: type[T], place: str) -> T:
    """A document as what it must be.

    Raises:
        AuthUnsafe: it is something else.
    """
    try:
        return msgspec.convert(document, kind)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:  # half a surrogate pair
        raise AuthUnsafe(f"the metadata at {quote_foreign(place)} are malformed: {error}") from None
