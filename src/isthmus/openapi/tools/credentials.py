"""Credentials of calls to an API: by the document's security schemes, or made by the author.

No argument of a tool carries them, so that no model sees or sets them. They are made for each call,
for who makes it, and are added to a request when it is complete.
"""

import inspect
import re
from base64 import b64encode
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec
from msgspec import Struct, structs

from isthmus.auth.tokens.secret import Secret, reveal
from isthmus.errors import ToolError, UsageError
from isthmus.openapi.document import Document, DocumentError
from isthmus.openapi.operation import HEADER_NAME, Operation, clean_media_type, is_json_type
from isthmus.openapi.request import PreparedRequest
from isthmus.openapi.sending import ApiResponse
from isthmus.openapi.styles import COOKIE_TEXT, HEADER_TEXT, encode_text

if TYPE_CHECKING:
    from isthmus.server.asking.context import Context
    from isthmus.server.openapi_options import HeadersSource, HeaderValue

HeadersOf: TypeAlias = Callable[["Context"], "Mapping[str, str] | Awaitable[Mapping[str, str]]"]
Carrier: TypeAlias = Literal["header", "query", "cookie"]

# headers that not even a function of the author may set: they say where a message ends, or goes
CONNECTION_HEADERS = frozenset({
    *("host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer"),
    *("expect", "keep-alive", "content-type"),
})  # fmt: skip
MIN_HIDDEN_CHARS = 6  # of a secret; a shorter one could be any word


class UpstreamCredential(Struct, frozen=True):
    """A provider of the authorization server, whose token for the caller is the credential.

    Attributes:
        name: as ``ctx.upstream`` knows it.
    """

    name: str


def upstream(name: str) -> UpstreamCredential:
    """The caller's own token at a provider, as a credential: see ``Context.upstream``."""
    return UpstreamCredential(name)


class InboundCredential(Struct, frozen=True):
    """The access token that the caller of this server presented.

    Attributes:
        audience: the API's own resource identifier; it must be the one that this server's tokens
            are for.
    """

    audience: str


def inbound_token(audience: str) -> InboundCredential:
    """The caller's own access token, passed on: only where the API *is* this resource server.

    A token is for one resource. Passed on to another one, it would let that one act as the user, so
    the audience is checked when the server is made, and again with each call.

    Args:
        audience: the ``resource`` of the server's ``auth=ResourceAuth(…)``: the audience of the
            caller's token.
    """
    return InboundCredential(audience)


class SecurityScheme(Struct, frozen=True):
    """A security scheme of a document, as far as it says what is sent.

    Attributes:
        name: in the document.
        carrier: where the credential goes.
        key: the header, the parameter or the cookie.
        prefix: before the credential: ``Bearer``, ``Basic``.
    """

    name: str
    carrier: Carrier
    key: str
    prefix: str = ""

    def place(self, text: str) -> str:
        """The credential as it is sent."""
        if self.prefix == "Basic" and ":" in text:  # else it is encoded already
            text = b64encode(text.encode()).decode()
        return f"{self.prefix} {text}" if self.prefix else text


def read_schemes(document: Document) -> dict[str, SecurityScheme]:
    """Read the security schemes of a document; those that nothing can be sent for are left out.

    Raises:
        DocumentError: one is malformed.
    """
    schemes = document.start.mapping("components").mapping("securitySchemes")
    found: dict[str, SecurityScheme] = {}
    for name in schemes.node:
        place = document.follow(schemes.member(name))
        if not isinstance(place.node, Mapping):
            raise DocumentError(place.pointer, "a security scheme must be an object")
        scheme = _read_scheme(name, place.node)
        if scheme is not None:
            found[name] = scheme
    return found


def _read_scheme(name: str, node: Mapping[str, Any]) -> SecurityScheme | None:
    kind = node.get("type")
    if kind == "apiKey":
        carrier, key = node.get("in"), node.get("name")
        if carrier in {"header", "query", "cookie"} and isinstance(key, str) and key:
            if carrier == "header" and not HEADER_NAME.fullmatch(key):
                return None
            return SecurityScheme(name, carrier, key)
        return None
    if kind == "http":
        said = str(node.get("scheme", "bearer"))
        prefix = {"bearer": "Bearer", "basic": "Basic"}.get(said.lower(), said)
        return (
            SecurityScheme(name, "header", "Authorization", prefix)
            if SCHEME_NAME.fullmatch(prefix)
            else None
        )
    if kind in {"oauth2", "openIdConnect"}:
        return SecurityScheme(name, "header", "Authorization", "Bearer")
    return None


SCHEME_NAME = re.compile(r"[A-Za-z0-9\-]{1,64}")


class ApiCredentials:
    """Credentials of one API.

    Args:
        schemes: the document's security schemes.
        given: a credential for each of them, by name: a text or a
            :class:`~isthmus.auth.tokens.secret.Secret`, a function of the context, :func:`upstream`,
            or :func:`inbound_token`.
        headers: for every request, see :data:`~isthmus.server.openapi_options.HeadersSource`.

    Attributes:
        reserved: the parameters that credentials fill, whether there are any or not, and the headers
            that a mapping names.

    Raises:
        UsageError: there is no scheme of a name, or a credential is none.
    """

    def __init__(
        self,
        schemes: Mapping[str, SecurityScheme],
        given: Mapping[str, Any] | None = None,
        headers: "HeadersSource | None" = None,
    ) -> None:
        self._schemes = schemes
        self._given = {
            name: Secret(one) if isinstance(one, str) else one
            for name, one in (given or {}).items()
        }
        self._headers = fix_headers(headers) if isinstance(headers, Mapping) else headers
        self.reserved = _list_reserved(schemes.values())
        if isinstance(headers, Mapping):
            self.reserved |= {("header", name.lower()) for name in headers}
        for name, one in self._given.items():
            if name not in schemes:
                known = ", ".join(sorted(schemes)) or "none"
                raise UsageError(
                    f"credentials: the document has no security scheme {name!r}; it has: {known}"
                )
            if not callable(one) and not isinstance(
                one, Secret | UpstreamCredential | InboundCredential
            ):
                raise UsageError(
                    f"credentials[{name!r}]: a text, a function of the context, upstream(…) or "
                    f"inbound_token(…), not {type(one).__name__}"
                )

    def check_inbound(self, auth: Any) -> None:
        """See that a token that is passed on is for the API: the API is this resource server.

        Args:
            auth: who authorizes the server's requests.

        Raises:
            UsageError: it is for something else, or nobody checks it.
        """
        # spec 2026-07-28 basic/authorization/security-considerations#access-token-privilege-restriction:
        # MUST NOT pass through a token to another resource
        for name, one in self._given.items():
            if (
                isinstance(one, InboundCredential)
                and getattr(auth, "resource", None) != one.audience
            ):
                raise UsageError(
                    f"credentials[{name!r}]: the caller's token is for this server, and inbound_token "
                    f"says that the API is {one.audience!r}: they must be one resource "
                    "(auth=ResourceAuth(that, …)); else use upstream(…)"
                )

    def choose(self, operation: Operation) -> tuple[SecurityScheme, ...] | None:
        """The schemes that a request of an operation takes; None where there are none to be had.

        Of the alternatives the first one counts that has a credential for each scheme.
        """
        for need in operation.security:
            if need and all(name in self._given for name in need):
                return tuple(self._schemes[name] for name in need)
        if not operation.security or any(not need for need in operation.security):
            return ()
        return None

    def find_missing(self, operations: Iterable[Operation]) -> list[str]:
        """The schemes that operations need, and that there is no credential for."""
        if self._headers is not None:
            return []
        missing: dict[str, None] = {}
        for one in operations:
            if self.choose(one) is None:
                missing.update((name, None) for need in one.security for name in need)
        return [name for name in missing if name not in self._given]

    async def apply(
        self,
        operation: Operation,
        request: PreparedRequest,
        context: "Context",
        refused: Collection[Secret] = (),
    ) -> tuple[PreparedRequest, Sequence[Secret]]:
        """Add the credentials of a call to its request; gives also what of them is secret.

        Args:
            operation: what is asked for.
            request: without credentials.
            context: of the call.
            refused: what the API refused before: a provider's token is renewed.

        Raises:
            ToolError: a credential cannot be sent.
        """
        secrets: list[Secret] = []
        if self._headers is not None:
            made = await _wait_for(self._headers(context))
            for name, value in made.items():
                secret = Secret(value)
                secrets += [secret] if _is_secret(name, value) else []
                request = _add_header(request, name, reveal(secret))
        for scheme in self.choose(operation) or ():
            secret = await self._get(scheme, context, request.url, refused)
            secrets += (secret, Secret(scheme.place(reveal(secret))))
            request = _add(request, scheme, reveal(secret))
        return request, secrets

    def can_renew(self, operation: Operation) -> bool:
        """Whether there may be another credential where the API refuses one of an operation."""
        schemes = self.choose(operation) or ()
        return any(isinstance(self._given[one.name], UpstreamCredential) for one in schemes)

    async def _get(
        self, scheme: SecurityScheme, context: "Context", url: str, refused: Collection[Secret]
    ) -> Secret:
        given = self._given[scheme.name]
        if isinstance(given, Secret):
            return given
        if isinstance(given, UpstreamCredential):
            api = await context.upstream(given.name)
            found: Secret = await api.access_token(url)
            return await api.access_token(url, refused=found) if found in refused else found
        if isinstance(given, InboundCredential):
            return find_inbound_token(context, given)
        made = await _wait_for(given(context))
        if not isinstance(made, str | Secret):
            raise ToolError(f"there is no credential for {scheme.name}")
        return Secret(made)


def _list_reserved(schemes: Iterable[SecurityScheme]) -> frozenset[tuple[str, str]]:
    """The parameters that credentials fill, whether there are any or not."""
    return frozenset(
        (one.carrier, one.key.lower() if one.carrier == "header" else one.key) for one in schemes
    )


def find_inbound_token(context: "Context", wanted: InboundCredential) -> Secret:
    """The token that the caller presented, where its audience is the API's.

    Raises:
        ToolError: there is none, or it is for something else.
    """
    principal, reveal_credential = (
        context.principal,
        getattr(context.headers, "reveal_credential", None),
    )
    if principal is None or reveal_credential is None:
        raise ToolError("this call takes an access token, and the request has none")
    scheme, _, token = reveal_credential("authorization").partition(" ")
    if scheme.lower() != "bearer" or principal.jkt is not None:
        raise ToolError("the access token of this request is bound to a key, and not passed on")
    audience = principal.claims.get("aud") or ()
    if wanted.audience not in ([audience] if isinstance(audience, str) else audience):
        raise ToolError("the access token of this request is not for the API, and not passed on")
    return Secret(token.strip())


def fix_headers(headers: "Mapping[str, HeaderValue]") -> HeadersOf:
    """A function that gives the headers of a mapping for a call; values that are texts are secrets."""
    kept = {name: one if callable(one) else Secret(one) for name, one in headers.items()}

    async def make_headers(context: "Context") -> dict[str, str]:
        return {
            name: one.reveal() if isinstance(one, Secret) else await _wait_for(one(context))
            for name, one in kept.items()
        }

    return make_headers


async def _wait_for(value: Any) -> Any:
    """What a function of the author gave, which may have to be waited for."""
    return await value if inspect.isawaitable(value) else value


def _add(request: PreparedRequest, scheme: SecurityScheme, text: str) -> PreparedRequest:
    value = scheme.place(text)
    if scheme.carrier == "header":
        return _add_header(request, scheme.key, value)
    if scheme.carrier == "cookie":
        encoded = value if COOKIE_TEXT.fullmatch(value) else encode_text(value)
        return structs.replace(
            request, cookies=(*request.cookies, (encode_text(scheme.key), encoded))
        )
    mark = "&" if "?" in request.url else "?"
    return structs.replace(
        request, url=f"{request.url}{mark}{encode_text(scheme.key)}={encode_text(value)}"
    )


def _add_header(request: PreparedRequest, name: str, value: str) -> PreparedRequest:
    """Add a header in the place of any other of its name.

    Raises:
        UsageError: it is none, or one of the connection; the value is not told.
    """
    if not HEADER_NAME.fullmatch(name) or name.lower() in CONNECTION_HEADERS:
        raise UsageError(f"{name[:80]!r} is no header that credentials may set")
    if not HEADER_TEXT.fullmatch(value):
        raise UsageError(
            f"the credential in the header {name} has characters that are not allowed in a header"
        )
    kept = {k: v for k, v in request.headers.items() if k.lower() != name.lower()}
    return structs.replace(request, headers={**kept, name: value})


def hide_secrets(answer: ApiResponse, secrets: Iterable[Secret]) -> ApiResponse:
    """An answer of the API without the credentials that it was sent: some APIs repeat them.

    They may be spelt otherwise: in percent-encoding, or with the escapes of JSON.
    """
    forms = _list_forms(secrets)
    if not forms:
        return answer
    headers = {name: _hide_text(value, forms) for name, value in answer.headers.items()}
    body = answer.body
    if is_json_type(clean_media_type(headers.get("content-type", ""))):
        with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            body = msgspec.json.encode(msgspec.json.decode(body))  # without needless escapes
        for form in forms:
            body = _hide_in_json(body, form)
    else:
        for form in forms:
            for codec in ("utf-8", "utf-16-le", "utf-16-be"):
                body = body.replace(form.encode(codec, "surrogatepass"), HIDDEN.encode(codec))
    return ApiResponse(answer.status, headers, body)


HIDDEN = "[secret]"


def _list_forms(secrets: Iterable[Secret]) -> list[str]:
    """The texts that give a secret away, the longest first."""
    texts: set[str] = set()
    for secret in secrets:
        text = reveal(secret)
        texts |= {text, text.partition(" ")[2], text.partition(":")[2]}  # with Bearer; of Basic
    texts |= {encode_text(text) for text in texts}
    return sorted((t for t in texts if len(t) >= MIN_HIDDEN_CHARS), key=len, reverse=True)


def _hide_text(text: str, forms: Iterable[str]) -> str:
    for form in forms:
        text = text.replace(form, HIDDEN)
    return text


def _hide_in_json(body: bytes, form: str) -> bytes:
    """JSON without a secret; a number that is spelt as it is stays one."""
    spelt = msgspec.json.encode(form)[1:-1]
    if not NUMERIC.fullmatch(form):
        return body.replace(spelt, HIDDEN.encode())
    number = re.escape(spelt)
    found = rb"((?:(?<=[:,\[])|^)%b(?=[,\]}]|$))|(?<![\d.eE+\-])%b(?![\d.eE])" % (number, number)
    return re.sub(found, lambda match: match[1] or HIDDEN.encode(), body)


def _is_secret(name: str, value: str) -> bool:
    """Whether the header of an author is one, or a word such as the version of the API."""
    return bool(SECRET_HEADER.search(name)) or (len(value) >= MIN_OPAQUE_CHARS and " " not in value)


NUMERIC = re.compile(r"[\d.eE+\-]+", re.ASCII)
SECRET_HEADER = re.compile(
    r"auth|cookie|key|token|secret|pass|pin|cred|sess|sign|jwt", re.IGNORECASE
)
MIN_OPAQUE_CHARS = 20
