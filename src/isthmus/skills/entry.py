"""Skill entries of SEP-2640, the methods that carry them, and the rules of their names and URIs.

A skill is a folder with a ``SKILL.md``. Each of its files is a resource; its entry lists all of them with
their digests, so that a reader can check what it gets.
"""

import re
from typing import Any, Literal

from msgspec import UNSET, UnsetType

from isthmus.wire import Resource
from isthmus.wire.results import CacheableResult
from isthmus.wire.struct import Meta, Wire

SKILLS = "io.modelcontextprotocol/skills"  # the identifier of the extension
SKILL_FILE = "SKILL.md"
DYNAMIC: Literal["dynamic"] = (
    "dynamic"  # in place of the files, where a skill is generated and has no digests
)
DIRECTORY_TYPE = "inode/directory"

# SEP-2640 resources: servers SHOULD NOT serve more, and hosts may refuse it
MAX_SKILL_FILES = 512
MAX_SKILL_BYTES = 16 * 1024 * 1024

MAX_DESCRIPTION_CHARS = 1024  # Agent Skills specification, frontmatter
NAME_PATTERN = re.compile(r"(?!.*--)[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?", re.ASCII)
DIGEST_PATTERN = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)


class SkillResource(Wire, frozen=True, kw_only=True):
    """One file of a skill.

    Attributes:
        uri: the resource.
        digest: ``"sha256:"`` and 64 hexadecimal digits, of its bytes.
        size: its bytes, in number.
    """

    uri: str
    digest: str
    size: int | UnsetType = UNSET


class Skill(Wire, frozen=True, kw_only=True):
    """Entry of a skill, as servers list it.

    Attributes:
        uri: the resource of its ``SKILL.md``.
        frontmatter: the frontmatter of that file, word for word; ``name`` and ``description`` are in it.
        resources: all its files; ``"dynamic"`` where they are generated and have no digests.
        meta: anything else.
    """

    uri: str
    frontmatter: dict[str, Any]
    resources: list[SkillResource] | Literal["dynamic"] = DYNAMIC
    meta: Meta | UnsetType = UNSET


class ListSkillsParams(Wire, frozen=True, kw_only=True):
    """``skills/list``: a page of the skills there are."""

    cursor: str | UnsetType = UNSET
    meta: Meta | UnsetType = UNSET


class ListSkillsResult(CacheableResult, frozen=True, kw_only=True):
    """One page of skills; ``next_cursor`` is present where there are more."""

    skills: list[Skill]
    next_cursor: str | UnsetType = UNSET


class GetSkillParams(Wire, frozen=True, kw_only=True):
    """``skills/get``: the entry of one skill, by the URI of its ``SKILL.md``."""

    uri: str
    meta: Meta | UnsetType = UNSET


class GetSkillResult(CacheableResult, frozen=True, kw_only=True):
    """The entry of one skill."""

    skill: Skill


class ReadDirectoryParams(Wire, frozen=True, kw_only=True):
    """``resources/directory/read``: a page of what lies in a folder."""

    uri: str
    cursor: str | UnsetType = UNSET
    meta: Meta | UnsetType = UNSET


class ReadDirectoryResult(CacheableResult, frozen=True, kw_only=True):
    """One page of the files and folders that lie in a folder, and in none below it."""

    resources: list[Resource]
    next_cursor: str | UnsetType = UNSET


def get_skill_root(uri: str) -> str | None:
    """The URI of the folder of a skill, by that of its ``SKILL.md``; None where it is none."""
    root = uri.removesuffix(f"/{SKILL_FILE}")
    return root if root != uri and get_skill_name(uri) else None


def get_skill_name(uri: str) -> str | None:
    """The name of a skill by the URI of its ``SKILL.md``; None where it is no such URI."""
    _, scheme, path = uri.partition("://")
    parts = path.split("/")
    if not scheme or len(parts) < 2 or parts[-1] != SKILL_FILE:
        return None
    return parts[-2] or None
