"""Checks of authorization, as data: a table for each document on the way to a token.

Every check looks at one observation and gives the words for what is wrong with it, or None. What it
rests on, and how it is mended, stands beside it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from isthmus.auth.net.challenge import Challenge
from isthmus.auth.net.urls import (
    is_same_issuer,
    is_same_resource,
    is_secure,
    origin_of,
    resource_covers,
)
from isthmus.auth.protocol import quote_foreign
from isthmus.revisions.deprecations import DEPRECATIONS

AUTHORIZATION_PAGE = "2026-07-28 basic/authorization"
DISCOVERY_PAGE = f"{AUTHORIZATION_PAGE}/authorization-server-discovery"
SECURITY_PAGE = f"{AUTHORIZATION_PAGE}/security-considerations"

Severity: TypeAlias = Literal["problem", "warning", "note"]

DYNAMIC_REGISTRATION = DEPRECATIONS["dynamic-registration"]


class AuthFault(msgspec.Struct, frozen=True):
    """Something that is wrong at one hop.

    Attributes:
        severity: ``problem`` where a client cannot or must not go on, ``warning`` where some do,
            ``note`` where all go on today.
        said: what was found.
        clause: the clause of the specification or of an RFC that says otherwise.
        mend: what to do about it.
    """

    severity: Severity
    said: str
    clause: str
    mend: str


class AuthObservation(msgspec.Struct):
    """An observation on the way to a token, as far as a check may need it.

    Attributes:
        url: the MCP server.
        status: with what it answered a request without a token.
        challenges: what it asked for.
        where: where the document at hand stands.
        document: the document.
        issuer: whom the document ought to be about.
        registered: the user has a client that is registered already.
    """

    url: str
    status: int = 0
    challenges: Sequence[Challenge] = ()
    where: str = ""
    document: Mapping[str, Any] = {}
    issuer: str = ""
    registered: bool = False

    @property
    def bearer(self) -> Challenge | None:
        """The challenge that a client of OAuth answers."""
        return next((c for c in self.challenges if c.scheme in {"bearer", "dpop"}), None)

    @property
    def pointer(self) -> str | None:
        """The URL of the metadata that the challenge names."""
        challenge = self.bearer
        return None if challenge is None else challenge.params.get("resource_metadata")


class AuthCheck(msgspec.Struct, frozen=True):
    """A condition that must hold, and its clause.

    Attributes:
        wrong: gives the words for what is wrong, or None.
        clause: what demands it.
        mend: what to do about it.
        severity: what breaking it means.
    """

    wrong: Any  # Callable[[Seen], str | None]; msgspec cannot check callables
    clause: str
    mend: str
    severity: Severity = "problem"


def find_faults(checks: Sequence[AuthCheck], seen: AuthObservation) -> Iterator[AuthFault]:
    """Find the faults of an observation."""
    for check in checks:
        words = check.wrong(seen)
        if words is not None:
            yield AuthFault(check.severity, words, check.clause, check.mend)


def read_strings(document: Mapping[str, Any], name: str) -> list[str]:
    """A list of texts in a document; empty where there is none."""
    listed = document.get(name)
    return [one for one in listed if isinstance(one, str)] if isinstance(listed, list) else []


# The challenge


def find_missing_challenge(seen: AuthObservation) -> str | None:
    """A 401 that does not say what to bring."""
    if seen.bearer is not None:
        return None
    others = sorted({c.scheme for c in seen.challenges})
    return f"the 401 asks for {', '.join(others)}" if others else "the 401 has no WWW-Authenticate"


def find_missing_pointer(seen: AuthObservation) -> str | None:
    """A challenge that does not say where the metadata stand."""
    return "its challenge has no resource_metadata" if seen.bearer and not seen.pointer else None


def find_insecure_pointer(seen: AuthObservation) -> str | None:
    """Metadata that anybody on the way could change."""
    at = seen.pointer
    return (
        f"resource_metadata={quote_foreign(at)} is not https" if at and not is_secure(at) else None
    )


def find_foreign_pointer(seen: AuthObservation) -> str | None:
    """Metadata that another host answers for."""
    at = seen.pointer
    if not at or not is_secure(at) or origin_of(at) == origin_of(seen.url):
        return None
    return f"resource_metadata={quote_foreign(at)} is on another origin than the server"


def find_missing_scope(seen: AuthObservation) -> str | None:
    """A challenge that does not say which scopes to ask for."""
    bearer = seen.bearer
    return "its challenge names no scope" if bearer and not bearer.scopes else None


def find_offline_in_challenge(seen: AuthObservation) -> str | None:
    """A scope that is no business of a resource's."""
    scopes = seen.bearer.scopes if seen.bearer else None
    return "its challenge asks for offline_access" if "offline_access" in (scopes or ()) else None


CHALLENGE_CHECKS = (
    AuthCheck(
        find_missing_challenge,
        f"RFC 9110 11.6.1; {DISCOVERY_PAGE}#protected-resource-metadata-discovery-requirements",
        'answer with WWW-Authenticate: Bearer resource_metadata="…"',
    ),
    AuthCheck(
        find_insecure_pointer,
        f"{SECURITY_PAGE}#communication-security",
        "serve the metadata by https and name that URL",
    ),
    AuthCheck(
        find_foreign_pointer,
        "RFC 9728 3.3, 7.7",
        "serve the metadata on the server's own origin: clients do not go where a challenge sends them",
    ),
    AuthCheck(
        find_missing_pointer,
        "2025-06-18 basic/authorization#authorization-server-location; RFC 9728 5.1",
        "add resource_metadata: clients of 2025-06-18 look nowhere else",
        "warning",
    ),
    AuthCheck(
        find_missing_scope,
        f"{AUTHORIZATION_PAGE}#scope-selection-strategy; RFC 6750 3",
        "name in scope what a client needs to begin with",
        "warning",
    ),
    AuthCheck(
        find_offline_in_challenge,
        f"{AUTHORIZATION_PAGE}#refresh-tokens",
        "leave offline_access to the authorization server",
        "warning",
    ),
)


# The protected resource's metadata


def find_missing_resource(seen: AuthObservation) -> str | None:
    """Metadata about nothing in particular."""
    return None if isinstance(seen.document.get("resource"), str) else "it names no resource"


def find_foreign_resource(seen: AuthObservation) -> str | None:
    """Metadata about another resource."""
    named = seen.document.get("resource")
    if not isinstance(named, str) or resource_covers(named, seen.url):
        return None
    return f"it is about {quote_foreign(named)}, which does not cover {seen.url}"


def find_parent_resource(seen: AuthObservation) -> str | None:
    """Metadata about a resource above the server."""
    named = seen.document.get("resource")
    if not isinstance(named, str) or not resource_covers(named, seen.url):
        return None
    if is_same_resource(named, seen.url):
        return None
    return f"it is about {quote_foreign(named)}, which stands above {seen.url}: careful clients stop here"


def find_missing_issuers(seen: AuthObservation) -> str | None:
    """Metadata that name no authorization server."""
    named = read_strings(seen.document, "authorization_servers")
    return None if named else "it names no authorization server"


def find_unsupported_header(seen: AuthObservation) -> str | None:
    """A resource that takes no token where clients put it."""
    ways = read_strings(seen.document, "bearer_methods_supported")
    return (
        f"it takes tokens by {', '.join(map(quote_foreign, ways))}"
        if ways and "header" not in ways
        else None
    )


def find_offline_in_metadata(seen: AuthObservation) -> str | None:
    """A scope that is no business of a resource's."""
    listed = read_strings(seen.document, "scopes_supported")
    return "its scopes_supported has offline_access" if "offline_access" in listed else None


RESOURCE_CHECKS = (
    AuthCheck(
        find_missing_resource,
        "RFC 9728 2",
        "add resource: the URL under which clients reach the MCP server",
    ),
    AuthCheck(
        find_foreign_resource,
        "RFC 9728 3.3",
        "set resource to the URL under which clients reach the MCP server, path and port included",
    ),
    AuthCheck(
        find_parent_resource,
        "RFC 9728 3.3",
        "set resource to the URL under which clients reach the MCP server; users of isthmus can "
        "allow the other by login --resource, or Compat(parent_resources=…)",
        "warning",
    ),
    AuthCheck(
        find_missing_issuers,
        f"{DISCOVERY_PAGE}#authorization-server-location; RFC 9728 2",
        "add authorization_servers with the issuer's URL",
    ),
    AuthCheck(
        find_unsupported_header,
        f"{AUTHORIZATION_PAGE}#token-requirements",
        "take tokens in the Authorization header, and say header in bearer_methods_supported",
    ),
    AuthCheck(
        find_offline_in_metadata,
        f"{AUTHORIZATION_PAGE}#refresh-tokens",
        "leave offline_access to the authorization server",
        "warning",
    ),
)


# The authorization server's metadata


def find_missing_issuer(seen: AuthObservation) -> str | None:
    """Metadata of nobody."""
    return None if isinstance(seen.document.get("issuer"), str) else "it names no issuer"


def find_foreign_issuer(seen: AuthObservation) -> str | None:
    """Metadata of another authorization server."""
    named = seen.document.get("issuer")
    if not isinstance(named, str) or is_same_issuer(named, seen.issuer):
        return None
    return f"its issuer is {quote_foreign(named)}, and {quote_foreign(seen.issuer)} was asked for"


def find_respelt_issuer(seen: AuthObservation) -> str | None:
    """The same issuer, spelt in two ways."""
    named = seen.document.get("issuer")
    if not isinstance(named, str) or named == seen.issuer or not is_same_issuer(named, seen.issuer):
        return None
    return f"its issuer is {quote_foreign(named)}, and the resource's metadata say {quote_foreign(seen.issuer)}"


def find_missing_s256(seen: AuthObservation) -> str | None:
    """An authorization server that does not say that it checks verifiers."""
    if "authorization_endpoint" not in seen.document:
        return None  # nobody is sent there, so there is no code to protect
    methods = read_strings(seen.document, "code_challenge_methods_supported")
    if "S256" in methods:
        return None
    return (
        f"it offers {', '.join(map(quote_foreign, methods))}"
        if methods
        else "it says nothing about PKCE"
    )


def find_missing_endpoint(name: str) -> Callable[[AuthObservation], str | None]:
    """An endpoint that has to be there."""

    def wrong(seen: AuthObservation) -> str | None:
        return None if isinstance(seen.document.get(name), str) else f"it has no {name}"

    return wrong


ENDPOINTS = (
    "authorization_endpoint",
    "token_endpoint",
    "registration_endpoint",
    "revocation_endpoint",
    "jwks_uri",
)


def find_insecure_endpoint(seen: AuthObservation) -> str | None:
    """Endpoints that anybody on the way could read along at."""
    wrong = [
        f"{name} is {quote_foreign(url)}"
        for name in ENDPOINTS
        if isinstance(url := seen.document.get(name), str) and not is_secure(url)
    ]
    return "; ".join(wrong) or None


def find_missing_iss(seen: AuthObservation) -> str | None:
    """An authorization server whose answers do not say whose they are."""
    if "authorization_endpoint" not in seen.document:
        return None
    told = seen.document.get("authorization_response_iss_parameter_supported") is True
    return None if told else "it does not say that its answers name their issuer"


ISSUER_CHECKS = (
    AuthCheck(find_missing_issuer, "RFC 8414 2", "add issuer: the authorization server's own URL"),
    AuthCheck(
        find_foreign_issuer,
        f"RFC 8414 3.3; {DISCOVERY_PAGE}#authorization-server-metadata-discovery",
        "have authorization_servers of the resource name exactly the issuer, to the letter",
    ),
    AuthCheck(
        find_respelt_issuer,
        "RFC 8414 3.3",
        "spell both alike: strict clients take the one with a slash for somebody else",
        "warning",
    ),
    AuthCheck(
        find_missing_endpoint("token_endpoint"),
        "RFC 8414 2",
        "add token_endpoint: there are no tokens else",
    ),
    AuthCheck(
        find_missing_endpoint("authorization_endpoint"),
        "RFC 8414 2",
        "add authorization_endpoint, unless only machines log in",
        "warning",
    ),
    AuthCheck(
        find_insecure_endpoint,
        f"{SECURITY_PAGE}#communication-security",
        "serve every endpoint by https",
    ),
    AuthCheck(
        find_missing_s256,
        f"{SECURITY_PAGE}#authorization-code-protection; RFC 8414 2",
        "add code_challenge_methods_supported with S256, and check verifiers",
    ),
    AuthCheck(
        find_missing_iss,
        "RFC 9207 2.3; 2026-07-28 basic/authorization#authorization-response-validation",
        "add iss to answers, and say so in authorization_response_iss_parameter_supported",
        "warning",
    ),
)


# Registration


def find_missing_registration(seen: AuthObservation) -> str | None:
    """An authorization server that no client can introduce itself to."""
    document = seen.document
    if seen.registered or isinstance(document.get("registration_endpoint"), str):
        return None
    if document.get("client_id_metadata_document_supported") is True:
        return None
    return "it takes neither client metadata documents nor registrations, and no client is given"


def find_secrets_only(seen: AuthObservation) -> str | None:
    """An authorization server that lets no public client in."""
    methods = read_strings(seen.document, "token_endpoint_auth_methods_supported")
    if not methods or "none" in methods or seen.registered:
        return None
    return f"clients authenticate by {', '.join(map(quote_foreign, methods))} only, and have to keep a secret"


def find_deprecated_registration(seen: AuthObservation) -> str | None:
    """An authorization server whose only way for unknown clients is deprecated."""
    document = seen.document
    if not isinstance(document.get("registration_endpoint"), str):
        return None
    if document.get("client_id_metadata_document_supported") is True:
        return None
    return f"unknown clients can only register dynamically. {DYNAMIC_REGISTRATION.notice}"


REGISTRATION_CHECKS = (
    AuthCheck(
        find_missing_registration,
        f"{AUTHORIZATION_PAGE}/client-registration#pre-registration",
        "register a client there by hand and name it: --client-id ID, or OAuth(clients={…})",
    ),
    AuthCheck(
        find_secrets_only,
        f"{AUTHORIZATION_PAGE}/client-registration",
        "add none to token_endpoint_auth_methods_supported for programs on users' machines",
        "warning",
    ),
    AuthCheck(
        find_deprecated_registration,
        DYNAMIC_REGISTRATION.clause,
        "take client metadata documents as well, and say so in client_id_metadata_document_supported",
        "note",
    ),
)
