"""Bodies of requests: JSON, forms, multipart with files, texts and bytes."""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from isthmus.openapi.operation import Body, MediaType, PartEncoding, is_binary, is_json_type
from isthmus.openapi.styles import BadValue, encode_text, is_list, write_form_pairs, write_scalar

JSON, FORM, MULTIPART = (
    "application/json",
    "application/x-www-form-urlencoded",
    "multipart/form-data",
)
TEXT_LIKE_TYPES = frozenset({
    *("application/jsonl", "application/x-ndjson", "application/ndjson", "application/json-seq"),
    *("application/graphql", "application/yaml", "application/x-yaml", "application/sql"),
    *("application/toml", "application/javascript"),
})  # fmt: skip
MEDIA_TYPE_NAME = re.compile(
    r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+/[!#$%&'*+\-.^_`|~0-9A-Za-z]+(?:; ?charset=[\w\-]+)?"
)
MANY_PARTS = frozenset({"multipart/mixed", "multipart/related"})  # of which none has a name
DEFAULT_ENCODING = PartEncoding()


def name_kind(media: MediaType) -> str:
    """The way in which a body of a media type is written; empty for none that is known."""
    name = media.name
    # it becomes a header: no line ends in it
    if not MEDIA_TYPE_NAME.fullmatch(name) or name in MANY_PARTS or name.endswith(("/xml", "+xml")):
        return ""
    if is_json_type(name) or name in {"*/*", "application/*"}:
        return "json"
    if name == FORM:
        return "form"
    if name in {MULTIPART, "multipart/*"}:
        return "multipart"
    return "text" if name.startswith("text/") or name in TEXT_LIKE_TYPES else "bytes"


def choose_media_type(body: Body) -> MediaType | None:
    """The media type of a body that is written: JSON, multipart, a form, text, bytes, in this order.

    None where all that the API takes is XML, or nothing that is known.
    """
    order = ("json", "multipart", "form", "text", "bytes")
    known = [one for one in body.media_types if name_kind(one)]
    return min(known, key=lambda one: order.index(name_kind(one)), default=None)


def write_body(media: MediaType, value: Any, boundary: str) -> tuple[str, bytes]:
    """A body and its content type.

    Args:
        media: in which media type.
        value: what is sent.
        boundary: between the parts of a multipart body; no part has it in it.

    Raises:
        BadValue: the media type cannot carry it.
    """
    kind = name_kind(media)
    if kind == "json":
        name = media.name if is_json_type(media.name) else JSON
        return name, msgspec.json.encode(value)
    if kind in {"form", "multipart"}:
        if not isinstance(value, Mapping):
            raise BadValue("the body must be an object")
        if kind == "form":
            return FORM, write_form(media, value)
        return f"{MULTIPART}; boundary={boundary}", write_multipart(media, value, boundary)
    if kind == "text" and not (isinstance(value, str) and is_binary(media.schema.node)):
        name = "text/plain" if media.name == "text/*" else media.name
        return f"{name}; charset=utf-8", encode_utf8(write_scalar(value))
    name = "application/octet-stream" if "*" in media.name else media.name
    return name, decode_base64("body", value)


def write_form(media: MediaType, value: Mapping[str, Any]) -> bytes:
    """A form, each member encoded as the document says."""
    pairs: list[str] = []
    for name, one in value.items():
        encoding = media.encodings.get(name, DEFAULT_ENCODING)
        nested = isinstance(one, Mapping) or (is_list(one) and any(map(_is_nested, one)))
        if encoding.style or not (nested or encoding.content_type):
            style = encoding.style or "form"
            found = write_form_pairs(name, style, one, explode=encoding.explode)
            pairs += (f"{key}={text}" for key, text in found)
        else:  # OpenAPI 3.0.4 4.8.15.1: by its content type, which is JSON for objects
            text = one if isinstance(one, str) else msgspec.json.encode(one).decode()
            pairs.append(f"{_quote_form(name)}={_quote_form(text)}")
    return "&".join(pairs).encode()


def _is_nested(value: Any) -> bool:
    return is_list(value) or isinstance(value, Mapping)


def _quote_form(text: str) -> str:
    return encode_text(text, " ").replace(" ", "+")


def write_multipart(media: MediaType, value: Mapping[str, Any], boundary: str) -> bytes:
    """A multipart form (RFC 7578): files as bytes, objects as JSON, each item of a list a part."""
    pieces: list[bytes] = []
    for name, one in value.items():
        encoding = media.encodings.get(name, DEFAULT_ENCODING)
        for head, data in _write_parts(media, name, one, encoding):
            pieces += (f"--{boundary}\r\n".encode(), head, b"\r\n\r\n", data, b"\r\n")
    return b"".join([*pieces, f"--{boundary}--\r\n".encode()])


def _write_parts(
    media: MediaType, name: str, value: Any, encoding: PartEncoding
) -> Iterator[tuple[bytes, bytes]]:
    declared = encoding.content_type.partition(",")[0].strip()
    declared = declared if MEDIA_TYPE_NAME.fullmatch(declared) and "*" not in declared else ""
    if is_list(value):
        for one in value:
            if is_list(one):
                raise BadValue(f"{name}: lists within it cannot be sent")
            yield from _write_parts(media, name, one, encoding)
    elif name in media.files:
        yield _write_file(name, value, declared)
    elif isinstance(value, Mapping) or is_json_type(declared):
        yield _write_head(name, declared or JSON), msgspec.json.encode(value)
    else:
        yield _write_head(name, declared), encode_utf8(write_scalar(value))


def _write_file(name: str, value: Any, declared: str) -> tuple[bytes, bytes]:
    """The part of a file: base64 by itself, or an object with ``data``, ``filename``, ``content_type``."""
    filename, kind, data = name, declared or "application/octet-stream", value
    if isinstance(value, Mapping):
        data = value.get("data")
        filename = str(value.get("filename") or name)
        kind = str(value.get("content_type") or kind)
        if not MEDIA_TYPE_NAME.fullmatch(kind):
            raise BadValue(f"{name}: its content_type must be a media type, such as image/png")
    return _write_head(name, kind, filename), decode_base64(name, data)


def _write_head(name: str, kind: str, filename: str = "") -> bytes:
    head = f'Content-Disposition: form-data; name="{escape_disposition(name)}"'
    if filename:
        head += f'; filename="{escape_disposition(filename)}"'
    return encode_utf8(f"{head}\r\nContent-Type: {kind}" if kind else head)


def escape_disposition(text: str) -> str:
    """A name within quotes, as browsers escape it: what could end it or the line is encoded."""
    text = text.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
    if any(sign < " " or sign == "\x7f" for sign in text):
        raise BadValue("a name of a part or a file must not have control characters")
    return text


def encode_utf8(text: str) -> bytes:
    """A text as UTF-8.

    Raises:
        BadValue: it has lone surrogates.
    """
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise BadValue("it has half a character (a lone surrogate)") from None


def decode_base64(name: str, value: Any) -> bytes:
    """The bytes that an argument spells in base64; a data URL is understood, too.

    Raises:
        BadValue: it is no base64.
    """
    if isinstance(value, str):
        text = value.partition(",")[2] if value.startswith("data:") else value
        try:
            return base64.b64decode("".join(text.split()), validate=True)
        except (binascii.Error, ValueError):
            pass
    raise BadValue(f"{name}: bytes are given in base64")
