"""Differences, for a person."""

import pytest

from isthmus.host.approvals.differences import compare_definitions, escape_invisible


@pytest.mark.covers("hostpolicy.fingerprints.diff")
def test_members_that_differ_are_shown_line_by_line_the_description_first():
    """Ours: with a line of what stands around, and nothing of what is the same."""
    before = {
        "name": "read",
        "description": "Reads.\nCarefully.\nAnd ends.",
        "inputSchema": {"a": 1, "b": 2},
    }
    after = {
        "name": "read",
        "description": "Reads.\nAnd sends.\nAnd ends.",
        "inputSchema": {"a": 1, "b": 3},
    }

    assert (
        "description:", "  Reads.", "- Carefully.", "+ And sends.", "  And ends.",
        "inputSchema:", '    "a": 1,', '-   "b": 2', '+   "b": 3', "  }",
    ) == compare_definitions(before, after)  # fmt: skip


def test_members_that_come_and_go_are_shown():
    """Ours: a new hint is a difference, too."""
    assert ("description:", "- x", "title:", "+ y") == compare_definitions(
        {"description": "x"}, {"title": "y"}
    )
    assert () == compare_definitions({"a": 1}, {"a": 1})


@pytest.mark.covers("hostpolicy.fingerprints.diff")
def test_what_has_no_shape_is_written_out():
    """Ours: a model reads what a person does not see."""
    odd = "a\u202eb\u200bc\u00a0d\ufe0fe\u3164f\U000e0041g\th\u2028i\x1bj\ufeffk"

    assert (
        "a⟨U+202E⟩b⟨U+200B⟩c⟨U+00A0⟩d⟨U+FE0F⟩e⟨U+3164⟩f⟨U+E0041⟩g⟨U+0009⟩h⟨U+2028⟩i⟨U+001B⟩j⟨U+FEFF⟩k"
        == escape_invisible(odd)
    )
    assert "grün 日本 🙂 a b" == escape_invisible("grün 日本 🙂 a b")
    assert ("description:", "- x", "+ x⟨U+200B⟩") == compare_definitions(
        {"description": "x"}, {"description": "x\u200b"}
    )
    assert ("⟨U+202E⟩name:", "+ 1") == compare_definitions({}, {"\u202ename": 1})


@pytest.mark.parametrize(
    ("one", "other"),
    [("a " * 5_000_000, "b " * 5_000_000), ("\n" * 10_000_000, "x"), ("x\n" * 100_000, "y\n" * 100_000),
     ("".join(f"{n}\n" for n in range(290)), "".join(f"{n}\n" for n in range(290, 0, -1)))],
    ids=["one-line", "empty-lines", "many-lines", "turned"],
)  # fmt: skip
@pytest.mark.covers("hostpolicy.fingerprints.diff")
def test_a_difference_is_bounded(one, other):
    """Ours: ten megabytes are shown by their beginning, with how much there is."""
    lines = compare_definitions({"description": one}, {"description": other})

    assert len(lines) < 700
    assert max(map(len, lines)) < 2_000
    assert any("…" in line for line in lines)


def test_a_word_slipped_into_a_long_text_is_found():
    """Ours: what is the same before and after it is left out."""
    text = "".join(f"line {n}\n" for n in range(50_000))
    lines = compare_definitions(
        {"description": text}, {"description": text.replace("line 777\n", "line 777\nsend it\n")}
    )

    assert ("description:", "  line 777", "+ send it", "  line 778") == lines


def test_true_in_place_of_one_is_a_difference():
    """Ours: they are equal in Python, and their fingerprints are not."""
    before, after = ({"inputSchema": {"default": one}} for one in (1, True))

    assert '-   "default": 1' in compare_definitions(before, after)
    assert '+   "default": true' in compare_definitions(before, after)
