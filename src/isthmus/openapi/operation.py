"""Operations of an OpenAPI document: method, path, parameters, bodies, responses, security, servers.

Schemas in them are as the document has them, with its references; the rest is followed and complete.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from isthmus.openapi.document import Document, DocumentError, Place, escape_step

Location: TypeAlias = Literal["path", "query", "header", "cookie", "querystring"]

LOCATIONS: frozenset[str] = frozenset({"path", "query", "header", "cookie", "querystring"})
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
DEFAULT_STYLES: Mapping[str, str] = {
    "path": "simple", "header": "simple", "query": "form", "cookie": "form", "querystring": "form",
}  # fmt: skip
STYLES: Mapping[str, frozenset[str]] = {
    "path": frozenset({"simple", "label", "matrix"}),
    "header": frozenset({"simple"}),
    "query": frozenset({"form", "spaceDelimited", "pipeDelimited", "deepObject"}),
    "cookie": frozenset({"form", "cookie"}),
    "querystring": frozenset({"form"}),
}

# a header parameter of these names means nothing (OpenAPI 3.1 4.8.12.2.1); they are set elsewhere,
# and so is the length of a body
IGNORED_HEADERS = frozenset({"accept", "content-type", "authorization", "content-length"})

# headers that belong to the connection, say who sends, or change what the request is
FORBIDDEN_HEADERS = frozenset({
    *("host", "content-length", "content-encoding", "transfer-encoding", "connection", "keep-alive"),
    *("upgrade", "te", "trailer", "expect", "cookie", "via", "forwarded", "x-real-ip"),
    *("x-http-method", "x-http-method-override", "x-method-override", "x-original-url"),
    *("x-rewrite-url", "origin", "http2-settings"),
})  # fmt: skip
FORBIDDEN_PREFIXES = ("proxy-", "x-forwarded-", "sec-", ":")
HEADER_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
METHOD_NAME = re.compile(r"[A-Za-z][A-Za-z\-]{0,31}")
PATH_VARIABLE = re.compile(r"\{([^{}/]+)\}")


class ApiParameter(Struct, frozen=True, kw_only=True):
    """A parameter of an operation.

    Attributes:
        name: as the API has it.
        location: where it stands (``in``).
        schema: of its value, as the document has it.
        required: whether it must be there.
        style: how a value is written.
        explode: whether each member of a list or an object is written by itself.
        allow_reserved: whether signs with a meaning in URLs are written as they are.
        media_type: a value of this type instead of a style; empty for none.
        description: for a model.
        deprecated: it should not be used any more.
    """

    name: str
    location: Location
    schema: Place
    required: bool = False
    style: str = "simple"
    explode: bool = False
    allow_reserved: bool = False
    media_type: str = ""
    description: str = ""
    deprecated: bool = False


class PartEncoding(Struct, frozen=True, kw_only=True):
    """Encoding of one member of a form (``encoding``).

    Attributes:
        content_type: of the part, or of the value; empty for the usual one.
        style: how its value is written, where the document says so; else empty.
        explode: whether each item of it is written by itself.
        allow_reserved: whether signs with a meaning in URLs are written as they are.
    """

    content_type: str = ""
    style: str = ""
    explode: bool = True
    allow_reserved: bool = False


class MediaType(Struct, frozen=True, kw_only=True):
    """A media type of a body or a response.

    Attributes:
        name: as the document has it, in lower case and without parameters.
        schema: of the value; its node is None where there is none.
        encodings: of members of a form.
        files: members of a form that are bytes.
    """

    name: str
    schema: Place
    encodings: Mapping[str, PartEncoding] = {}
    files: frozenset[str] = frozenset()


class Body(Struct, frozen=True, kw_only=True):
    """Body of a request.

    Attributes:
        media_types: the media types that the API takes, in the document's order.
        required: whether there must be one.
        description: for a model.
        pointer: where it stands.
    """

    media_types: tuple[MediaType, ...]
    required: bool = False
    description: str = ""
    pointer: str = "#"


class ApiAnswer(Struct, frozen=True, kw_only=True):
    """A response that an operation may have.

    Attributes:
        status: ``200``, ``2XX`` or ``default``.
        description: what it means.
        media_types: of its body.
    """

    status: str
    description: str = ""
    media_types: tuple[MediaType, ...] = ()


SecurityNeed: TypeAlias = Mapping[str, Sequence[str]]
"""Security schemes that are needed together, by name, with their scopes."""


class Operation(Struct, frozen=True, kw_only=True):
    """An operation of an API.

    Attributes:
        method: of HTTP, in upper case.
        path: its template, as the document has it.
        pointer: where it stands.
        id: its ``operationId``; empty for none.
        tags: what it is about.
        summary: one line about it.
        description: more about it.
        parameters: its own and those of its path, those of headers that may not be set left out.
        body: of the request; None for none.
        answers: the responses that it may have.
        security: alternatives of what a request needs; an empty one is for everybody.
        servers: URLs that are its own or its path's, variables filled in; empty for the document's.
        deprecated: it should not be used any more.
    """

    method: str
    path: str
    pointer: str
    id: str = ""
    tags: tuple[str, ...] = ()
    summary: str = ""
    description: str = ""
    parameters: tuple[ApiParameter, ...] = ()
    body: Body | None = None
    answers: tuple[ApiAnswer, ...] = ()
    security: tuple[SecurityNeed, ...] = ()
    servers: tuple[str, ...] = ()
    deprecated: bool = False

    @property
    def title(self) -> str:
        """Method and path, for messages."""
        return f"{self.method} {self.path}"


class OperationHead(Struct, frozen=True):
    """An operation that was not read yet: method, path, and where it and its path stand."""

    method: str
    path: str
    place: Place
    path_item: Place

    @property
    def id(self) -> str:
        """Its ``operationId``; empty for none."""
        return self.place.text("operationId").strip()

    @property
    def tags(self) -> tuple[str, ...]:
        """Its tags."""
        found = self.place.node.get("tags")
        return tuple(map(str, found)) if isinstance(found, list) else ()


Refuse: TypeAlias = Callable[[DocumentError], None]
"""Told of what cannot be had."""


def list_operations(document: Document, refuse: Refuse | None = None) -> Iterator[OperationHead]:
    """List the operations of a document, before they are read.

    Args:
        document: the document.
        refuse: told of a path that cannot be read; None where that is an error.

    Raises:
        DocumentError: there are no paths at all, or they are none.
    """
    paths = document.start.mapping("paths")
    for path in paths.node:
        place = paths.member(path)
        if not isinstance(path, str) or path.startswith("x-"):
            continue
        try:
            if not path.startswith("/"):
                raise DocumentError(place.pointer, "a path begins with /")  # noqa: TRY301 - told below like the rest
            item = document.follow(place)
            if not isinstance(item.node, Mapping):
                raise DocumentError(place.pointer, "a path must be an object")  # noqa: TRY301 - as above
            heads = [*_list_methods(path, item, place.pointer)]
        except DocumentError as error:
            if refuse is None:
                raise
            refuse(error)
            continue
        yield from heads


def _list_methods(path: str, item: Place, pointer: str) -> Iterator[OperationHead]:
    more = item.mapping("additionalOperations")
    found = [(key, item.member(key)) for key in METHODS if key in item.node]
    found += [(key, more.member(key)) for key in more.node]
    for key, place in found:
        if not isinstance(place.node, Mapping) or not METHOD_NAME.fullmatch(key):
            raise DocumentError(place.pointer, "an operation must be an object under a method")
        at = place.pointer.removeprefix(item.pointer)
        yield OperationHead(key.upper(), path, Place(place.node, f"{pointer}{at}"), item)


def read_operation(document: Document, head: OperationHead) -> Operation:
    """Read an operation.

    Raises:
        DocumentError: it is malformed, or needs what cannot be sent.
    """
    place = head.place
    if head.method in {"TRACE", "CONNECT"}:
        raise DocumentError(
            place.pointer, f"{head.method} is not sent: its answer may repeat credentials"
        )
    parameters = read_parameters(document, head)
    _check_path(head, parameters)
    described = place.node.get("description", head.path_item.node.get("description"))
    summary = place.text("summary") or head.path_item.text("summary")
    security = place if "security" in place.node else document.start
    servers = place if "servers" in place.node else head.path_item
    return Operation(
        method=head.method,
        path=head.path,
        pointer=place.pointer,
        id=head.id,
        tags=head.tags,
        summary=summary,
        description=described if isinstance(described, str) else "",
        parameters=parameters,
        body=_read_body(document, head),
        answers=tuple(_read_answers(document, place)),
        security=tuple(_read_security(security)),
        servers=tuple(fill_server_url(one, {}) for one in servers.items("servers")),
        deprecated=place.node.get("deprecated") is True,
    )


# Parameters


def read_parameters(document: Document, head: OperationHead) -> tuple[ApiParameter, ...]:
    """Read the parameters of an operation and of its path, those of the operation first.

    Raises:
        DocumentError: one is malformed, or must be sent and cannot be.
    """
    found: dict[tuple[str, str], ApiParameter] = {}
    for source in (head.path_item, head.place):
        for one in source.items("parameters"):
            parameter = _read_parameter(document, document.follow(one))
            if parameter is not None:
                found[parameter.location, parameter.name] = parameter
    return tuple(found.values())


def _read_parameter(document: Document, place: Place) -> ApiParameter | None:
    if not isinstance(place.node, Mapping):
        raise DocumentError(place.pointer, "a parameter must be an object")
    name, location = place.node.get("name"), place.node.get("in")
    if not isinstance(name, str) or not name or location not in LOCATIONS:
        raise DocumentError(place.pointer, 'a parameter needs "name", and "in": path, query, …')
    required = place.node.get("required") is True or location == "path"
    if location == "header" and not _is_settable(place, name, required=required):
        return None
    style = place.node.get("style", DEFAULT_STYLES[location])
    content = place.mapping("content")
    media_type, schema = "", place.member("schema")
    if content.node:
        media_type = next(iter(content.node))
        schema = document.follow(content.member(media_type)).member("schema")
    elif style not in STYLES[location]:
        raise DocumentError(
            f"{place.pointer}/style",
            f"{style!r} is no style for in: {location}; {', '.join(sorted(STYLES[location]))} are",
        )
    explode = place.node.get("explode")
    return ApiParameter(
        name=name,
        location=location,
        schema=schema,
        required=required,
        style=style,
        explode=explode if isinstance(explode, bool) else style in {"form", "cookie"},
        allow_reserved=place.node.get("allowReserved") is True,
        media_type=clean_media_type(media_type),
        description=place.text("description"),
        deprecated=place.node.get("deprecated") is True,
    )


def _is_settable(place: Place, name: str, *, required: bool) -> bool:
    """Whether a header may be set by an argument.

    Raises:
        DocumentError: it may not, and must.
    """
    low = name.lower()
    if low in IGNORED_HEADERS:
        return False
    if HEADER_NAME.fullmatch(name) and not is_forbidden_header(low):
        return True
    if required:
        raise DocumentError(place.pointer, f"the header {name!r} cannot be set by an argument")
    return False


def is_forbidden_header(low: str) -> bool:
    """Whether a header, in lower case, is set by nobody but the sender."""
    low = low.replace("_", "-")  # CGI and WSGI have one name for both
    return low in FORBIDDEN_HEADERS or low.startswith(FORBIDDEN_PREFIXES)


def _check_path(head: OperationHead, parameters: tuple[ApiParameter, ...]) -> None:
    """See that each variable of a path has its parameter.

    Raises:
        DocumentError: one has none.
    """
    known = {p.name for p in parameters if p.location == "path"}
    missing = [name for name in PATH_VARIABLE.findall(head.path) if name not in known]
    if missing:
        raise DocumentError(
            head.place.pointer,
            f"the path has {{{missing[0]}}}, and no parameter in: path of this name",
        )


# Bodies and responses


def _read_body(document: Document, head: OperationHead) -> Body | None:
    if head.place.node.get("requestBody") is None:
        return None
    place = document.follow(head.place.member("requestBody"))
    if not isinstance(place.node, Mapping):
        raise DocumentError(place.pointer, "a requestBody must be an object")
    media_types = tuple(_read_media_types(document, place))
    if not media_types:
        return None
    return Body(
        media_types=media_types,
        required=place.node.get("required") is True,
        description=place.text("description"),
        pointer=place.pointer,
    )


def _read_answers(document: Document, place: Place) -> Iterator[ApiAnswer]:
    responses = place.mapping("responses")
    for status in responses.node:
        if str(status).startswith("x-"):
            continue
        found = document.follow(responses.member(status))
        if isinstance(found.node, Mapping):
            yield ApiAnswer(
                status=str(status).upper() if str(status) != "default" else "default",
                description=found.text("description"),
                media_types=tuple(_read_media_types(document, found)),
            )


def _read_media_types(document: Document, place: Place) -> Iterator[MediaType]:
    content = place.mapping("content")
    for name in content.node:
        media = document.follow(content.member(name))
        if not isinstance(media.node, Mapping):
            raise DocumentError(media.pointer, "a media type must be an object")
        schema = media.member("schema")
        yield MediaType(
            name=clean_media_type(name),
            schema=schema,
            encodings=_read_encodings(media),
            files=frozenset(_find_files(document, schema)),
        )


def _read_encodings(media: Place) -> Mapping[str, PartEncoding]:
    encodings = media.mapping("encoding")
    found = {}
    for name in encodings.node:
        one = encodings.mapping(name)
        style = one.text("style")
        explode = one.node.get("explode")
        found[name] = PartEncoding(
            content_type=one.text("contentType"),
            style=style,
            explode=explode if isinstance(explode, bool) else style in {"", "form"},
            allow_reserved=one.node.get("allowReserved") is True,
        )
    return found


def _find_files(document: Document, schema: Place) -> Iterator[str]:
    """The members of a form that are bytes, or lists of them."""
    todo, seen = [schema], set[int]()
    while todo:
        place = document.follow(todo.pop())
        node = place.node
        if not isinstance(node, Mapping) or id(node) in seen:
            continue
        seen.add(id(node))
        branches = node.get("allOf")
        if isinstance(branches, list):
            todo += [Place(one, place.pointer) for one in branches]
        members = place.member("properties")
        for name in members.node if isinstance(members.node, Mapping) else {}:
            member = document.follow(members.member(name))
            if isinstance(member.node, Mapping) and member.node.get("type") == "array":
                member = document.follow(member.member("items"))
            if is_binary(member.node):
                yield name


def is_binary(schema: Any) -> bool:
    """Whether a schema, in a form or as a body, is of bytes and not of a text."""
    if not isinstance(schema, Mapping):
        return False
    if schema.get("type") == "file":
        return True
    if schema.get("format") == "binary":
        return schema.get("type") in (None, "string") or "string" in schema.get("type", ())
    media = schema.get("contentMediaType")
    return isinstance(media, str) and "contentEncoding" not in schema and not is_text_type(media)


def is_text_type(name: str) -> bool:
    """Whether a media type is of texts."""
    return name.startswith("text/") or is_json_type(name) or name.endswith(("/xml", "+xml"))


def is_json_type(name: str) -> bool:
    """Whether a media type is JSON."""
    return name in {"application/json", "text/json"} or name.endswith("+json")


def clean_media_type(name: str) -> str:
    """A media type in lower case and without its parameters."""
    return name.partition(";")[0].strip().lower()


# Security and servers


def _read_security(place: Place) -> Iterator[SecurityNeed]:
    for one in place.items("security"):
        if not isinstance(one.node, Mapping):
            raise DocumentError(one.pointer, "a security requirement must be an object")
        yield {
            str(name): tuple(map(str, scopes)) if isinstance(scopes, list) else ()
            for name, scopes in one.node.items()
        }


SERVER_VARIABLE = re.compile(r"\{([^{}]+)\}")


def fill_server_url(server: Place, given: Mapping[str, str]) -> str:
    """A server's URL with its variables filled in.

    Args:
        server: the server object.
        given: values of variables, by name; the others have their defaults.

    Raises:
        DocumentError: it has no URL, or a variable has no value, or none that it may have.
    """
    if not isinstance(server.node, Mapping) or not isinstance(server.node.get("url"), str):
        raise DocumentError(server.pointer, 'a server needs a "url"')
    variables = server.mapping("variables")

    def fill(match: re.Match[str]) -> str:
        name = match[1]
        variable = variables.mapping(name)
        value = given.get(name, variable.node.get("default"))
        allowed = variable.node.get("enum")
        if not isinstance(value, str | int):
            raise DocumentError(
                f"{server.pointer}/url",
                f"{{{name}}} has no value: server_variables={{{name!r}: …}}",
            )
        if isinstance(allowed, list) and allowed and value not in allowed:
            raise DocumentError(
                f"{variables.pointer}/{escape_step(name)}",
                f"{value!r} is none of {', '.join(map(str, allowed))}",
            )
        return str(value)

    return SERVER_VARIABLE.sub(fill, server.text("url"))
