"""Frontmatter of a SKILL.md: YAML between two lines of ``---``, with the name and the description of the skill."""

import re
from typing import Any

from isthmus.errors import IsthmusError
from isthmus.skills.entry import MAX_DESCRIPTION_CHARS, NAME_PATTERN
from isthmus.yaml_text import BadYaml, read_yaml

MAX_FRONTMATTER_CHARS = 64 * 1024
MAX_FRONTMATTER_PARTS = 2_000
MAX_FRONTMATTER_DEPTH = 16

FENCE = re.compile(r"---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)


class BadSkill(IsthmusError):
    """A SKILL.md, or an entry of a skill, is not as SEP-2640 and the Agent Skills specification have it."""


def read_frontmatter(text: str) -> dict[str, Any]:
    """The frontmatter of a SKILL.md, word for word.

    Args:
        text: the whole file.

    Raises:
        BadSkill: there is none, or it lacks a name or a description.
        UsageError: PyYAML is not installed.
    """
    return check_frontmatter(_parse(split_frontmatter(text)[0]))


def split_frontmatter(text: str) -> tuple[str, str]:
    """The YAML of a SKILL.md's frontmatter, and the text below it.

    Raises:
        BadSkill: there is no frontmatter, or it is too long.
    """
    text = text.removeprefix("\ufeff")
    found = FENCE.match(text[: MAX_FRONTMATTER_CHARS + 16])
    if found is None:
        # SEP-2640 skill format: SKILL.md MUST begin with YAML frontmatter
        raise BadSkill(
            "it does not begin with frontmatter: a line '---', YAML with name and description, and "
            f"a line '---', in {MAX_FRONTMATTER_CHARS} characters at most"
        )
    return found[1], text[found.end() :]


def check_frontmatter(found: Any) -> dict[str, Any]:
    """The frontmatter itself, if it has what every skill has.

    Raises:
        BadSkill: it lacks a name or a description, or they break the rules for them.
    """
    if not isinstance(found, dict):
        raise BadSkill("its frontmatter is no mapping: write 'name: …' and 'description: …'")
    name, description = found.get("name"), found.get("description")
    # SEP-2640 skill format: at minimum the name and description fields
    if not isinstance(name, str) or not NAME_PATTERN.fullmatch(name):
        raise BadSkill(
            f"its name is {name!r}: it has 1 to 64 lower-case letters, digits and single hyphens, "
            "none at either end"
        )
    if not isinstance(description, str) or not description.strip():
        raise BadSkill("its frontmatter has no description")
    if len(description) > MAX_DESCRIPTION_CHARS:
        raise BadSkill(f"its description has more than {MAX_DESCRIPTION_CHARS} characters")
    return found


def _parse(text: str) -> Any:
    try:
        return read_yaml(text, max_parts=MAX_FRONTMATTER_PARTS, max_depth=MAX_FRONTMATTER_DEPTH)
    except BadYaml as error:
        where = f"line {error.line + 1}, column {error.column}"
        raise BadSkill(f"its frontmatter is no YAML: {error} ({where})") from None
