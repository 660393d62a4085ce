"""Authorization doctor: walks the way to a token hop by hop, and says where it ends and why.

The client stops at the first thing that cannot be believed. A person who wants to mend it needs
more: every hop that was reached, what was found there, and the clause that says otherwise. Nothing
is registered here, and nobody is logged in, unless a way to do that is given.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from isthmus.auth.client.store.records import Tokens
from isthmus.auth.net.challenge import parse_challenges
from isthmus.auth.net.network import Fetched, Network, NetworkFailed, NetworkRefused
from isthmus.auth.net.urls import is_secure, metadata_urls, origin_of, well_known_url
from isthmus.auth.protocol import quote_foreign
from isthmus.auth.tokens.secret import Secret
from isthmus.errors import AuthError, AuthRefused, AuthUnsafe, DiscoveryFailed, IsthmusError
from isthmus.linter.auth.checks import (
    AUTHORIZATION_PAGE,
    CHALLENGE_CHECKS,
    DISCOVERY_PAGE,
    ISSUER_CHECKS,
    REGISTRATION_CHECKS,
    RESOURCE_CHECKS,
    SECURITY_PAGE,
    AuthCheck,
    AuthFault,
    AuthObservation,
    find_faults,
    read_strings,
)

Verdict: TypeAlias = Literal["ok", "warning", "problem", "skipped"]

# Gets tokens, by logging in or however else.
Login: TypeAlias = Callable[[], Awaitable[Tokens | Secret]]

HOPS = (  # the hops, in their order
    "server",
    "challenge",
    "resource metadata",
    "issuer metadata",
    "registration",
    "token",
    "call",
)

MAX_ISSUERS = 10

INITIALIZE_BODY = msgspec.json.encode(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "isthmus-auth-doctor", "version": "0"},
        },
    }
)
INITIALIZE_HEADERS = {
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
    "user-agent": "isthmus-auth-doctor",
}


class Hop(msgspec.Struct):
    """A step on the way to a token.

    Attributes:
        name: one of :data:`HOPS`.
        verdict: what came of it.
        url: where it was.
        found: what was found there, in words.
        faults: what is wrong with it.
    """

    name: str
    verdict: Verdict = "skipped"
    url: str = ""
    found: list[str] = []
    faults: list[AuthFault] = []

    def judge(self, checks: Sequence[AuthCheck], seen: AuthObservation) -> None:
        """Apply a table to what was seen.

        Args:
            checks: the checks of this hop.
            seen: what was seen at it.
        """
        self.settle(*find_faults(checks, seen))

    def settle(self, *faults: AuthFault) -> None:
        """This is wrong here, or nothing is.

        Args:
            *faults: further faults of this hop.
        """
        self.faults += faults
        severities = {fault.severity for fault in self.faults}
        for verdict in ("problem", "warning"):
            if verdict in severities:
                self.verdict = verdict
                return
        self.verdict = "ok"

    def problem(self, said: str, clause: str, mend: str) -> None:
        """This is wrong here.

        Args:
            said: what is wrong.
            clause: the clause that says otherwise.
            mend: what to do.
        """
        self.settle(AuthFault("problem", said, clause, mend))


class AuthDoctor:
    """Examines the authorization of one MCP server.

    Args:
        url: the MCP endpoint.
        network: makes the requests.
        login: gets a token; without it the last two hops are left out.
        registered: there is a client that is registered already.
    """

    def __init__(
        self,
        url: str,
        network: Network,
        *,
        login: Login | None = None,
        registered: bool = False,
    ) -> None:
        self._seen = AuthObservation(url, registered=registered)
        self._network = network
        self._login = login
        self.hops = {name: Hop(name) for name in HOPS}

    async def examine(self) -> list[Hop]:
        """Walk as far as there is a way; every hop, in order."""
        if await self._ask_server():
            self._judge_challenge()
            issuers = await self._find_resource()
            if await self._find_issuer(issuers):
                self._judge_registration()
            if self._login is not None:
                await self._get_token(self._login)
        return list(self.hops.values())

    # Hops

    async def _ask_server(self) -> bool:
        """Ask without a token; True where somebody answers."""
        hop, url = self.hops["server"], self._seen.url
        hop.url = url
        if not is_secure(url):
            hop.problem(
                "the server is reached by plain http",
                f"{SECURITY_PAGE}#communication-security",
                "serve it by https: tokens are sent to it",
            )
        answer = await self._fetch(hop, url, INITIALIZE_BODY)
        if answer is None:
            return False
        self._seen.status = answer.status
        self._seen.challenges = parse_challenges([answer.headers.get("www-authenticate", "")])
        hop.found.append(f"without a token it answers {answer.status}")
        kind = answer.status // 100
        if kind == 3:
            hop.problem(
                f"it redirects to {quote_foreign(answer.headers.get('location', 'nowhere'))}",
                f"{AUTHORIZATION_PAGE}#canonical-server-uri",
                "give clients the URL it redirects to: a token is for one URL",
            )
        elif answer.status not in {401, 403} and kind != 2:
            hop.settle(
                AuthFault(
                    "warning",
                    f"it answers {answer.status} to a request without a token",
                    f"{AUTHORIZATION_PAGE}#error-handling",
                    "answer 401 to whoever has to log in, before anything else is looked at",
                )
            )
        else:
            hop.settle()
        return True

    def _judge_challenge(self) -> None:
        """Look at what the server asks for."""
        hop, seen = self.hops["challenge"], self._seen
        hop.url = seen.url
        if seen.status == 401:
            hop.found += [f"it asks for {c.scheme}" for c in seen.challenges]
            hop.judge(CHALLENGE_CHECKS, seen)
        elif seen.status // 100 == 2:
            hop.found.append("it asks for no authorization to begin with")
            hop.settle()
        else:
            hop.problem(
                f"there is none: it answers {seen.status}",
                f"{AUTHORIZATION_PAGE}#error-handling",
                "answer 401 with WWW-Authenticate to a request without a token",
            )

    async def _find_resource(self) -> list[str]:
        """Find the metadata of the resource; gives the issuers that are named there."""
        hop, seen = self.hops["resource metadata"], self._seen
        places = self._resource_places()
        for place in places:
            seen.where = hop.url = place
            document = await self._document(hop, place)
            if document is not None:
                seen.document = document
                hop.found.append(f"resource {quote_foreign(document.get('resource'))}")
                scopes = read_strings(document, "scopes_supported")
                hop.found.append(f"scopes {', '.join(map(quote_foreign, scopes)) or 'not named'}")
                hop.judge(RESOURCE_CHECKS, seen)
                return read_strings(document, "authorization_servers")[:MAX_ISSUERS]
        if not places:
            hop.found.append("not fetched: no client goes where the challenge says")
        elif seen.status // 100 == 2:
            hop.found.append("there is none, and none is needed where nobody is asked to log in")
            hop.settle()
        elif hop.verdict != "problem":
            hop.problem(
                "there is none",
                f"{DISCOVERY_PAGE}#authorization-server-location; RFC 9728 3.1",
                f"serve it at {places[0]}",
            )
        return []

    def _resource_places(self) -> list[str]:
        url, suffix = self._seen.url, "oauth-protected-resource"
        pointer = self._seen.pointer
        if pointer:
            # Nobody goes to another host because somebody said so.
            return [pointer] if is_secure(pointer) and origin_of(pointer) == origin_of(url) else []
        places = [
            well_known_url(url.partition("?")[0], suffix),
            well_known_url(origin_of(url), suffix),
        ]
        return list(dict.fromkeys(places))

    async def _find_issuer(self, issuers: list[str]) -> bool:
        """Find the metadata of an authorization server; True where one can be used."""
        hop, seen = self.hops["issuer metadata"], self._seen
        if not issuers:
            if seen.status == 401 and self.hops["resource metadata"].verdict == "problem":
                await self._find_legacy(hop)
            return False
        for issuer in issuers:
            trial = Hop(hop.name, url=quote_foreign(issuer))
            await self._one_issuer(trial, issuer)
            better = hop.verdict in {"skipped", "problem"}
            if better:
                self.hops[hop.name] = hop = trial
            if trial.verdict != "problem":
                break
        return bool(seen.document.get("token_endpoint")) and hop.verdict != "problem"

    async def _one_issuer(self, hop: Hop, issuer: str) -> None:
        seen = self._seen
        seen.issuer, seen.document = issuer, {}
        try:
            places = metadata_urls(issuer)
        except ValueError as error:
            hop.problem(str(error), "RFC 8414 2", "name the issuer as an https URL without a query")
            return
        for place in places:
            seen.where = hop.url = place
            document = await self._document(hop, place)
            if document is not None:
                seen.document = document
                hop.found.append(f"issuer {quote_foreign(document.get('issuer'))}")
                hop.judge(ISSUER_CHECKS, seen)
                return
            if hop.verdict == "problem":
                return
        hop.problem(
            f"{quote_foreign(issuer)} publishes none at {', '.join(map(quote_foreign, places))}",
            f"{DISCOVERY_PAGE}#authorization-server-metadata-discovery; RFC 8414 3.1",
            "serve it at the first of these",
        )

    async def _find_legacy(self, hop: Hop) -> None:
        """Look for the metadata that clients of 2025-03-26 use, where a resource has none."""
        place = well_known_url(origin_of(self._seen.url), "oauth-authorization-server")
        document = await self._document(Hop(hop.name), place)
        if document is not None:
            hop.url, hop.found = place, ["clients of 2025-03-26 find an authorization server here"]
            hop.settle()

    def _judge_registration(self) -> None:
        """Look at how a client gets a name there."""
        hop, seen = self.hops["registration"], self._seen
        hop.url = seen.where
        for name, words in REGISTRATION_WAYS.items():
            if seen.document.get(name):
                hop.found.append(words)
        if seen.registered:
            hop.found.insert(0, "a client that is registered already")
        hop.judge(REGISTRATION_CHECKS, seen)

    async def _get_token(self, login: Login) -> None:
        """Get a token, and send a request with it."""
        hop = self.hops["token"]
        try:
            tokens = await login()
        except IsthmusError as error:
            hop.problem(
                str(error), find_clause(error), "see what it says; the hops above may say why"
            )
            return
        hop.found += describe_tokens(tokens)
        hop.settle()
        await self._call(tokens.access if isinstance(tokens, Tokens) else tokens)

    async def _call(self, token: Secret) -> None:
        hop, url = self.hops["call"], self._seen.url
        hop.url = url
        answer = await self._fetch(hop, url, INITIALIZE_BODY, token)
        if answer is None:
            return
        hop.found.append(f"with the token it answers {answer.status}")
        if answer.status not in {401, 403}:
            hop.settle()
            return
        bearer = next(iter(parse_challenges([answer.headers.get("www-authenticate", "")])), None)
        error = bearer.params.get("error", "") if bearer else ""
        hop.problem(
            f"it does not take the token: {answer.status} {quote_foreign(error)}".rstrip(),
            f"{AUTHORIZATION_PAGE}#token-handling; RFC 8707 2",
            "compare the token's issuer, audience and scopes with what the server checks",
        )

    # Requests

    async def _document(self, hop: Hop, url: str) -> Mapping[str, Any] | None:
        """The JSON object at a URL; None where there is none, with a fault where that is one."""
        answer = await self._fetch(hop, url)
        if answer is None:
            return None
        kind = answer.headers.get("content-type", "nothing").partition(";")[0]
        if 300 <= answer.status < 400:
            hop.problem(
                f"{quote_foreign(url)} redirects to {quote_foreign(answer.headers.get('location', 'nowhere'))}",
                "RFC 9728 7.7; RFC 8414 6.2",
                "serve the document there itself: clients do not follow",
            )
        elif answer.status >= 500:
            hop.problem(
                f"{quote_foreign(url)} answers {answer.status}",
                f"{DISCOVERY_PAGE}",
                "look into that server's log",
            )
        elif answer.status == 200:
            return self._object(hop, url, answer, kind)
        else:
            hop.found.append(f"nothing at {quote_foreign(url)} ({answer.status})")
        return None

    def _object(self, hop: Hop, url: str, answer: Fetched, kind: str) -> Mapping[str, Any] | None:
        try:
            document = answer.json()
        except NetworkFailed:
            document = None
        if isinstance(document, dict):
            return document
        hop.problem(
            f"{quote_foreign(url)} is {quote_foreign(kind)}, and no JSON object",
            "RFC 9728 3.2; RFC 8414 3.2",
            "answer with application/json there; a catch-all route may answer in its place",
        )
        return None

    async def _fetch(
        self, hop: Hop, url: str, body: bytes | None = None, token: Secret | None = None
    ) -> Fetched | None:
        """Fetch a URL; None, with a fault, where nobody answers."""
        headers = INITIALIZE_HEADERS if body is not None else {"accept": "application/json"}
        if token is not None:
            headers = {**headers, "authorization": f"Bearer {token.reveal()}"}
        method, clause = (
            ("GET", DISCOVERY_PAGE) if body is None else ("POST", f"{AUTHORIZATION_PAGE}#overview")
        )
        try:
            return await self._network.fetch(method, url, headers=headers, body=body)
        except NetworkRefused as error:
            hop.problem(
                str(error), f"{SECURITY_PAGE}#communication-security", "name a public https URL"
            )
        except NetworkFailed as error:
            hop.problem(str(error), clause, "is it running, and reachable from here?")
        return None


# How a client may introduce itself, by the member of the metadata that says so.
REGISTRATION_WAYS = {
    "client_id_metadata_document_supported": "client metadata documents",
    "registration_endpoint": "dynamic registration",
}

# Where to read on, by what went wrong on the way to a token.
CLAUSE_BY_ERROR: tuple[tuple[type[IsthmusError], str], ...] = (
    (AuthRefused, "RFC 6749 4.1.2.1, 5.2"),
    (AuthUnsafe, f"{AUTHORIZATION_PAGE}#authorization-response-validation"),
    (DiscoveryFailed, DISCOVERY_PAGE),
    (AuthError, f"{AUTHORIZATION_PAGE}#authorization-flow-steps"),
)


def find_clause(error: IsthmusError) -> str:
    """The clause that an error is about."""
    return next(
        (clause for kind, clause in CLAUSE_BY_ERROR if isinstance(error, kind)), AUTHORIZATION_PAGE
    )


def describe_tokens(tokens: Tokens | Secret) -> list[str]:
    """Describe tokens without their text."""
    if isinstance(tokens, Secret):
        return ["a token that was given"]
    scopes = quote_foreign(", ".join(sorted(tokens.scopes))) or "none named"
    return [f"issued by {quote_foreign(tokens.issuer)}", f"scopes {scopes}"]
