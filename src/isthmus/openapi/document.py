"""OpenAPI documents: read from JSON or YAML, their version, and what a ``$ref`` in them means.

Nothing is ever fetched: a reference leads to a place in the same document, or in one of those that
the author gave beside it. Every refusal names its place as a JSON pointer.
"""

import os
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import msgspec

from isthmus.errors import UsageError

MAX_DOCUMENT_BYTES = 32 * 1024 * 1024
MAX_YAML_PARTS = 1_000_000  # values, each as often as an alias repeats it
MAX_BLANK_CHARS = 4096
MAX_REFERENCES = 32  # from one reference to the next

VERSIONS = ("2.0", "3.0", "3.1", "3.2")

Node: TypeAlias = Mapping[str, Any]


class DocumentError(UsageError):
    """An OpenAPI document, or one of its operations, cannot be used.

    Args:
        message: what is wrong there.

    Attributes:
        pointer: the JSON pointer of the place in the document: ``#/paths/~1pets/get``.
    """

    def __init__(self, pointer: str, message: str) -> None:
        super().__init__(f"{pointer}: {message}" if pointer else message)
        self.pointer = pointer


class Place(msgspec.Struct, frozen=True):
    """A part of a document, and where it stands.

    Attributes:
        node: the part.
        pointer: its JSON pointer, behind ``#``; before it the name of the document that it is in,
            where that is not the one being read.
    """

    node: Any
    pointer: str

    def member(self, key: str | int) -> "Place":
        """A member of it; None stands for one that is not there."""
        node = self.node
        if isinstance(node, Mapping):
            found = node.get(key)
        else:
            found = node[key] if isinstance(node, list) and isinstance(key, int) else None
        return Place(found, f"{self.pointer}/{escape_step(key)}")

    def mapping(self, key: str) -> "Place":
        """A member that must be an object; an empty one stands for one that is not there.

        Raises:
            DocumentError: it is something else.
        """
        found = self.member(key)
        if found.node is None:
            return Place({}, found.pointer)
        if not isinstance(found.node, Mapping):
            raise DocumentError(found.pointer, "this must be an object")
        return found

    def items(self, key: str) -> "Iterator[Place]":
        """The items of a member that must be a list; none where it is not there.

        Raises:
            DocumentError: it is something else.
        """
        found = self.member(key)
        if found.node is None:
            return
        if not isinstance(found.node, list):
            raise DocumentError(found.pointer, "this must be a list")
        for at, item in enumerate(found.node):
            yield Place(item, f"{found.pointer}/{at}")

    def text(self, key: str) -> str:
        """A member that is a text; empty where there is none."""
        found = self.node.get(key)
        return found if isinstance(found, str) else ""


class Document:
    """An OpenAPI document: 3.x, or 2.0 as what it means in 3.0.

    Args:
        root: the whole document, decoded.
        documents: other documents that its references may lead to, by the name that stands before
            the ``#``.
        url: where the author got it; relative server URLs are meant from there.

    Attributes:
        version: ``2.0``, ``3.0``, ``3.1`` or ``3.2``.
        root: the document as it is used: in the form of 3.x.
        url: as given; empty where none was.

    Raises:
        DocumentError: it is no OpenAPI document, or of a version that is not known.
    """

    def __init__(
        self, root: Any, *, documents: Mapping[str, Node] | None = None, url: str = ""
    ) -> None:
        self.version = find_version(root)
        self.url = url
        if self.version == "2.0":
            from isthmus.openapi.swagger import convert_swagger  # a format of the past

            try:
                root = convert_swagger(root)
            except RecursionError:
                raise DocumentError("#", "it is nested too deeply") from None
        self.root: Node = root
        self._documents = documents or {}

    @property
    def start(self) -> Place:
        """The whole document, as a place."""
        return Place(self.root, "#")

    def follow(self, place: Place) -> Place:
        """Follow the reference that a place may be, and the next one, to what is meant.

        Raises:
            DocumentError: it leads nowhere, outside, or round in a circle.
        """
        first = place
        for _ in range(MAX_REFERENCES):
            node = place.node
            if not isinstance(node, Mapping) or not isinstance(node.get("$ref"), str):
                return place
            place = self.find(node["$ref"], place)
        raise DocumentError(first.pointer, "this $ref leads round in a circle")

    def find(self, reference: str, at: Place) -> Place:
        """Find what a reference means.

        Args:
            reference: the value of ``$ref``.
            at: where it stands.

        Raises:
            DocumentError: it leads nowhere or outside.
        """
        base, _, fragment = reference.partition("#")
        inside = at.pointer.partition("#")[0]
        name = base or inside
        whole = self.root if not name else self._find_document(name, inside, at)
        if fragment and not fragment.startswith("/"):
            raise DocumentError(
                at.pointer, f"$ref {reference!r} names an anchor: write a JSON pointer (#/…)"
            )
        node: Any = whole
        for step in fragment.split("/")[1:]:
            node = _take_step(node, unescape_step(step))
            if node is None:
                raise DocumentError(at.pointer, f"$ref {reference!r} leads nowhere")
        return Place(node, f"{name}#{fragment}")

    def _find_document(self, name: str, inside: str, at: Place) -> Any:
        for known in (name, name.removeprefix("./"), _join_relative(inside, name)):
            if known in self._documents:
                return self._documents[known]
        raise DocumentError(
            at.pointer,
            f"$ref leads to {name!r}, outside of the document, and nothing is fetched: pass what "
            f"is there in documents={{{name!r}: …}}",
        )


def escape_step(step: str | int) -> str:
    """A step of a JSON pointer (RFC 6901 3)."""
    return str(step).replace("~", "~0").replace("/", "~1")


def unescape_step(step: str) -> str:
    """The key that a step of a JSON pointer within a URI stands for."""
    if "%" in step:
        from urllib.parse import unquote

        step = unquote(step)
    return step.replace("~1", "/").replace("~0", "~")


def _take_step(node: Any, key: str) -> Any:
    if isinstance(node, Mapping):
        return node.get(key)
    if isinstance(node, list) and key.isdecimal() and int(key) < len(node):
        return node[int(key)]
    return None


def _join_relative(inside: str, name: str) -> str:
    """The name of a document that another one names, seen from the folder of the first."""
    import posixpath

    return posixpath.normpath(posixpath.join(posixpath.dirname(inside), name))


def find_version(root: Any) -> str:
    """Find the version of a document.

    Raises:
        DocumentError: it is none, or of a version that is not known.
    """
    if not isinstance(root, Mapping):
        kind = "empty" if root is None else f"a {type(root).__name__}"
        raise DocumentError("#", f"this is no OpenAPI document: it is {kind}, not an object")
    said = root.get("openapi", root.get("swagger"))
    if said is None:
        raise DocumentError("#", 'this is no OpenAPI document: it has no member "openapi"')
    version = ".".join(str(said).split(".")[:2])
    version = "2.0" if version == "2" else version
    if version not in VERSIONS or ("swagger" in root) != (version == "2.0"):
        key = "openapi" if "openapi" in root else "swagger"
        raise DocumentError(
            f"#/{key}", f"version {str(said)[:40]!r} is not known: {', '.join(VERSIONS)} are"
        )
    return version


# Reading


def read_document(
    spec: Any, *, documents: Mapping[str, Any] | None = None, url: str = ""
) -> Document:
    """Read an OpenAPI document.

    Args:
        spec: a dict; JSON or YAML, as text or bytes; or the path of a file with it.
        documents: other documents that its references may lead to, by name; each as ``spec``.
        url: where the author got it.

    Raises:
        DocumentError: it cannot be read, or is none.
    """
    others = {name: read_data(one, name) for name, one in (documents or {}).items()}
    return Document(read_data(spec), documents=others, url=url)


def read_data(spec: Any, name: str = "") -> Any:
    """Read what is a dict already, JSON, YAML, or a file with either.

    Args:
        spec: one of them.
        name: for messages.

    Raises:
        DocumentError: it is none of them.
    """
    if isinstance(spec, Mapping):
        return spec
    if (
        isinstance(spec, str | bytes)
        and not spec[:MAX_BLANK_CHARS].strip()
        and len(spec) < MAX_BLANK_CHARS
    ):
        raise DocumentError(name, "the document is empty")
    if isinstance(spec, str) and not _is_path(spec):
        spec = spec.encode("utf-8", "surrogatepass")
    if isinstance(spec, bytes | bytearray | memoryview):
        return parse_data(bytes(spec), name)
    if not isinstance(spec, str | os.PathLike):
        raise DocumentError(
            name, f"a document is a dict, JSON, YAML or a path, not {type(spec).__name__}"
        )
    path = os.fspath(spec)
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - as everywhere at start-up
            data = file.read(MAX_DOCUMENT_BYTES + 1)
    except OSError as error:
        raise DocumentError(name, f"cannot read {path}: {error.strerror or 'not a file'}") from None
    return parse_data(data, name or str(path))


def _is_path(text: str) -> bool:
    """Whether a text is a path, and not a document: those have several lines or begin with ``{``."""
    head = text.lstrip("\ufeff \t\r\n")
    return "\n" not in text and not head.startswith(("{", "[")) and ": " not in text


def parse_data(data: bytes, name: str = "") -> Any:
    """Parse JSON, or YAML where it is none.

    Raises:
        DocumentError: it is neither, or too large.
    """
    if len(data) > MAX_DOCUMENT_BYTES:
        raise DocumentError(
            name, f"it has more than {MAX_DOCUMENT_BYTES} bytes, which no OpenAPI document needs"
        )
    data = data.removeprefix(b"\xef\xbb\xbf")
    if data.lstrip()[:1] in (b"{", b"[", b""):
        try:
            return msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            if not str(name).endswith((".yaml", ".yml")):
                raise DocumentError(name, f"it is no JSON: {error}") from None
        except RecursionError:
            raise DocumentError(name, "it is nested too deeply") from None
    return parse_yaml(data, name)


def parse_yaml(data: bytes, name: str = "") -> Any:
    """Parse YAML within bounds; aliases cannot make it grow.

    Raises:
        DocumentError: it is no YAML, too deep or too large, or the library is missing.
    """
    from isthmus.yaml_text import BadYaml, read_yaml

    try:
        return read_yaml(data.decode(), max_parts=MAX_YAML_PARTS)
    except UnicodeDecodeError:
        raise DocumentError(name, "it is neither JSON nor YAML: it is no UTF-8") from None
    except BadYaml as error:
        raise DocumentError(
            name, f"it is neither JSON nor YAML: line {error.line}, column {error.column}: {error}"
        ) from None
