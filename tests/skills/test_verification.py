"""Entries of skills that can be true, and files that are what their entry says."""

import pytest

from isthmus.skills.entry import Skill, SkillResource, get_skill_name, get_skill_root
from isthmus.skills.frontmatter import BadSkill
from isthmus.skills.verification import (
    SkillUnverified,
    check_entry,
    make_digest,
    make_fingerprint,
    verify_file,
    verify_frontmatter,
)

URI = "skill://acme/refunds/SKILL.md"
TEXT = "---\nname: refunds\ndescription: d\nmetadata: {a: 1}\n---\n"


def make_skill(*more, uri=URI, name="refunds", digest=None, size=None):
    """An entry of one file, and further ones."""
    data = TEXT.encode()
    own = SkillResource(
        uri=uri, digest=digest or make_digest(data), size=len(data) if size is None else size
    )
    told = {"name": name, "description": "d", "metadata": {"a": 1}}
    return Skill(uri=uri, frontmatter=told, resources=[own, *more])


EMPTY_DIGEST = make_digest(b"")


def file(uri, digest=EMPTY_DIGEST, size=0):
    """A file of an entry."""
    return SkillResource(uri=uri, digest=digest, size=size)


def test_names_and_roots_are_read_off_the_uri():
    """SEP-2640 resource mapping: the last segment of the path is the name."""
    assert "refunds" == get_skill_name(URI)
    assert "skill://acme/refunds" == get_skill_root(URI)
    assert get_skill_name("skill://SKILL.md") is None
    assert get_skill_root("skill://acme/refunds/other.md") is None
    assert get_skill_root("no uri") is None


@pytest.mark.parametrize(
    "skill",
    [
        make_skill(uri="skill://acme/other/SKILL.md"),
        make_skill(uri="skill://acme/refunds/readme.md"),
        make_skill(name="Refunds"),
        make_skill(file("skill://acme/refunds2/x")),
        make_skill(file("skill://acme/refunds/../other/x")),
        make_skill(file("skill://acme/refunds//x")),
        make_skill(file("file:///etc/passwd")),
        make_skill(file(URI)),
        make_skill(file("skill://acme/refunds/x", digest="sha256:ABC")),
        make_skill(file("skill://acme/refunds/x", digest="md5:" + "0" * 32)),
        make_skill(file("skill://acme/refunds/x", size=-1)),
        make_skill(file("skill://acme/refunds/x", size=17_000_000)),
        make_skill(*(file(f"skill://acme/refunds/{n}") for n in range(512))),
        Skill(uri=URI, frontmatter={"name": "refunds", "description": "d"}, resources=[]),
    ],
)
def test_an_entry_that_cannot_be_true_is_refused(skill):
    """SEP-2640 resources: complete, within the skill, each file once, with digests."""
    with pytest.raises(BadSkill):
        check_entry(skill)


def test_an_entry_that_can_be_true_passes():
    """Ours: the same entry without the faults."""
    check_entry(make_skill(file("skill://acme/refunds/templates/a.md")))
    check_entry(Skill(uri=URI, frontmatter={"name": "refunds", "description": "d"}))


@pytest.mark.parametrize(
    ("skill", "uri", "data"),
    [
        (make_skill(), URI, TEXT.encode() + b" "),
        (make_skill(digest=make_digest(b"x" * len(TEXT))), URI, TEXT.encode()),
        (make_skill(size=5), URI, TEXT.encode()),
        (make_skill(), "skill://acme/refunds/unlisted", b""),
    ],
)
def test_a_file_that_differs_from_its_entry_is_refused(skill, uri, data):
    """SEP-2640 integrity: another digest, another size and an unlisted file are the same failure."""
    with pytest.raises(SkillUnverified):
        verify_file(skill, uri, data)


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace("description: d", "description: e"),
        TEXT.replace("metadata: {a: 1}", "metadata: {a: true}"),
        TEXT.replace("metadata: {a: 1}\n", ""),
        TEXT.replace("---\n", "---\nallowed-tools: [Bash]\n", 1),
    ],
)
def test_a_frontmatter_that_differs_from_its_entry_is_refused(text):
    """SEP-2640 integrity: compared field by field, so that what was approved is what is read."""
    verify_frontmatter(make_skill(), TEXT)
    with pytest.raises(SkillUnverified):
        verify_frontmatter(make_skill(), text)


def test_the_fingerprint_changes_with_each_file_and_field():
    """SEP-2640 security: an approval is bound to every URI and digest."""
    one, more = make_skill(), make_skill(file("skill://acme/refunds/x"))
    other = make_skill(digest=make_digest(b"other"))

    assert 3 == len({make_fingerprint(skill) for skill in (one, more, other)})
    assert make_fingerprint(one) == make_fingerprint(make_skill())
