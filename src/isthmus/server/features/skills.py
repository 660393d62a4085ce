"""Skills of a server (SEP-2640): folders with a ``SKILL.md``, their files as resources, and their entries."""

import os
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from isthmus.core.pagination import BadCursor, paginate
from isthmus.core.principal import NO_SCOPES, owner_of
from isthmus.errors import Refuse, UsageError
from isthmus.revisions import Method
from isthmus.runtime.failures import log_warning
from isthmus.runtime.inbound import Inbound
from isthmus.server.features.files import FolderUris, OfferedFolder, guess_mime_type
from isthmus.server.features.folders import (
    MAX_ENTRIES_HELD,
    FileMissing,
    FileTooLarge,
    FolderEntry,
    ServedFolder,
)
from isthmus.server.guard.scopes import ScopeDemand, is_listed_for
from isthmus.skills.entry import (
    DIRECTORY_TYPE,
    MAX_SKILL_BYTES,
    MAX_SKILL_FILES,
    SKILL_FILE,
    GetSkillParams,
    GetSkillResult,
    ListSkillsParams,
    ListSkillsResult,
    ReadDirectoryParams,
    ReadDirectoryResult,
    Skill,
    SkillResource,
)
from isthmus.skills.frontmatter import BadSkill, read_frontmatter
from isthmus.skills.verification import check_entry, make_digest
from isthmus.wire import Resource
from isthmus.wire.jsonrpc import shorten

if TYPE_CHECKING:
    from isthmus.runtime.middleware import Handler
    from isthmus.server.features.resources import Resources
    from isthmus.server.settings import SharedSettings

SKILL_SCHEME = "skill://"

SKILL_METHODS = (
    Method(
        "skills/list", frozenset({"client"}), ListSkillsParams, ListSkillsResult, cacheable=True
    ),
    Method("skills/get", frozenset({"client"}), GetSkillParams, GetSkillResult, cacheable=True),
    Method(
        "resources/directory/read",
        frozenset({"client"}),
        ReadDirectoryParams,
        ReadDirectoryResult,
        cacheable=True,
    ),
)

FileState = tuple[int, int, int]


class SkillFolder:
    """A folder of skills: each folder in it with a ``SKILL.md`` is one, at any depth; nothing else is served.

    Args:
        folder: the folder.
        uris: the URIs of its files.
        file_size: the most bytes a file may have that is read, or None.
        scopes: what a reader must have been granted.

    Attributes:
        template: how the family of its URIs is written.
        uris: the URIs of its files.
        scopes: what a reader must have been granted.
    """

    def __init__(
        self,
        folder: ServedFolder,
        uris: FolderUris,
        file_size: int | None,
        scopes: ScopeDemand = NO_SCOPES,
    ) -> None:
        self.template = uris.template
        self.uris = uris
        self.scopes = scopes
        self._folder = folder
        self._file_size = file_size
        self._files = OfferedFolder(folder, uris, file_size=file_size, most=None, name="skills")
        self._known: dict[tuple[str, ...], tuple[FileState, SkillResource]] = {}
        self._warned: set[str] = set()

    def read(self, path: str = "", after: str = "") -> Any:
        """Read a file of a skill; None where there is none."""
        try:
            parts = self._folder.parts(path)
        except FileMissing:
            return None
        return self._files.read(path, after) if self._is_in_skill(parts) else None

    def list_resources(self) -> Iterator[Resource]:
        """The files of all skills that can be served."""
        told: set[str] = set()
        for skill in self.list_skills():
            for file in skill.resources:
                if isinstance(file, SkillResource) and file.uri not in told:
                    told.add(file.uri)
                    yield self._describe(file, skill)

    def complete(self, typed: str) -> list[str]:
        """Names of files that begin like what was typed."""
        found = self._files.complete(typed)
        return [one for one in found if self._is_in_skill(tuple(one.rstrip("/").split("/")))]

    def list_skills(self) -> Iterator[Skill]:
        """The entries of all skills as they are now; one with a fault is left out, and logged once."""
        for parts in self._find_skills():
            try:
                yield self.make_entry(parts)
            except (BadSkill, FileMissing) as error:
                where = "/".join(parts)
                if where not in self._warned:
                    self._warned.add(where)
                    log_warning("the skill %r is not served: %s", where, error)

    def check(self) -> int:
        """The number of skills, each of which can be served.

        Raises:
            UsageError: one cannot, or there is none.
        """
        found = 0
        for parts in self._find_skills():
            try:
                self.make_entry(parts)
            except (BadSkill, FileMissing) as error:
                file = os.path.join(self._folder.root, *parts, SKILL_FILE)  # noqa: PTH118 - pathlib costs start-up time
                raise UsageError(f"{file} cannot be served as a skill: {error}") from None
            found += 1
        if not found:
            raise UsageError(
                f"there is no skill in {self._folder.root!r}: a skill is a folder with a {SKILL_FILE}"
            )
        return found

    def make_entry(self, parts: tuple[str, ...]) -> Skill:
        """Make the entry of a skill.

        Raises:
            BadSkill: it cannot be served; the message says why.
            FileMissing: there is none.
        """
        text = self._read_text((*parts, SKILL_FILE))
        files: list[SkillResource] = []
        total = 0
        for entry in self._folder.walk(parts):
            total += entry.status.st_size
            if len(files) >= MAX_SKILL_FILES or total > MAX_SKILL_BYTES:
                # SEP-2640 resources: servers SHOULD NOT serve a larger one
                raise BadSkill(
                    f"it has more than {MAX_SKILL_FILES} files or {MAX_SKILL_BYTES} bytes"
                )
            files.append(self._make_file_entry(entry))
        skill = Skill(
            uri=self.uris.of((*parts, SKILL_FILE)),
            frontmatter=read_frontmatter(text),
            resources=files,
        )
        check_entry(skill)
        return skill

    def find(self, uri: str) -> tuple[str, ...] | None:
        """The name of the skill whose ``SKILL.md`` is at a URI; None where there is none."""
        parts = self.find_parts(uri)
        if not parts or parts[-1] != SKILL_FILE or not self._has_file(parts):
            return None
        return parts[:-1]

    def find_parts(self, uri: str) -> tuple[str, ...] | None:
        """The name at a URI; None where it is none of this folder's."""
        values = self.uris.match(uri)
        if values is None or values["after"]:
            return None
        try:
            return self._folder.parts(values["path"])
        except FileMissing:
            return None

    def list_directory(self, parts: tuple[str, ...]) -> list[Resource] | None:
        """The direct children of a folder of a skill; None where it is no such folder."""
        if not self._is_in_skill((*parts, SKILL_FILE)):
            return None
        try:
            entries, _ = self._folder.page(parts, "", MAX_ENTRIES_HELD)
        except FileMissing:
            return None
        return [self._describe_child(entry) for entry in entries]

    # Inside

    def _find_skills(self) -> Iterator[tuple[str, ...]]:
        for entry in self._folder.walk():
            if entry.path[-1] == SKILL_FILE and len(entry.path) > 1:
                yield entry.path[:-1]

    def _is_in_skill(self, parts: tuple[str, ...]) -> bool:
        """Whether a file is one of a skill: a folder on the way to it has a ``SKILL.md``."""
        return any(self._has_file((*parts[:end], SKILL_FILE)) for end in range(1, len(parts)))

    def _has_file(self, parts: tuple[str, ...]) -> bool:
        try:
            self._folder.read(parts, 0)
        except FileTooLarge:
            return True
        except FileMissing:
            return False
        return False  # an empty one has no frontmatter

    def _read_text(self, parts: tuple[str, ...]) -> str:
        try:
            return self._folder.read(parts, self._file_size).decode()
        except UnicodeDecodeError:
            raise BadSkill("it is no UTF-8") from None
        except FileTooLarge as error:
            raise BadSkill(f"it is too large: {error}") from None

    def _make_file_entry(self, entry: FolderEntry) -> SkillResource:
        status = entry.status
        state = (status.st_mtime_ns, status.st_size, status.st_ino)
        known = self._known.get(entry.path)
        if known is not None and known[0] == state:
            return known[1]
        try:
            data = self._folder.read(entry.path, self._file_size)
        except FileTooLarge as error:
            raise BadSkill(f"{entry.path[-1]} is too large: {error}") from None
        made = SkillResource(uri=self.uris.of(entry.path), digest=make_digest(data), size=len(data))
        self._known[entry.path] = state, made
        return made

    def _describe(self, file: SkillResource, skill: Skill) -> Resource:
        name = file.uri.rpartition("/")[2]
        if name != SKILL_FILE:
            return Resource(
                uri=file.uri, name=name, mime_type=guess_mime_type(name) or UNSET, size=file.size
            )
        # SEP-2640 resource metadata: SHOULD be those of the frontmatter
        return Resource(
            uri=file.uri,
            name=skill.frontmatter["name"] if file.uri == skill.uri else name,
            description=skill.frontmatter["description"] if file.uri == skill.uri else UNSET,
            mime_type="text/markdown",
            size=file.size,
        )

    def _describe_child(self, entry: FolderEntry) -> Resource:
        name, uri = entry.path[-1], self.uris.of(entry.path)
        if entry.is_folder:
            # SEP-2640 directory listing: subdirectories are listed as directory resources
            return Resource(uri=uri, name=name, mime_type=DIRECTORY_TYPE)
        kind = guess_mime_type(name) or UNSET
        return Resource(uri=uri, name=name, mime_type=kind, size=entry.status.st_size)


class Skills:
    """The skills of one server, and the methods of the extension.

    Args:
        settings: those of the server, shared by all its parts.

    Attributes:
        routes: the handler of each method.
    """

    def __init__(self, settings: "SharedSettings") -> None:
        self._settings = settings
        self._folders: list[SkillFolder] = []
        self.routes: dict[str, Handler] = {
            "skills/list": self._list,
            "skills/get": self._get,
            "resources/directory/read": self._read_directory,
        }

    def add(
        self, resources: "Resources", root: "str | os.PathLike[str]", prefix: str, **options: Any
    ) -> int:
        """Offer a folder of skills; see ``Server.add_skills``.

        Returns:
            How many there are.

        Raises:
            UsageError: there is no such folder, or a skill in it cannot be served.
        """
        root = os.path.realpath(root)
        where, pattern = root, "**/*"
        if os.path.isfile(os.path.join(root, SKILL_FILE)):  # noqa: PTH113, PTH118 - pathlib costs start-up time
            where, name = os.path.split(root)
            pattern = f"{name}/**/*"
        path = prefix.strip("/")
        uris = FolderUris(f"{SKILL_SCHEME}{path}/" if path else SKILL_SCHEME)
        scopes = options.get("scopes", NO_SCOPES)
        folder = ServedFolder(where, pattern=[pattern, pattern.replace("/**", "")])
        offered = SkillFolder(folder, uris, self._settings.limits.file_size, scopes)
        found = offered.check()
        resources.add_folder(offered, uris, uris.of(()), **{"name": "skills", **options})
        self._folders.append(offered)
        return found

    async def _list(self, params: ListSkillsParams, inbound: Inbound) -> ListSkillsResult:
        settings = self._settings
        visible = settings.visible
        granted = (
            None
            if visible is None
            else visible.find_granted(inbound, [folder.scopes for folder in self._folders])
        )
        folders = [one for one in self._folders if is_listed_for(granted, one.scopes)]
        found = await settings.workers.run(
            lambda: [skill for folder in folders for skill in folder.list_skills()]
        )
        try:
            # SEP-2640 enumeration: an entry is never split across pages
            page = paginate(
                found,
                lambda skill: skill.uri,
                cursor=None if params.cursor is UNSET else params.cursor,
                size=settings.page_size,
                secret=settings.cursor_secret,
                scope=f"skills/list {owner_of(inbound.principal) if granted is not None else ''}",
            )
        except BadCursor as error:
            raise Refuse(-32602, f"Invalid params: {error}") from error
        return ListSkillsResult(
            skills=page.items,
            next_cursor=page.next_cursor or UNSET,
            ttl_ms=0,
            cache_scope="private",
        )

    async def _get(self, params: GetSkillParams, _inbound: Inbound) -> GetSkillResult:
        def find() -> Skill | None:
            for folder in self._folders:
                parts = folder.find(params.uri)
                if parts is not None:
                    return folder.make_entry(parts)
            return None

        try:
            found = await self._settings.workers.run(find)
        except (BadSkill, FileMissing) as error:
            raise Refuse(-32602, f"The skill cannot be served: {error}") from error
        if found is None:
            # SEP-2640 retrieval: MUST be -32602 where the URI is no skill's
            raise Refuse(-32602, f"There is no skill at {shorten(params.uri)}")
        return GetSkillResult(skill=found, ttl_ms=0, cache_scope="private")

    async def _read_directory(
        self, params: ReadDirectoryParams, inbound: Inbound
    ) -> ReadDirectoryResult:
        found = await self._settings.workers.run(partial(self._find_directory, params.uri))
        if found is None:
            # SEP-2640 directory listing: MUST be -32602 where it is no directory
            raise Refuse(-32602, f"There is no directory at {shorten(params.uri)}")
        try:
            page = paginate(
                found,
                lambda child: child.uri,
                cursor=None if params.cursor is UNSET else params.cursor,
                size=self._settings.page_size,
                secret=self._settings.cursor_secret,
                scope=f"resources/directory/read {params.uri} {owner_of(inbound.principal)}",
            )
        except BadCursor as error:
            raise Refuse(-32602, f"Invalid params: {error}") from error
        return ReadDirectoryResult(
            resources=page.items,
            next_cursor=page.next_cursor or UNSET,
            ttl_ms=0,
            cache_scope="private",
        )

    def _find_directory(self, uri: str) -> list[Resource] | None:
        for folder in self._folders:
            parts = folder.find_parts(uri)
            if parts:
                return folder.list_directory(parts)
        return None
