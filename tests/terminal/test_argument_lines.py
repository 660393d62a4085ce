"""Arguments as people read them: in a row, beside each other, and whole."""

from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.cards.lines import (
    compare_arguments,
    join_lines,
    list_arguments,
    pick_telling_argument,
)
from isthmus.host.model.interaction import CallAsked
from support.examples import count_examples
from support.host.waiting_host import TOOL, make_interaction


def call(id="q1", **arguments):
    """A call that somebody asks about."""
    return make_interaction(id, CallAsked(tool=TOOL, arguments=arguments))


def test_a_row_shows_the_argument_that_says_most():
    """Ours: a path says more than a flag; beside others of its kind what differs says most."""
    one, other = call(dry=True, path="/a"), call("q2", dry=False, path="/a")

    assert "path=/a" == pick_telling_argument(one)
    assert "path=/a" == pick_telling_argument(one, [one])
    assert ["dry=true", "dry=false"] == [
        pick_telling_argument(x, [one, other]) for x in (one, other)
    ]
    assert "odd=[1, 2]" == pick_telling_argument(call(odd=[1, 2]))
    assert "path=a<U+202E>b<U+000A>c" == pick_telling_argument(call(path="a\u202eb\nc"))
    assert "" == pick_telling_argument(call())


def test_a_group_is_a_table_of_what_differs():
    """Ours: what is the same stands below, once."""
    several = [call(path="/a", depth=1, all=True), call(path="/long/b", all=True)]

    assert [
        "-- what differs --",
        "  |   | path    | depth",
        "  | 1 | /a      | 1",
        "  | 2 | /long/b | -",
        "-- the same in all --",
        "  | {",
        '  |   "all": true',
        "  | }",
    ] == [line.text for line in compare_arguments(several)]


def test_a_group_with_long_values_has_a_line_for_each():
    """Ours: nothing is cut so that it fits into a table."""
    several = [call(text="x" * 100), call(text="y" * 100)]

    assert [
        "-- what differs --",
        f"  | 1. text: {'x' * 100}",
        f"  | 2. text: {'y' * 100}",
    ] == [line.text for line in compare_arguments(several)]


def test_a_text_of_several_lines_is_read_line_by_line():
    """Ours: nobody reads a page with backslashes in it."""
    found = list_arguments({"path": "a.txt", "parts": [{"body": "one\ntwo\n"}]})

    assert [
        "  | {",
        '  |   "path": "a.txt",',
        '  |   "parts": [',
        "  |     {",
        '  |       "body": (3 lines: below)',
        "  |     }",
        "  |   ]",
        "  | }",
        "  line by line: parts[0].body",
        "  | one",
        "  | two",
        "  | ",
    ] == [line.text for line in found]


def test_an_edit_is_a_difference():
    """Ours: what stays, what goes and what comes, all of it."""
    edit = {"old_string": "def f():\n    return 1\n", "new_string": "def f():\n    return 2\n"}
    found = list(list_arguments({"path": "a.py", "edits": [edit]}))

    assert '  |       "old_string": (an edit: below),' in join_lines(found)
    assert [
        ("  before (-) and after (+): edits[0].old_string, edits[0].new_string", "text"),
        ("  |   def f():", "text"),
        ("  | -     return 1", "removed"),
        ("  | +     return 2", "added"),
        ("  |   ", "text"),
    ] == [(line.text, line.role) for line in found[-5:]]


def test_an_edit_within_a_line_is_whole_twice():
    """Ours: the JSON has it, and the difference below."""
    text = join_lines(list_arguments({"before": "a", "after": "b"}))

    assert '  |   "before": "a",' in text
    assert text.endswith("  | - a\n  | + b")


@settings(max_examples=count_examples(60))
@given(st.text(st.sampled_from('ab\n\r:"0123456789abcdef'), max_size=60), st.booleans())
def test_nothing_of_a_text_is_lost(text, edit):
    """Ours: neither in an edit nor in a text of several lines."""
    arguments = {"old": text, "new": "x\ny"} if edit else {"text": text}
    shown = join_lines(list_arguments(arguments))

    for part in text.replace("\r", "\n").split("\n"):
        assert part.replace('"', "") in shown.replace('\\"', "").replace('"', "")


def test_arguments_nested_hundreds_of_times_are_shown():
    """Ours: a card that cannot be shown can be neither allowed nor denied."""
    nested = "one\ntwo"
    for _ in range(600):
        nested = [nested]

    assert '"one\\ntwo"' in "\n".join(line.text for line in list_arguments({"what": nested}))
