"""Frontmatter of skills: what is read, and what is refused."""

import pytest

from isthmus.skills.frontmatter import BadSkill, read_frontmatter, split_frontmatter

GOOD = "---\nname: pdf-forms\ndescription: Fill in forms.\nallowed-tools: [Bash]\n---\nBody.\n"


def test_every_field_is_kept_word_for_word():
    """SEP-2640 frontmatter: every field the author wrote, not a chosen few."""
    assert {
        "name": "pdf-forms",
        "description": "Fill in forms.",
        "allowed-tools": ["Bash"],
    } == read_frontmatter(GOOD)


@pytest.mark.parametrize("text", [GOOD, "\ufeff" + GOOD, GOOD.replace("\n", "\r\n")])
def test_the_text_below_is_found(text):
    """Ours: a byte order mark and Windows' line ends change nothing."""
    assert "Body." == split_frontmatter(text)[1].strip()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Body.", "does not begin with frontmatter"),
        ("\n" + GOOD, "does not begin with frontmatter"),
        ("---\nname: a\n", "does not begin with frontmatter"),
        ("---\n- a\n---\n", "no mapping"),
        ("---\nname: a\n---\n", "no description"),
        ("---\nname: a\ndescription: ' '\n---\n", "no description"),
        (f"---\nname: a\ndescription: {'x' * 1025}\n---\n", "more than 1024"),
        ("---\nname: Upper\ndescription: d\n---\n", "lower-case letters"),
        ("---\nname: a--b\ndescription: d\n---\n", "single hyphens"),
        ("---\nname: ../b\ndescription: d\n---\n", "lower-case letters"),
        (f"---\nname: {'a' * 65}\ndescription: d\n---\n", "1 to 64"),
        ("---\nname: 12\ndescription: d\n---\n", "its name is 12"),
        ("---\nname: [\n---\n", "no YAML: .*line 3"),
        ("---\n" + "x: 1\n" * 40_000 + "---\n", "characters at most"),
    ],
)
def test_what_is_no_frontmatter_is_refused(text, message):
    """SEP-2640 skill format: a SKILL.md begins with a name and a description."""
    with pytest.raises(BadSkill, match=message):
        read_frontmatter(text)
