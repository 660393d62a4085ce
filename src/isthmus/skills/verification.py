"""Verification of skills: entries that can be true, and files that are what their entry says.

A digest that fits says that a file and its entry belong together, and nothing about who wrote them: the server
made both (SEP-2640 integrity and verification).
"""

import hashlib
import json
from typing import Any

from msgspec import UNSET

from isthmus.skills.entry import (
    DIGEST_PATTERN,
    DYNAMIC,
    MAX_SKILL_BYTES,
    MAX_SKILL_FILES,
    SKILL_FILE,
    Skill,
    SkillResource,
    get_skill_name,
    get_skill_root,
)
from isthmus.skills.frontmatter import BadSkill, check_frontmatter, read_frontmatter


class SkillUnverified(BadSkill):
    """What a server sent is not what its entry of the skill promised: it must not be used."""


def check_entry(skill: Skill) -> None:
    """See that an entry can be true.

    Raises:
        BadSkill: it cannot; the message says why.
        SkillUnverified: its list of files is not whole, or leads elsewhere.
    """
    frontmatter = check_frontmatter(skill.frontmatter)
    root = get_skill_root(skill.uri)
    # SEP-2640 resource mapping: the final segment of the path MUST equal the name
    if root is None or get_skill_name(skill.uri) != frontmatter["name"]:
        raise BadSkill(
            f"the skill {frontmatter['name']!r} is at {skill.uri!r}, which does not end with its name "
            f"and /{SKILL_FILE}"
        )
    if skill.resources == DYNAMIC:
        return
    files = list_files(skill)
    # SEP-2640 resources: MUST be complete, with an entry for the SKILL.md itself
    if skill.uri not in files:
        raise SkillUnverified(f"the entry of {skill.uri} has no digest of its {SKILL_FILE}")
    if len(files) > MAX_SKILL_FILES or len(skill.resources) != len(files):
        raise SkillUnverified(
            f"the entry of {skill.uri} has a file twice, or more than {MAX_SKILL_FILES} of them"
        )
    for file in files.values():
        _check_file_entry(file, root)
    if sum(file.size or 0 for file in files.values()) > MAX_SKILL_BYTES:
        raise SkillUnverified(f"the skill {skill.uri} has more than {MAX_SKILL_BYTES} bytes")


def _check_file_entry(file: SkillResource, root: str) -> None:
    # SEP-2640 resources: MUST be the SKILL.md or a file within the skill's directory
    inside = file.uri.removeprefix(f"{root}/")
    parts = inside.split("/")
    if inside == file.uri or any(part in ("", ".", "..") for part in parts):
        raise SkillUnverified(f"{file.uri} is no file within {root}")
    if not DIGEST_PATTERN.fullmatch(file.digest) or (file.size or 0) < 0:
        raise SkillUnverified(f"{file.uri} has no digest of the form sha256:… and 64 digits")


def list_files(skill: Skill) -> dict[str, SkillResource]:
    """The files of a skill by their URIs; none where it is dynamic."""
    if isinstance(skill.resources, str):
        return {}
    return {file.uri: file for file in skill.resources}


def verify_file(skill: Skill, uri: str, data: bytes) -> None:
    """See that a file is what the entry of its skill says.

    Raises:
        SkillUnverified: it is not, or the entry does not list it.
    """
    if skill.resources == DYNAMIC:
        return
    file = list_files(skill).get(uri)
    if file is None:
        # SEP-2640 integrity: a read of an unlisted file MUST be treated as a failed verification
        raise SkillUnverified(f"{uri} is none of the files of the skill {skill.uri}")
    # SEP-2640 integrity: a host MUST verify the content, and MUST NOT use what does not fit
    if (file.size is not UNSET and file.size != len(data)) or file.digest != make_digest(data):
        raise SkillUnverified(
            f"{uri} is not what the server listed: it was changed since (get the entry of the skill "
            "again) or on its way"
        )


def verify_frontmatter(skill: Skill, text: str) -> None:
    """See that the frontmatter of a SKILL.md is that of its entry, field by field.

    Raises:
        SkillUnverified: it is not.
    """
    # SEP-2640 integrity: MUST parse and compare it field by field, and MUST NOT load it otherwise
    found, told = read_frontmatter(text), skill.frontmatter
    for name in sorted(found.keys() | told.keys()):
        if name not in found or name not in told or not _are_equal(found[name], told[name]):
            raise SkillUnverified(
                f"the {name} in {skill.uri} is not the one that the server listed"
            )


def make_digest(data: bytes) -> str:
    """The digest of a file's bytes, as entries have it."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def make_fingerprint(skill: Skill) -> str:
    """A digest over all that an approval of a skill is bound to: its files, their digests and its frontmatter."""
    # SEP-2640 security: a persisted approval MUST be bound to every uri and digest
    files = sorted((file.uri, file.digest) for file in list_files(skill).values())
    whole = [skill.uri, skill.frontmatter, files]
    return make_digest(json.dumps(whole, sort_keys=True, ensure_ascii=False).encode())


def _are_equal(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON: true is not 1."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
