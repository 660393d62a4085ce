"""Changes to a text of JSON with comments."""

import pytest

from isthmus.host.config.syntax import parse_jsonc
from isthmus.host.config.write import remove_member, replace_member

TEXT = """{
    // mine
    "mcpServers": {
        "a": {"command": "x"}, // first
        /* kept */ "b": {
            "command": "y" // why
        }
    },
    "other": [1,  2] // ours not
}
"""


@pytest.mark.covers("hostconfig.write.only-what-was-told")
def test_a_member_is_added_behind_the_others():
    """Ours: in the file's own indentation, with every comment where it was."""
    assert """{
    // mine
    "mcpServers": {
        "a": {"command": "x"}, // first
        /* kept */ "b": {
            "command": "y" // why
        },
        "c": {
            "command": "z"
        }
    },
    "other": [1,  2] // ours not
}
""" == replace_member(TEXT, ("mcpServers", "c"), {"command": "z"})


@pytest.mark.covers("hostconfig.write.only-what-was-told")
def test_a_value_is_put_in_the_place_of_another():
    """Ours: nothing besides moves."""
    assert TEXT.replace('"x"', '"ü"') == replace_member(TEXT, ("mcpServers", "a", "command"), "ü")


@pytest.mark.covers("hostconfig.write.only-what-was-told")
def test_a_member_is_taken_out_with_its_comma():
    """Ours: the first, and the last; comments of others stay."""
    without_a = remove_member(TEXT, ("mcpServers", "a"))
    without_both = remove_member(without_a, ("mcpServers", "b"))

    assert {"b": {"command": "y"}} == parse_jsonc(without_a).value["mcpServers"]
    assert {} == parse_jsonc(without_both).value["mcpServers"]
    assert ["// mine", "// first", "/* kept */", "// ours not"] == [
        one for one in ("// mine", "// first", "/* kept */", "// ours not") if one in without_both
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{}", '{\n  "a": {\n    "b": 1\n  }\n}'),
        ("{ // c\n}", '{ // c\n  "a": {\n    "b": 1\n  }\n}'),
        ('{"x": 1}', '{"x": 1, "a": {\n  "b": 1\n}}'),
        ('{"x": 1, }', '{"x": 1, "a": {\n  "b": 1\n} }'),
        ('{\n\t"x": 1,\n}\n', '{\n\t"x": 1,\n\t"a": {\n\t\t"b": 1\n\t},\n}\n'),
        ('{\r\n  "x": 1\r\n}', '{\r\n  "x": 1,\r\n  "a": {\r\n    "b": 1\r\n  }\r\n}'),
        ('{\n  "x": 1 // c\n}', '{\n  "x": 1, // c\n  "a": {\n    "b": 1\n  }\n}'),
        ('{\n  "x": 1 // c\n  // d\n}', '{\n  "x": 1, // c\n  // d\n  "a": {\n    "b": 1\n  }\n}'),
        ('{\n  "x": 1}', '{\n  "x": 1,\n  "a": {\n    "b": 1\n  }\n}'),
        ('{"a": {}}', '{"a": {\n  "b": 1\n}}'),
        ('{"a": {"b": 2}}', '{"a": {"b": 1}}'),
    ],
)
def test_whatever_the_file_looks_like(before, after):
    """Ours: tabs, one line, trailing commas, line ends of Windows."""
    assert after == replace_member(before, ("a", "b"), 1)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"a": 1}', "{}"),
        ('{"a": 1, "b": 2}', '{ "b": 2}'),
        ('{"b": 2, "a": 1}', '{"b": 2 }'),
        ('{\n  "a": 1,\n  "b": 2\n}', '{\n  "b": 2\n}'),
        ('{\n  "b": 2,\n  "a": 1\n}', '{\n  "b": 2\n}'),
        ('{\n  "b": 2, // c\n  "a": 1 // d\n}', '{\n  "b": 2 // c\n // d\n}'),
        ('{\n  "a": 1 /* c */,\n}', "{\n /* c */\n}"),
        ('{"b": 2}', '{"b": 2}'),
    ],
)
def test_a_member_goes_without_a_trace(before, after):
    """Ours: no comma too many, and no empty line."""
    assert after == remove_member(before, ("a",))


def test_what_is_no_object_takes_no_member():
    """Ours: a list of servers is not overwritten."""
    with pytest.raises(KeyError, match="a"):
        replace_member('{"a": [1]}', ("a", "b"), 1)
