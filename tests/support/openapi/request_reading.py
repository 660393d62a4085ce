"""Requests read as an OpenAPI document describes them: the way back from bytes to arguments.

It is strict: what no parameter claims, what is not encoded as it must be and what does not fit its
style is a fault, not something to be overlooked.
"""

import base64
import json
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote

from support.openapi.described_apis import Described, DescribedOperation

SEPARATORS = {"spaceDelimited": r"%20|\+| ", "pipeDelimited": r"%7C|\||%7c", "tab": r"%09"}
OWN_HEADERS = {
    "accept", "accept-encoding", "content-type", "content-length", "host", "user-agent", "cookie",
    "authorization", "connection",
}  # fmt: skip


IGNORED_HEADERS = {
    "accept",
    "content-type",
    "authorization",
    "content-length",
}  # OpenAPI 3.1 4.8.12.2.1


class Unreadable(AssertionError):
    """A request is not what the document says."""


@dataclass
class Arrived:
    """A request as it arrived, taken apart.

    Attributes:
        values: arguments by place and name.
        body: the value of the body; None for none.
        media: the media type of the body; empty for none.
    """

    values: dict[tuple[str, str], Any] = field(default_factory=dict)
    body: Any = None
    media: str = ""


class Text(str):
    """A text whose type the schema does not settle."""

    __slots__ = ()


def read_request(operation: DescribedOperation, scope: dict[str, Any], body: bytes) -> Arrived:
    """Take a request apart.

    Args:
        operation: what was called.
        scope: of ASGI.
        body: all of it.

    Raises:
        Unreadable: it is not what the document says.
    """
    if scope["method"] != operation.method:
        raise Unreadable(f"the method is {scope['method']}, not {operation.method}")
    headers = [(k.decode("latin-1").lower(), v.decode("latin-1")) for k, v in scope["headers"]]
    arrived = Arrived()
    _read_path(operation, scope["raw_path"].decode("ascii"), arrived)
    pairs = _split_query(scope["query_string"].decode("ascii"))
    _read_query(operation, pairs, arrived)
    _read_headers(operation, headers, arrived)
    _read_cookies(operation, headers, arrived)
    _read_body(operation, dict(headers), body, arrived)
    return arrived


def scalar(api, schema, text: str) -> Any:
    """The value that a text stands for, as far as the schema settles its type."""
    kinds = api.kinds(schema)
    plain = (kinds or set()) - {"null"}
    if plain in ({"string"}, {"file"}):
        return text
    if (
        plain
        and plain <= {"integer", "number"}
        and re.fullmatch(r"-?\d+(\.\d+)?([eE][+-]?\d+)?", text)
    ):
        return json.loads(text)
    if plain == {"boolean"} and text in ("true", "false"):
        return text == "true"
    return Text(text)


def _member(api, schema, text: str) -> Any:
    """A value within a list or an object: JSON where it is a list or an object itself."""
    kinds = api.kinds(schema) or set()
    if kinds & {"object", "array"} and text[:1] in "{[":
        return json.loads(text)
    return scalar(api, schema, text)


def build(parameter_api, schema, tokens: list[str], pairs: bool, decode=unquote) -> Any:
    """A list or an object of its pieces.

    Args:
        parameter_api: of the document.
        schema: of the whole.
        tokens: the pieces, still encoded.
        pairs: ``key=value``, and not key and value in turn.
        decode: takes the encoding off a piece.
    """
    kinds = parameter_api.kinds(schema) or set()
    if tokens == [""] and kinds == {"object"}:
        return {}
    if "object" in kinds and "array" not in kinds:
        if pairs:
            two = [token.partition("=")[::2] for token in tokens]
        else:
            if len(tokens) % 2:
                raise Unreadable(f"an object needs keys and values in turn: {tokens}")
            two = list(zip(tokens[::2], tokens[1::2], strict=True))
        members = parameter_api.members(schema)
        other = _rest(parameter_api, schema)
        return {
            decode(k): _member(parameter_api, members.get(decode(k), other), decode(v))
            for k, v in two
        }
    items = parameter_api.items(schema)
    return [_member(parameter_api, items, decode(token)) for token in tokens]


def _rest(api, schema):
    found = api.follow(schema)
    rest = found.get("additionalProperties") if isinstance(found, dict) else None
    return rest if isinstance(rest, dict) else {}


def _is_compound(api, schema):
    kinds = api.kinds(schema) or set()
    return bool(kinds & {"object", "array"})


# Paths


def _read_path(operation, raw, arrived):
    path = operation.path.partition("#")[0].partition("?")[0]
    known = {one.name: one for one in operation.parameters if one.place == "path"}
    pattern, names, at = "", [], 0
    for found in re.finditer(r"\{([^{}/]+)\}", path):
        pattern += _literal(path[at : found.start()]) + f"(?P<g{len(names)}>[^/]*)"
        names.append(found[1])
        at = found.end()
    pattern += _literal(path[at:])
    match = re.fullmatch(_literal(operation.base) + pattern, raw)
    if match is None:
        raise Unreadable(f"the path {raw!r} is not {operation.base}{operation.path}")
    for number, name in enumerate(names):
        parameter = known[name]
        value = _path_value(operation.api, parameter, match[f"g{number}"])
        if arrived.values.setdefault(("path", name), value) != value:
            raise Unreadable(f"{name} stands in the path twice, with two values")


def _literal(text):
    signs = [
        f"(?:{re.escape(sign)}|{re.escape(quote(sign, safe=''))})" if not sign.isalnum() else sign
        for sign in text
    ]
    return "".join(signs)


def _path_value(api, one: Described, text):
    if one.media:
        return json.loads(unquote(text))
    if one.style == "matrix":
        return _matrix_value(api, one, text)
    if one.style == "label":
        if not text.startswith("."):
            raise Unreadable(f"a label begins with a dot: {text!r}")
        text = text[1:]
    if not _is_compound(api, one.schema):
        return scalar(api, one.schema, unquote(text))
    mark = "." if one.style == "label" and one.explode else ","
    return build(api, one.schema, text.split(mark), one.explode)


def _matrix_value(api, one, text):
    if not text.startswith(";"):
        raise Unreadable(f"a matrix begins with a semicolon: {text!r}")
    pieces, compound = text[1:].split(";"), _is_compound(api, one.schema)
    if compound and one.explode:
        objects = api.kinds(one.schema) == {"object"}
        tokens = pieces if objects else [_named(one.name, piece) for piece in pieces]
        return build(api, one.schema, tokens, pairs=objects)
    if len(pieces) != 1:
        raise Unreadable(f"one value has one piece: {text!r}")
    text = _named(one.name, pieces[0])
    if compound:
        return build(api, one.schema, text.split(","), pairs=False)
    return scalar(api, one.schema, unquote(text))


def _named(name, piece):
    key, _, value = piece.partition("=")
    if unquote(key) != name:
        raise Unreadable(f"{piece!r} is not {name}=…")
    return value


# Queries and cookies


def _split_query(text):
    if re.search(r"[^A-Za-z0-9\-._~!$&'()*,;=:@/?%\[\]|]", text):
        raise Unreadable(f"the query is not encoded: {text!r}")
    return [(unquote(k), v) for k, _, v in (one.partition("=") for one in text.split("&")) if k]


def _read_query(operation, pairs, arrived):
    whole = [one for one in operation.parameters if one.place == "querystring"]
    if whole:
        raw = "&".join(f"{k}={v}" if v else k for k, v in pairs)
        arrived.values["querystring", whole[0].name] = json.loads(unquote(raw))
        return
    known = [one for one in operation.parameters if one.place == "query"]
    left = _read_pairs(operation.api, known, pairs, "query", arrived, unquote)
    if left:
        raise Unreadable(f"nothing is called {left[0][0]!r} in the query")


def _read_pairs(api, known, pairs, place, arrived, decode):  # noqa: PLR0917 - inside only
    """Give each pair to the parameter that claims it; those left over come back."""
    names = {one.name for one in known}
    left = list(pairs)

    def take(chosen):
        nonlocal left
        found = [pair for pair in left if chosen(pair[0])]
        left = [pair for pair in left if not chosen(pair[0])]
        return found

    spread = []
    for one in known:
        kinds = api.kinds(one.schema) or set()
        if one.style == "deepObject" and not one.media:
            mine = take(lambda key, name=one.name: key == name or key.startswith(f"{name}["))
            if [key for key, _ in mine] == [one.name]:
                arrived.values[place, one.name] = Text(decode(mine[0][1]))
            elif mine:
                arrived.values[place, one.name] = _deep(api, one, mine, decode)
        elif one.style in ("form", "cookie", "spaceDelimited", "pipeDelimited") and (
            "object" in kinds and one.explode and not one.media
        ):
            spread.append(one)
        else:
            mine = take(lambda key, name=one.name: key == name)
            if mine:
                arrived.values[place, one.name] = _flat(api, one, [v for _, v in mine], decode)
    for one in spread:
        members = set(api.members(one.schema))
        only = len(spread) == 1
        mine = take(lambda key, m=members, only=only: key in m or (only and key not in names))
        if mine:
            inner, other = api.members(one.schema), _rest(api, one.schema)
            arrived.values[place, one.name] = {
                key: _member(api, inner.get(key, other), decode(value)) for key, value in mine
            }
    return left


def _flat(api, one, texts, decode):
    if one.media:
        (text,) = texts
        return json.loads(decode(text)) if "json" in one.media else decode(text)
    kinds = api.kinds(one.schema) or set()
    if len(texts) == 1 and kinds - {"array", "object", "null"}:
        compound = kinds & {"array", "object"}
        return Text(decode(texts[0])) if compound else scalar(api, one.schema, decode(texts[0]))
    if not _is_compound(api, one.schema):
        (text,) = texts
        return scalar(api, one.schema, decode(text))
    if one.explode and "array" in kinds:
        return build(api, one.schema, texts, pairs=False, decode=decode)
    (text,) = texts
    tokens = re.split(SEPARATORS.get(one.style, ","), text)
    return build(api, one.schema, tokens, pairs=False, decode=decode)


def _deep(api, one, pairs, decode):
    root: dict[str, Any] = {}
    for key, value in pairs:
        steps = re.findall(r"\[([^\[\]]*)\]", key[len(one.name) :])
        if "".join(f"[{step}]" for step in steps) != key[len(one.name) :]:
            raise Unreadable(f"{key!r} is no key of a deep object")
        node = root
        for step in [*steps[:-1]]:
            node = node.setdefault(step, {})
        node.setdefault(steps[-1] if steps else "", []).append(decode(value))
    return _settle(api, one.schema, root)


def _settle(api, schema, node):
    """The value of what was gathered under keys in brackets."""
    kinds = api.kinds(schema) or set()
    if isinstance(node, list):
        if len(node) == 1 and "array" in kinds and kinds - {"array", "object", "null"}:
            return Text(node[0])
        if "array" in kinds:
            return [scalar(api, api.items(schema), text) for text in node]
        (text,) = node
        return scalar(api, schema, text)
    keys = list(node)
    listed = keys == [""] or keys == [str(at) for at in range(len(keys))]
    if listed and "array" in kinds:
        if keys == [""]:
            inner = node[""]
            texts = inner if isinstance(inner, list) else [inner]
            return [_settle(api, api.items(schema), [text]) for text in texts]
        return [_settle(api, api.items(schema), node[key]) for key in keys]
    members, other = api.members(schema), _rest(api, schema)
    return {key: _settle(api, members.get(key, other), node[key]) for key in keys}


def _read_cookies(operation, headers, arrived):
    lines = [value for name, value in headers if name == "cookie"]
    if len(lines) > 1:
        raise Unreadable("there are two Cookie headers")
    found = [one.partition("=")[::2] for one in lines[0].split("; ")] if lines else []
    if any(re.search(r"[\s\";\\]|[^!-~]", f"{k}{v}") for k, v in found):
        raise Unreadable(f"a cookie is not encoded: {lines}")
    known = [one for one in operation.parameters if one.place == "cookie"]
    plain = [one for one in known if one.style == "cookie"]  # OpenAPI 3.2: nothing is encoded
    pairs = found if plain else [(unquote(key), value) for key, value in found]
    decode = (lambda text: text) if plain else unquote
    left = _read_pairs(operation.api, known, pairs, "cookie", arrived, decode)
    if left:
        raise Unreadable(f"nothing is called {left[0][0]!r} in the cookies")


# Headers


def _read_headers(operation, headers, arrived):
    known = {one.name.lower(): one for one in operation.parameters if one.place == "header"}
    seen = set()
    for name, raw in headers:
        one = known.get(name) if name not in IGNORED_HEADERS else None
        if one is None and name in OWN_HEADERS:
            continue
        if one is None or name in seen:
            raise Unreadable(f"a header {name!r} was not asked for")
        seen.add(name)
        text = raw.encode("latin-1").decode()
        if one.media:
            value = json.loads(text)
        elif _is_compound(operation.api, one.schema):
            value = build(operation.api, one.schema, text.split(","), one.explode, unquote_header)
        else:
            value = scalar(operation.api, one.schema, unquote_header(text))
        arrived.values["header", one.name] = value


def unquote_header(text):
    """A header's text is what it is: OpenAPI 3.1.1 encodes nothing in headers."""
    return text


# Bodies


def _read_body(operation, headers, body, arrived):
    said = headers.get("content-type", "")
    media = said.partition(";")[0].strip().lower()
    if not said:
        if body:
            raise Unreadable("a body without a Content-Type")
        return
    arrived.media = media
    api = operation.api
    if operation.form is not None:
        described: dict[str, Any] = {"schema": operation.form}
    else:
        by_name = {
            key.partition(";")[0].strip().lower(): one for key, one in operation.media.items()
        }
        wild = [one for key, one in by_name.items() if "*" in key]
        if media not in by_name and not wild:
            raise Unreadable(f"no body is of {media!r}")
        described = by_name[media] if media in by_name else wild[0]
    schema = described.get("schema", {})
    if media == "application/x-www-form-urlencoded":
        arrived.body = _read_form(api, schema, described.get("encoding", {}), body.decode("ascii"))
    elif media.startswith("multipart/"):
        arrived.body = _read_parts(api, schema, described.get("encoding", {}), said, body)
    elif media.endswith("json"):
        arrived.body = json.loads(body)
    else:
        arrived.body = body


def _read_form(api, schema, encodings, text):
    def decode(piece):
        return unquote(piece.replace("+", " "), errors="strict")

    if re.search(r"[^A-Za-z0-9\-._~*+%=&!'()$,;:@/?\[\]|]", text):
        raise Unreadable(f"the form is not encoded: {text[:200]!r}")
    pairs = [(decode(k), v) for k, _, v in (one.partition("=") for one in text.split("&")) if k]
    members = api.members(schema)
    known = []
    for name, member in members.items():
        encoding = encodings.get(name, {})
        styled = encoding.keys() & {"style", "explode", "allowReserved"}
        style = encoding.get("style", "form")
        media = ""
        if not styled and api.kinds(member) == {"object"}:
            media = "application/json"  # OpenAPI 3.1.1 4.8.15.1: by contentType, and its default
        explode = encoding.get("explode", style == "form")
        if api.swagger:
            style, explode = COLLECTION[member.get("collectionFormat", "csv")]
        known.append(Described(name, "form", member, style, explode, media))
    arrived = Arrived()
    left = _read_pairs(api, known, pairs, "form", arrived, decode)
    found = {name: value for (_, name), value in arrived.values.items()}
    other = _rest(api, schema)
    for key, value in left:
        text = decode(value)
        if key in found:
            found[key] = [*(found[key] if isinstance(found[key], list) else [found[key]]), text]
        else:
            found[key] = _member(api, other, text) if text[:1] not in "{[" else json.loads(text)
    return found


COLLECTION = {
    "csv": ("form", False), "ssv": ("spaceDelimited", False), "tsv": ("tab", False),
    "pipes": ("pipeDelimited", False), "multi": ("form", True),
}  # fmt: skip


@dataclass
class Part:
    """A part of a multipart body."""

    name: str
    filename: str | None
    media: str
    data: bytes


def split_parts(said: str, body: bytes) -> list[Part]:
    """Take a multipart body apart, with nothing put up with."""
    found = re.search(r'boundary=(?:"([^"]+)"|([^\s;]+))', said)
    if found is None:
        raise Unreadable(f"{said!r} names no boundary")
    boundary = b"--" + (found[1] or found[2]).encode("ascii")
    if not body.startswith(boundary) or body.rstrip(b"\r\n")[-2:] != b"--":
        raise Unreadable("a multipart body does not begin or end with its boundary")
    pieces = body.split(boundary)
    if pieces[0] or pieces[-1].rstrip(b"\r\n") != b"--":
        raise Unreadable("there is something around the parts")
    return [_read_part(piece) for piece in pieces[1:-1]]


def _read_part(piece):
    if not piece.startswith(b"\r\n") or not piece.endswith(b"\r\n"):
        raise Unreadable("a part is not in lines of its own")
    head, found, data = piece[2:-2].partition(b"\r\n\r\n")
    if not found:
        raise Unreadable("a part has no headers")
    headers = {}
    for line in head.split(b"\r\n"):
        key, _, value = line.decode().partition(":")
        if key.lower() in headers:
            raise Unreadable(f"a part has {key} twice")
        headers[key.lower()] = value.strip()
    if headers.keys() - {"content-disposition", "content-type", "content-transfer-encoding"}:
        raise Unreadable(f"a part has headers {sorted(headers)}")
    said = headers["content-disposition"]
    if not re.fullmatch(r'form-data(?:; \w+\*?=(?:"[^"\r\n]*"|[^";\r\n]+))+', said):
        raise Unreadable(f"{said!r} is no disposition")
    marks = dict(re.findall(r'; (\w+)="([^"]*)"', said))
    marks = {
        key: value.replace("%22", '"').replace("%0D", "\r").replace("%0A", "\n")
        for key, value in marks.items()
    }
    return Part(marks["name"], marks.get("filename"), headers.get("content-type", ""), data)


def _read_parts(api, schema, encodings, said, body):
    members, found = api.members(schema), {}
    for part in split_parts(said, body):
        member = members.get(part.name, _rest(api, schema))
        kinds = api.kinds(member) or set()
        if kinds == {"object"} and name_part_type(encodings, part.name) != part.media:
            raise Unreadable(f"the part {part.name!r} is of {part.media!r}")
        if "array" in kinds and not part.media.endswith("json"):
            item = _part_value(api, api.items(member), part)
            found.setdefault(part.name, []).append(item)
        elif "array" in kinds and isinstance(value := _part_value(api, member, part), list):
            found[part.name] = [*found.get(part.name, []), *value]
        elif "array" in kinds:
            found.setdefault(part.name, []).append(_part_value(api, api.items(member), part))
        elif part.name in found:
            raise Unreadable(f"there are two parts {part.name!r}")
        else:
            found[part.name] = _part_value(api, member, part)
    return found


def name_part_type(encodings, name):
    """The media type of a part that is an object: the one it has, and JSON by default (3.1.1 4.8.15.1)."""
    return encodings.get(name, {}).get("contentType", "application/json").partition(",")[0].strip()


def _part_value(api, schema, part):
    if part.filename is not None or _is_bytes(api, schema):
        return part.data
    if part.media.endswith("json"):
        return json.loads(part.data)
    return scalar(api, schema, part.data.decode())


def _is_bytes(api, schema):
    found = api.follow(schema)
    return isinstance(found, dict) and (
        found.get("format") == "binary" or found.get("type") == "file"
    )


def decode_bytes(text: str) -> bytes:
    """Bytes as a tool takes them: in base64."""
    return base64.b64decode(text, validate=True)
