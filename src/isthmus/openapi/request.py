"""Requests to an API: built of an operation and its arguments, without sending anything."""

import re
import secrets
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

from msgspec import UNSET, Struct

from isthmus.errors import UsageError
from isthmus.openapi.bodies import write_body
from isthmus.openapi.operation import (
    PATH_VARIABLE,
    ApiParameter,
    MediaType,
    Operation,
)
from isthmus.openapi.styles import (
    BadValue,
    Pair,
    encode_text,
    write_content,
    write_cookies,
    write_header,
    write_path_part,
    write_query,
)

MAX_URL_CHARS = 32 * 1024
BASE_PATTERN = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?P<port>:\d{1,5})?"
    r"(?P<path>(?:/[A-Za-z0-9\-._~!$&'()*+,;=:@%]*)*)(?P<query>\?[A-Za-z0-9\-._~!$&'()*+,;=:@%/?]*)?",
    re.IGNORECASE | re.ASCII,  # else U+017F is an s, and U+0663 a digit
)
DEFAULT_PORTS = {"http": ":80", "https": ":443"}
MAX_PORTS = 65536
DOTS = re.compile(r"(?:^|/)(?:\.|%2e){1,2}(?=/|$)", re.IGNORECASE)


class BaseUrl(Struct, frozen=True):
    """The URL that the paths of an API are below.

    Attributes:
        origin: scheme, host and port; the port only where it is not the scheme's own.
        path: what stands before each path, without a slash at its end.
    """

    origin: str
    path: str = ""

    def __str__(self) -> str:
        return f"{self.origin}{self.path}"


class RequestValues(Struct, frozen=True):
    """The arguments of a request by what they are for.

    Attributes:
        parameters: by where they stand and what the API calls them: ``("query", "limit")``.
        body: the value of the body; UNSET for none.
        media_type: in which the body is written; None where there is none.
    """

    parameters: Mapping[tuple[str, str], Any] = {}
    body: Any = UNSET
    media_type: MediaType | None = None


class PreparedRequest(Struct, frozen=True):
    """A request that is ready to be sent.

    Attributes:
        method: of HTTP.
        url: the whole URL, in ASCII.
        headers: by name, as the document spells it.
        body: None for none.
        cookies: pairs that become the header ``Cookie``; credentials may be added to them.
        template: of the path; who serves it can see that no other operation is meant.
    """

    method: str
    url: str
    headers: Mapping[str, str] = {}
    body: bytes | None = None
    cookies: tuple[Pair, ...] = ()
    template: str = ""

    def all_headers(self) -> dict[str, str]:
        """The headers with that of the cookies."""
        if not self.cookies:
            return {**self.headers}
        return {**self.headers, "Cookie": "; ".join(f"{k}={v}" for k, v in self.cookies)}


def parse_base_url(url: str) -> BaseUrl:
    """Parse the URL that an API is at.

    Raises:
        UsageError: it is no absolute URL of HTTP, or has a user, a query or a fragment in it.
    """
    found = BASE_PATTERN.fullmatch(url.strip())
    if found is None or found["query"]:
        raise UsageError(
            f"{url[:200]!r} is no base URL: write https://host[:port][/path], without a user, query "
            "or fragment"
        )
    scheme, host = found["scheme"].lower(), found["host"].lower()
    number = int((found["port"] or DEFAULT_PORTS[scheme])[1:])
    if not 0 < number < MAX_PORTS:
        raise UsageError(f"{url[:200]!r} has an invalid port: use 1 to {MAX_PORTS - 1}")
    port = "" if f":{number}" == DEFAULT_PORTS[scheme] else f":{number}"
    path = found["path"].rstrip("/")
    if DOTS.search(path):
        raise UsageError(f"{url[:200]!r} has '.' or '..' in its path: write it as it is meant")
    return BaseUrl(f"{scheme}://{host}{port}", path)


def build_request(
    operation: Operation,
    values: RequestValues,
    base: BaseUrl,
    *,
    reserved: Iterable[tuple[str, str]] = (),
    boundary: str = "",
) -> PreparedRequest:
    """Build a request.

    Nothing of an argument can become another part of it: each is encoded for its own place, and
    what cannot be is refused.

    Args:
        operation: what is asked for.
        values: the arguments.
        base: where the API is.
        reserved: parameters that credentials fill, as ``("query", "api_key")``: no argument sets them.
        boundary: between the parts of a multipart body; made up if not given.

    Raises:
        BadValue: an argument cannot be sent.
    """
    taken = set(reserved)
    query = _build_query(operation, values, taken)
    url = f"{base}{_build_path(operation, values)}{f'?{query}' if query else ''}"
    if len(url) > MAX_URL_CHARS:
        raise BadValue(f"the URL would have {len(url)} characters, and may have {MAX_URL_CHARS}")
    headers: dict[str, str] = {"Accept": list_accepted(operation)}
    for parameter, value in _list_given(operation, values, "header"):
        if ("header", parameter.name.lower()) not in taken:
            headers[parameter.name] = _name_fault(parameter, write_header, value)
    cookies = _build_pairs(operation, values, "cookie", write_cookies, taken)
    body = None
    if values.body is not UNSET and values.media_type is not None:
        boundary = boundary or f"isthmus-{secrets.token_hex(16)}"
        headers["Content-Type"], body = write_body(values.media_type, values.body, boundary)
    return PreparedRequest(operation.method, url, headers, body, tuple(cookies), operation.path)


def _build_path(operation: Operation, values: RequestValues) -> str:
    """The path, each variable of it filled in."""
    parts = {
        parameter.name: _name_fault(parameter, write_path_part, value)
        for parameter, value in _list_given(operation, values, "path")
    }
    template = operation.path.partition("#")[0]  # a fragment tells operations apart: it is not sent
    missing = [name for name in PATH_VARIABLE.findall(template) if name not in parts]
    if missing:
        raise BadValue(f"{missing[0]}: it is missing, and a part of the path")
    at = 0
    pieces: list[str] = []
    for found in PATH_VARIABLE.finditer(template):
        pieces += (encode_text(template[at : found.start()], PATH_SIGNS), parts[found[1]])
        at = found.end()
    path = "".join([*pieces, encode_text(template[at:], PATH_SIGNS)])
    # two variables side by side may be dots together
    if DOTS.search(path):
        raise BadValue("'.' and '..' as parts of a path are not sent")
    return path


PATH_SIGNS = "/:@!$&'()*+,;=%"  # of a template, which the author of the document wrote


def _build_query(operation: Operation, values: RequestValues, taken: set[tuple[str, str]]) -> str:
    whole = [*_list_given(operation, values, "querystring")]
    pairs = _build_pairs(operation, values, "query", write_query, taken)
    for parameter, value in whole:  # OpenAPI 3.2 4.12.1: the whole query string
        if isinstance(value, Mapping) and parameter.media_type.endswith("urlencoded"):
            for key, one in value.items():
                items = one if isinstance(one, list) else [one]
                pairs += ((encode_text(key), encode_text(str(item))) for item in items)
        else:
            return encode_text(write_content(parameter, value))
    return "&".join(f"{key}={text}" for key, text in pairs)


def _build_pairs(
    operation: Operation,
    values: RequestValues,
    location: str,
    write: Callable[[ApiParameter, Any], list[Pair]],
    taken: set[tuple[str, str]],
) -> list[Pair]:
    """The pairs of all parameters in a place; none can have the name of another one."""
    declared = {p.name: p for p in operation.parameters if p.location == location}
    own = {encode_text(name): name for name in declared}
    # some servers read the names of a query without their case
    closed = {encode_text(name).lower() for where, name in taken if where == location}
    pairs: list[Pair] = []
    used: dict[str, str] = {}
    for parameter, value in _list_given(operation, values, location):
        if (location, parameter.name) in taken:
            continue
        for key, text in _name_fault(parameter, write, value):
            # the keys of an object that is written member by member are an argument's
            if key.lower() in closed or own.get(key, parameter.name) != parameter.name:
                raise BadValue(f"{parameter.name}: {key!r} is the name of another parameter")
            other = used.setdefault(key, parameter.name)
            if other != parameter.name:
                raise BadValue(
                    f"{parameter.name}: {key!r} is in {other}, too, and could not be told from it"
                )
            pairs.append((key, text))
    return pairs


def _list_given(
    operation: Operation, values: RequestValues, location: str
) -> list[tuple[ApiParameter, Any]]:
    given = values.parameters
    return [
        (one, given[location, one.name])
        for one in operation.parameters
        if one.location == location and given.get((location, one.name), UNSET) is not UNSET
    ]


def _name_fault(
    parameter: ApiParameter, write: Callable[[ApiParameter, Any], Any], value: Any
) -> Any:
    """Write a value; what is wrong with it is told with the parameter's name."""
    try:
        return write(parameter, value)
    except BadValue as flaw:
        _raise_named(parameter.name, flaw)


def _raise_named(name: str, flaw: BadValue) -> NoReturn:
    text = str(flaw)
    raise flaw if text.startswith(f"{name}:") else BadValue(f"{name}: {text}") from None


def list_accepted(operation: Operation) -> str:
    """The header ``Accept``: what a success may be, JSON first."""
    names: dict[str, None] = {}
    for answer in operation.answers:
        if answer.status.startswith("2") or answer.status == "default":
            names.update((media.name, None) for media in answer.media_types if "/" in media.name)
    known = [name for name in names if ACCEPTABLE.fullmatch(name)][:8]
    known.sort(key=lambda name: "json" not in name)
    return ", ".join([*known, "*/*;q=0.1"]) if known else "application/json, */*;q=0.5"


ACCEPTABLE = re.compile(r"[\w.+\-*]+/[\w.+\-*]+", re.ASCII)
