"""Providers of skills, under the names of ``fastmcp.server.providers.skills``: folders with a ``SKILL.md`` as resources."""

import json
import logging
import mimetypes
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from isthmus.compat.fastmcp.resources.model import Resource
from isthmus.compat.fastmcp.resources.template import ResourceTemplate
from isthmus.compat.fastmcp.server.providers.component_provider import Provider
from isthmus.errors import UsageError
from isthmus.skills.frontmatter import BadSkill, split_frontmatter
from isthmus.yaml_text import BadYaml, read_yaml

logger = logging.getLogger("fastmcp.server.providers.skills")

MAIN_FILE, MANIFEST = "SKILL.md", "_manifest"

MAX_DESCRIPTION_CHARS = 200  # where the first line of the text is the description

SupportingFiles = Literal["template", "resources"]

mimetypes.add_type("text/markdown", ".md")


@dataclass(frozen=True)
class SkillInfo:
    """Skill in a folder.

    Attributes:
        path: the folder.
        main_file: the file with the instructions.
        description: when to use it.
        files: all its files by their paths in the folder: bytes and digest.
    """

    path: Path
    main_file: str
    description: str
    files: dict[str, tuple[int, str]]

    @property
    def name(self) -> str:
        """Its name, which is the folder's."""
        return self.path.name

    @property
    def uri_prefix(self) -> str:
        """What the URIs of its files begin with."""
        return f"skill://{self.name}/"

    def make_manifest(self) -> str:
        """The list of its files as JSON."""
        files = [
            {"path": path, "size": size, "hash": digest}
            for path, (size, digest) in self.files.items()
        ]
        return json.dumps({"skill": self.name, "files": files}, indent=2)

    def read(self, path: str) -> str | bytes:
        """Read a file.

        Raises:
            ValueError: it is outside of the folder, or no file.
            FileNotFoundError: there is none.
        """
        found = resolve_inside(self.path, path)
        if not found.exists():
            raise FileNotFoundError(f"File not found: {path}")
        if not found.is_file():
            raise ValueError(f"Not a file: {path}")
        kind = mimetypes.guess_type(found.name)[0] or ""
        return found.read_text("utf-8") if kind.startswith("text/") else found.read_bytes()


class SkillFile(Resource):
    """File of a skill, or the list of its files."""

    skill: Any
    path: str

    def get_meta(self, include_fastmcp_meta: bool = True) -> dict[str, Any]:
        """Its meta, with the skill that it is of."""
        meta = super().get_meta(include_fastmcp_meta)
        told: dict[str, Any] = {"name": self.skill.name}
        if self.path in (self.skill.main_file, MANIFEST):
            told["is_manifest"] = self.path == MANIFEST
        for own in meta.values():
            own["skill"] = told
        return meta

    async def read(self) -> str | bytes:
        """Read it."""
        if self.path == MANIFEST:
            manifest: str = self.skill.make_manifest()
            return manifest
        found: str | bytes = self.skill.read(self.path)
        return found


class SkillFiles(ResourceTemplate):
    """Template of the files of a skill."""

    skill: Any

    async def read(self, arguments: dict[str, Any]) -> str | bytes:
        """Read a file."""
        found: str | bytes = self.skill.read(arguments.get("path", ""))
        return found


class SkillProvider(Provider):
    """Provider of the skill in a folder.

    Args:
        skill_path: the folder.
        main_file_name: the file with the instructions.
        supporting_files: the other files are read by a template, or listed each.

    Raises:
        FileNotFoundError: there is no such folder, or no instructions in it.
    """

    def __init__(
        self,
        skill_path: str | Path,
        main_file_name: str = MAIN_FILE,
        supporting_files: SupportingFiles = "template",
    ) -> None:
        super().__init__()
        self.skill_info = load_skill(Path(skill_path).resolve(), main_file_name)
        self._lists_files = supporting_files == "resources"

    async def _list_resources(self) -> Sequence[Any]:
        return list_resources(self.skill_info, every=self._lists_files)

    async def _list_resource_templates(self) -> Sequence[Any]:
        return () if self._lists_files else (make_template(self.skill_info),)


class SkillsDirectoryProvider(Provider):
    """Provider of the skills in the folders of one or several folders; the first one of a name wins.

    Args:
        roots: the folders that have folders of skills in them.
        reload: they are looked through each time.
        main_file_name: the file with the instructions of a skill.
        supporting_files: the other files are read by a template, or listed each.
        experimental_skills: cannot be had.

    Raises:
        UsageError: the extension of the protocol is asked for.
    """

    def __init__(
        self,
        roots: Any = (),
        reload: bool = False,
        main_file_name: str = MAIN_FILE,
        supporting_files: SupportingFiles = "template",
        *,
        experimental_skills: bool = False,
    ) -> None:
        super().__init__()
        if experimental_skills:
            raise UsageError(
                f"{type(self).__name__}(experimental_skills=True) is not offered by isthmus.compat.fastmcp: use "
                "server.add_skills(folder) of isthmus; see docs/guide/skills.md"
            )
        listed = [roots] if isinstance(roots, str | Path) else [*roots]
        self._roots = [Path(one).resolve() for one in listed]
        self._reload = reload
        self._main_file = main_file_name
        self._lists_files = supporting_files == "resources"
        self._skills = self._load()

    def _load(self) -> dict[str, SkillInfo]:
        found: dict[str, SkillInfo] = {}
        for root in self._roots:
            for folder in sorted(root.iterdir()) if root.is_dir() else ():
                path = folder.resolve()
                if path.name in found or not (path / self._main_file).exists():
                    continue
                try:
                    found[path.name] = load_skill(path, self._main_file)
                except (OSError, ValueError):
                    logger.exception("Failed to load skill: %s", path.name)
        return found

    def _list_skills(self) -> Sequence[SkillInfo]:
        if self._reload:
            self._skills = self._load()
        return [*self._skills.values()]

    async def _list_resources(self) -> Sequence[Any]:
        return [
            one
            for skill in self._list_skills()
            for one in list_resources(skill, every=self._lists_files)
        ]

    async def _list_resource_templates(self) -> Sequence[Any]:
        return [] if self._lists_files else [make_template(one) for one in self._list_skills()]


class VendorSkillsProvider(SkillsDirectoryProvider):
    """Provider of the skills where a program keeps them in the user's home folder; a subclass says where.

    Args:
        reload: they are looked through each time.
        supporting_files: the other files are read by a template, or listed each.
    """

    folders: Sequence[str] = ()

    def __init__(
        self, reload: bool = False, supporting_files: SupportingFiles = "template"
    ) -> None:
        super().__init__(
            [Path(one).expanduser() for one in self.folders], reload, MAIN_FILE, supporting_files
        )


class ClaudeSkillsProvider(VendorSkillsProvider):
    """Provider of the skills in ``~/.claude/skills``, where Claude Code keeps a user's.

    Args:
        reload: they are looked through each time.
        supporting_files: the other files are read by a template, or listed each.
    """

    folders = ("~/.claude/skills",)


VENDOR_FOLDERS = {
    "Cursor": ("~/.cursor/skills",),
    "VSCode": ("~/.copilot/skills",),
    "Codex": ("/etc/codex/skills", "~/.codex/skills"),
    "Gemini": ("~/.gemini/skills",),
    "Goose": ("~/.config/agents/skills",),
    "Copilot": ("~/.copilot/skills",),
    "OpenCode": ("~/.config/opencode/skills",),
}


def __getattr__(name: str) -> Any:
    folders = VENDOR_FOLDERS.get(name.removesuffix("SkillsProvider"))
    if folders is None or not name.endswith("SkillsProvider"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    made = type(
        name, (VendorSkillsProvider,), {"folders": folders, "__doc__": "Provider of skills."}
    )
    globals()[name] = made
    return made


def load_skill(path: Path, main_file: str) -> SkillInfo:
    """Load the skill in a folder.

    Raises:
        FileNotFoundError: there is no such folder, or no instructions in it.
        ValueError: the instructions are outside of it, or no text.
    """
    if not path.exists():
        raise FileNotFoundError(f"Skill directory not found: {path}")
    main = resolve_inside(path, main_file)
    if not main.exists():
        raise FileNotFoundError(
            f"Main skill file not found: {main}. Expected {main_file} in {path}"
        )
    description = find_description(main.read_text("utf-8")) or f"Skill: {path.name}"
    files: dict[str, tuple[int, str]] = {}
    for one in sorted(path.rglob("*")):
        if one.is_file() and one.resolve().is_relative_to(path):
            data = one.read_bytes()
            digest = f"sha256:{sha256(data).hexdigest()}"
            files[one.relative_to(path).as_posix()] = (len(data), digest)
    return SkillInfo(path, main_file, description, files)


def find_description(text: str) -> str:
    """The description in the frontmatter, or else the first line of the text; empty for none."""
    try:
        front, body = split_frontmatter(text)
        said = read_yaml(front)
    except BadSkill:
        front, body, said = "", text, None
    except BadYaml:  # a value with a colon in it, which is no YAML
        lines = (line.partition(":") for line in front.splitlines())
        said = {key.strip(): value.strip().strip("\"'") for key, _, value in lines}
    told = said.get("description") if isinstance(said, dict) else None
    if isinstance(told, str) and told:
        return told
    first = next((line.strip() for line in body.splitlines() if line.strip()), "")
    return first.lstrip("#").strip()[:MAX_DESCRIPTION_CHARS]


def resolve_inside(folder: Path, path: str) -> Path:
    """The place of a path in a folder.

    Raises:
        ValueError: it leads out of the folder.
    """
    found = (folder / path).resolve() if "\0" not in path else folder.parent
    if not found.is_relative_to(folder):
        raise ValueError(f"Invalid path: Path {path!r} escapes base")
    return found


def list_resources(skill: SkillInfo, *, every: bool) -> list[SkillFile]:
    """The resources of a skill: its instructions, the list of its files, and if asked for the files themselves."""
    made = [
        _make_file(skill, skill.main_file, skill.description, "text/markdown"),
        _make_file(skill, MANIFEST, f"File listing for {skill.name}", "application/json"),
    ]
    for path in skill.files if every else ():
        if path != skill.main_file:
            kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
            made.append(_make_file(skill, path, f"File from {skill.name} skill", kind))
    return made


def make_template(skill: SkillInfo) -> SkillFiles:
    """The template of a skill's files."""
    return SkillFiles(
        uri_template=f"{skill.uri_prefix}{{path*}}",
        name=f"{skill.name}_files",
        description=f"Access files within {skill.name}",
        mime_type="application/octet-stream",
        parameters={
            "type": "object",
            "properties": {"path": {"type": "string"}},
            "required": ["path"],
        },
        skill=skill,
    )


def _make_file(skill: SkillInfo, path: str, description: str, kind: str) -> SkillFile:
    from urllib.parse import quote

    return SkillFile(
        uri=f"{skill.uri_prefix}{quote(path, safe='/')}",  # type: ignore[arg-type]  # pydantic reads it
        name=f"{skill.name}/{path}",
        description=description,
        mime_type=kind,
        skill=skill,
        path=path,
    )
