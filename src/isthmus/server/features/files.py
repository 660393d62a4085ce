"""Files and folders as resources: their URIs, what they hold, and how they are listed."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from isthmus.core.uri_template import escape_text, quote_uri, unescape_text
from isthmus.errors import Refuse, UsageError
from isthmus.server.features.folders import (
    FileMissing,
    FileTooLarge,
    FolderEntry,
    ServedFolder,
    read_file,
)
from isthmus.server.schema.results import make_blob
from isthmus.wire import (
    Annotations,
    Resource,
    ResourceContents,
    TextResourceContents,
)
from isthmus.wire.jsonrpc import encode

if TYPE_CHECKING:
    from isthmus.server.features.resources import Resources
    from isthmus.server.settings import SharedSettings

MAX_FOLDER_ENTRIES = 1_000  # in one answer

FOLDER_MIME_TYPE = "inode/directory"  # spec 2026-07-28 server/resources#file

MAX_TIMESTAMP_S = 253_402_300_799  # the last second of the year 9999: later ones have no text

URI_PREFIX_PATTERN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^{}?#\\\s]*")
ENCODED_SEPARATOR_PATTERN = re.compile("%(?:2f|5c|00)", re.IGNORECASE)


class FolderUris:
    """The URIs of a folder's files: a prefix, and the parts of a name.

    It stands where a template stands. No two names have one URI, and no URI is read in two ways:
    a slash is always between two parts, and whatever else has a meaning in URIs is escaped.

    Args:
        prefix: what all of them begin with.

    Attributes:
        template: how the family is written, for clients.
        names: the variables in it.
        optional: those of them that may be left out.
        literals: what all of them begin with, as the index of templates has it.

    Raises:
        UsageError: it is no beginning of a URI.
    """

    __slots__ = ("_prefix", "literals", "names", "optional", "template")

    def __init__(self, prefix: str) -> None:
        if not URI_PREFIX_PATTERN.fullmatch(prefix):
            raise UsageError(f"{prefix!r} is no beginning of URIs: write 'docs://' or 'file:///x/'")
        self._prefix = prefix if prefix.endswith("/") else prefix + "/"
        self.template = self._prefix + "{+path}{?after}"
        self.literals = (quote_uri(self._prefix),)
        self.names = ("path", "after")
        self.optional = frozenset(self.names)

    def of(self, parts: Sequence[str], *, folder: bool = False, after: str = "") -> str:
        """The URI of a file or a folder; of what comes after a name in it."""
        path = "/".join(map(escape_text, parts)) + ("/" if folder and parts else "")
        return self._prefix + path + (f"?after={escape_text(after)}" if after else "")

    def match(self, uri: str) -> dict[str, Any] | None:
        """The name in a URI, and what to go on after; None where it is none of these."""
        if not uri.startswith(self._prefix) or "#" in uri:
            return None
        path, _, query = uri[len(self._prefix) :].partition("?")
        if ENCODED_SEPARATOR_PATTERN.search(path) or (query and not query.startswith("after=")):
            return None
        values = {"path": unescape_text(path), "after": unescape_text(query.removeprefix("after="))}
        return None if None in values.values() else values


class OfferedFolder:
    """A folder whose files are resources.

    Args:
        folder: the folder.
        uris: their URIs.
        file_size: the most bytes a file may have that is read, or None.
        most: the most files that are listed, or None.
        name: what the folder is called.

    Attributes:
        template: how the family of its URIs is written.
    """

    def __init__(
        self,
        folder: ServedFolder,
        uris: FolderUris,
        *,
        file_size: int | None,
        most: int | None,
        name: str,
    ) -> None:
        self.template = uris.template
        self._folder = folder
        self._uris = uris
        self._file_size = file_size
        self._most = most
        self._name = name

    def read(self, path: str = "", after: str = "") -> Any:
        """Read a file, or list a folder; None where there is neither."""
        try:
            parts = self._folder.parts(path.removesuffix("/"))
            if path.endswith("/") or not parts:
                return self._list_folder(parts, after)
            data = self._folder.read(parts, self._file_size)
        except FileMissing:
            return None
        except FileTooLarge as error:
            raise Refuse(-32603, f"The file is too large: {error}") from error
        return _make_contents(self._uris.of(parts), parts[-1], data)

    def list_resources(self) -> Iterator[Resource]:
        """The folder, and the files in it that may be read, as far as they are listed."""
        yield Resource(uri=self._uris.of(()), name=self._name, mime_type=FOLDER_MIME_TYPE)
        for entry in islice(self._folder.walk(), self._most):
            yield Resource(
                uri=self._uris.of(entry.path),
                name="/".join(entry.path),
                mime_type=guess_mime_type(entry.path[-1]) or UNSET,
                size=entry.status.st_size,
                annotations=Annotations(last_modified=format_modified(entry.status)),
            )

    def complete(self, typed: str) -> list[str]:
        """Names of files and folders that begin like what was typed."""
        above, _, _ = typed.rpartition("/")
        try:
            entries, _ = self._folder.page(self._folder.parts(above), "", MAX_FOLDER_ENTRIES)
        except FileMissing:
            return []
        names = ("/".join(entry.path) + ("/" if entry.is_folder else "") for entry in entries)
        return [name for name in names if name.startswith(typed)]

    def _list_folder(self, parts: tuple[str, ...], after: str) -> ResourceContents:
        entries, more = self._folder.page(
            parts, after, min(MAX_FOLDER_ENTRIES, self._most or MAX_FOLDER_ENTRIES)
        )
        shown: dict[str, Any] = {"entries": [self._describe_entry(entry) for entry in entries]}
        if more:
            shown["next"] = self._uris.of(parts, folder=True, after=entries[-1].path[-1])
        return TextResourceContents(
            uri=self._uris.of(parts, folder=True, after=after),
            mime_type="application/json",
            text=encode(shown).decode(),
        )

    def _describe_entry(self, entry: FolderEntry) -> dict[str, Any]:
        name, uri = entry.path[-1], self._uris.of(entry.path, folder=entry.is_folder)
        shown = {"name": name, "uri": uri, "lastModified": format_modified(entry.status)}
        if entry.is_folder:
            return {**shown, "mimeType": FOLDER_MIME_TYPE}
        kind = guess_mime_type(name)
        shown |= {"mimeType": kind} if kind else {}
        return {**shown, "size": entry.status.st_size}


class OfferedFile:
    """A file that is one resource.

    Args:
        path: where it is; links are followed.
        uri: its URI.
        file_size: the most bytes it may have to be read, or None.
        kind: its MIME type; by its name, if not given.
    """

    def __init__(
        self, path: str | os.PathLike[str], uri: str, *, file_size: int | None, kind: str | None
    ) -> None:
        self._path = os.path.abspath(path)  # noqa: PTH100 - pathlib costs start-up time
        self._uri = uri
        self._file_size = file_size
        self._kind = kind

    def read(self) -> ResourceContents | None:
        """Read the file; None where it is not there."""
        try:
            data = read_file(self._path, self._file_size)
        except FileMissing:
            return None
        except FileTooLarge as error:
            raise Refuse(-32603, f"The file is too large: {error}") from error
        return _make_contents(self._uri, self._path, data, self._kind)

    def describe(self, resource: Resource) -> dict[str, Any]:
        """The size and age of the file as it is now, for its listing."""
        try:
            status = os.stat(self._path)  # noqa: PTH116 - pathlib costs start-up time
        except OSError:
            return {}
        given = resource.annotations or Annotations()
        annotations = Annotations(
            audience=given.audience, priority=given.priority, last_modified=format_modified(status)
        )
        return {"size": status.st_size, "annotations": annotations}


def format_modified(status: os.stat_result) -> str:
    """When a file was changed, as far as that can be written."""
    # spec 2026-07-28 server/resources#annotations: lastModified is an ISO 8601 moment
    seconds = min(
        max(int(status.st_mtime), 0), MAX_TIMESTAMP_S
    )  # a file may have any, and listings go on
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat().replace("+00:00", "Z")


def _make_contents(uri: str, name: str, data: bytes, kind: str | None = None) -> ResourceContents:
    """Make the contents of a file: text where it is text, by its name and by its bytes."""
    kind = kind or guess_mime_type(name)
    text = None
    if (kind is None or _is_textual(kind)) and b"\0" not in data:
        try:
            text = data.decode()
        except UnicodeDecodeError:
            text = None
    if text is not None:
        return TextResourceContents(uri=uri, mime_type=kind or "text/plain", text=text)
    return make_blob(data, uri, kind or "application/octet-stream")


TEXT_TYPE_PATTERN = re.compile(
    r"text/.*|.*\+(?:json|xml|yaml)|image/svg\+xml|"
    r"application/(?:json|xml|javascript|toml|yaml|sql|x-sh|x-csh|x-tex|rtf|x-python|graphql)"
)

MIME_TYPES_BY_ENDING = {  # that the standard library does not know, or takes for others
    ".md": "text/markdown",
    ".rst": "text/x-rst",
    ".toml": "application/toml",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".ts": "text/typescript",
    ".tsx": "text/typescript",
    ".rs": "text/x-rust",
    ".go": "text/x-go",
    ".jsonl": "application/jsonl",
    ".log": "text/plain",
    ".sql": "application/sql",
}


def _is_textual(kind: str) -> bool:
    return TEXT_TYPE_PATTERN.fullmatch(kind) is not None or kind == "application/jsonl"


def guess_mime_type(name: str) -> str | None:
    """Guess the MIME type of a file by its name; None where that says nothing."""
    ending = os.path.splitext(name)[1].lower()  # noqa: PTH122 - pathlib costs start-up time
    return MIME_TYPES_BY_ENDING.get(ending) or _load_mime_types()(ending)


@cache
def _load_mime_types() -> Callable[[str], str | None]:
    from mimetypes import MimeTypes

    # Those of Python alone: a machine's own tables would make a server depend on where it runs.
    return MimeTypes().types_map[True].get


def offer_file(
    resources: "Resources",
    settings: "SharedSettings",
    path: str | os.PathLike[str],
    uri: str | None,
    **options: Any,
) -> None:
    """Offer a file as a resource; see ``Server.add_file``.

    Raises:
        UsageError: the URI is taken.
    """
    absolute = os.path.abspath(path)  # noqa: PTH100 - pathlib costs start-up time
    uri = uri or _make_file_uri(absolute)
    kind = options.get("mime_type") or guess_mime_type(absolute)
    file_size = settings.limits.file_size
    options.pop("completes", None)  # there is nothing in it to complete
    file = OfferedFile(absolute, uri, file_size=file_size, kind=options.get("mime_type"))
    given = {"name": os.path.basename(absolute), "description": "", **options}  # noqa: PTH119 - same
    resources.add(file.read, uri, now=file.describe, **{**given, "mime_type": kind})


def _make_file_uri(path: str) -> str:
    drive, rest = os.path.splitdrive(path)
    parts = [escape_text(part) for part in rest.replace(os.sep, "/").split("/")]
    return "file://" + (f"/{drive}" if drive else "") + "/".join(parts)


def offer_folder(
    resources: "Resources",
    settings: "SharedSettings",
    root: str | os.PathLike[str],
    prefix: str,
    *,
    pattern: str | Sequence[str] = "**/*",
    hidden: bool = False,
    name: str | None = None,
    **options: Any,
) -> OfferedFolder:
    """Offer the files of a folder as resources; see ``Server.add_directory``.

    Raises:
        UsageError: there is no such folder, the prefix is taken or none, or a pattern is none.
    """
    folder = ServedFolder(root, pattern=pattern, hidden=hidden)
    limits, uris = settings.limits, FolderUris(prefix)
    name = name or os.path.basename(folder.root) or prefix  # noqa: PTH119 - pathlib costs start-up time
    offered = OfferedFolder(folder, uris, file_size=limits.file_size, most=limits.files, name=name)
    resources.add_folder(offered, uris, prefix, name=name, **options)
    return offered
