"""Answers of an API as results of a tool: JSON as structured content, texts, pictures, files.

What an API says of a mistake of its caller is for the model to read; what it says of a fault of its
own is not.
"""

import base64
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

from isthmus.core.text import clean_text
from isthmus.errors import ToolError
from isthmus.openapi.bodies import TEXT_LIKE_TYPES
from isthmus.openapi.operation import Operation, clean_media_type, is_json_type
from isthmus.openapi.sending import ApiResponse
from isthmus.wire import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    TextContent,
)

MAX_ERROR_CHARS = 2_000  # of what an API says of a mistake
# character sets of texts: some codecs of Python are none, or take a time that grows with the square
CHARSET = re.compile(
    r'charset="?(utf-?(?:8|16(?:le|be)?|32)|us-ascii|ascii|iso-?8859-\d{1,2}|latin-?1|windows-\d{4}|cp\d{3,4}'
    r'|shift_?jis|euc-(?:jp|kr)|gb(?:k|2312|18030)|big5|koi8-[ru])"?(?![\w\-])',
    re.IGNORECASE,
)
PROBLEM_MEMBERS = ("detail", "message", "error_description", "error", "title", "errors")
KEPT_HEADERS = ("content-type", "content-length", "last-modified", "etag", "location", "allow")


class ApiRefused(ToolError):
    """The API refused a call, or failed; the text is for a model.

    Attributes:
        status: of HTTP.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def make_result(operation: Operation, answer: ApiResponse) -> CallToolResult:
    """Make the result of a call.

    Raises:
        ApiRefused: the API says that the call failed, or leads elsewhere.
        ToolError: the answer is not what it says it is.
    """
    if answer.status >= 400 or answer.status < 200:
        raise describe_failure(answer)
    if answer.status >= 300:
        raise ApiRefused(describe_redirect(answer), answer.status)
    if operation.method == "HEAD":
        return _make_head(answer)
    if not answer.body:
        return _make_text(f"Done (HTTP {answer.status}).")
    kind = clean_media_type(answer.headers.get("content-type", ""))
    if is_json_type(kind) or (not kind and answer.body.lstrip()[:1] in (b"{", b"[")):
        return _make_structured(answer.body)
    if kind == "text/html" and not _expects(operation, kind):
        raise ToolError("the API answered with a page of HTML, and not with what it describes")
    return _make_content(operation, kind, answer)


def _make_head(answer: ApiResponse) -> CallToolResult:
    found = {name: answer.headers[name] for name in KEPT_HEADERS if name in answer.headers}
    return _make_structured(msgspec.json.encode({"status": answer.status, "headers": found}))


def _make_text(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=text)])


def _make_structured(body: bytes) -> CallToolResult:
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ToolError("the API's answer says that it is JSON, and is none") from None
    # up to 2025-11-25 structured content is an object
    whole = value if isinstance(value, dict) else {"result": value}
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return CallToolResult(content=[TextContent(text=text)], structured_content=whole)


def _make_content(operation: Operation, kind: str, answer: ApiResponse) -> CallToolResult:
    if (
        kind.startswith("text/")
        or kind.endswith(("/xml", "+xml"))
        or kind in TEXT_LIKE_TYPES
        or not kind
    ):
        text = decode_text(answer)
        if text is not None and "\0" not in text:
            return _make_text(text)
    data = base64.b64encode(answer.body).decode()
    if kind.startswith("image/"):
        return CallToolResult(content=[ImageContent(data=data, mime_type=kind)])
    if kind.startswith("audio/"):
        return CallToolResult(content=[AudioContent(data=data, mime_type=kind)])
    contents = BlobResourceContents(
        uri=f"api:{operation.path}", blob=data, mime_type=kind or "application/octet-stream"
    )
    return CallToolResult(content=[EmbeddedResource(resource=contents)])


def decode_text(answer: ApiResponse) -> str | None:
    """A body as a text, by its character set; None where it is none."""
    said = CHARSET.search(answer.headers.get("content-type", ""))
    try:
        return answer.body.decode(said[1] if said else "utf-8")
    except (UnicodeError, LookupError):
        return None


def _expects(operation: Operation, kind: str) -> bool:
    """Whether the document has a media type for a success."""
    return any(
        media.name in {kind, "text/*", "*/*"}
        for one in operation.answers
        if one.status.startswith("2") or one.status == "default"
        for media in one.media_types
    )


# What went wrong


def describe_failure(answer: ApiResponse) -> ApiRefused:
    """The exception for a status of failure: with the API's words where the caller is at fault."""
    status = answer.status
    if status >= 500 or status < 200:
        return ApiRefused(f"the API failed (HTTP {status})", status)
    said = find_words(answer)
    hint = ""
    if status == 429 and (after := answer.headers.get("retry-after", "")).isdecimal():
        hint = f" (try again in {after[:6]} seconds)"
    return ApiRefused(f"HTTP {status}{hint}{f': {said}' if said else ''}", status)


def find_words(answer: ApiResponse) -> str:
    """The words of an API about a mistake: one line of bounded length."""
    kind = clean_media_type(answer.headers.get("content-type", ""))
    text = decode_text(answer) or ""
    if kind == "text/html" or text.lstrip()[:9].lower().startswith(("<!doctype", "<html")):
        return "a page of HTML"
    if is_json_type(kind):
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            text = _summarize(msgspec.json.decode(answer.body), text)
    text = clean_text(text[: 4 * MAX_ERROR_CHARS]).strip()
    return text if len(text) <= MAX_ERROR_CHARS else f"{text[:MAX_ERROR_CHARS]}…"


def _summarize(value: Any, whole: str) -> str:
    """The text of a problem that has nothing but one; else all of it, where more may be of use."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping) and len(value) == 1:
        ((name, text),) = value.items()
        if name in PROBLEM_MEMBERS and isinstance(text, str):
            return text
    return whole


def describe_redirect(answer: ApiResponse) -> str:
    """The text that a model reads of a redirect, which was not followed: credentials go nowhere else."""
    from isthmus.openapi.sending import find_origin

    origin = find_origin(answer.headers.get("location", "").partition("#")[0])
    where = f" to {origin}" if origin else ""
    return f"the API redirects{where} (HTTP {answer.status}), which is not followed"


def find_answer_schema(operation: Operation, status: int, kind: str) -> Any:
    """The place of the schema for an answer of JSON; None where there is none."""
    for wanted in (str(status), f"{status // 100}XX", "default"):
        for one in operation.answers:
            if one.status == wanted:
                for media in one.media_types:
                    if media.name == kind or (is_json_type(media.name) and is_json_type(kind)):
                        return media.schema if media.schema.node is not None else None
                return None
    return None
