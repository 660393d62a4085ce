"""JSON with comments, read with the place of every part."""

import json

import pytest

from isthmus.host.config.syntax import BadSyntax, find_node, locate_offset, parse_jsonc


def test_comments_and_trailing_commas_are_read():
    """Ours: what editors take is what we take."""
    text = '\ufeff// a\n{"a": [1, 2.5, -3e2, /* b */ true,], // c\n "b": {"c": null,},\n}\n/* d */'

    assert {"a": [1, 2.5, -300.0, True], "b": {"c": None}} == parse_jsonc(text).value


def test_a_slash_in_a_text_is_no_comment():
    """Ours: a URL is not cut."""
    assert {"url": "http://x/*y*/"} == parse_jsonc('{"url": "http://x/*y*/"}').value


def test_plain_json_means_what_it_always_does():
    """Ours: escapes, surrogates and all."""
    value = {'ü\n"': ["\U0001f600", "\\", ""], "n": [0, -1, 1.5e-7, 10**30]}

    assert value == parse_jsonc(json.dumps(value)).value


@pytest.mark.covers("hostconfig.file.syntax-place")
@pytest.mark.parametrize(
    ("text", "line", "column", "says"),
    [
        ('{"a": 1\n "b": 2}', 2, 2, "a comma or } is missing"),
        ('{"a" 1}', 1, 6, "a colon is missing after 'a'"),
        ("{a: 1}", 1, 2, 'a name in "quotes"'),
        ('{"a": }', 1, 7, "a value is missing"),
        ('{"a": "x\n"}', 1, 7, "does not end on its line"),
        ('{"a": "\\x"}', 1, 7, "an escape that JSON does not know"),
        ('{"a": 1} {', 1, 10, "the text should end here"),
        ('{\n/* "a": 1}', 2, 1, "this comment does not end"),
        ("", 1, 1, "a value is missing"),
        ("[1 2]", 1, 4, "a comma or ] is missing"),
        ('["\\ud83d"]', 1, 2, "an escape that JSON does not know"),
        ("[" * 200, 1, 102, "nested more than"),
        ('{"a": nul}', 1, 7, "no value"),
        (f'{{"a": {"1" * 5000}}}', 1, 7, "too long"),
    ],
)
def test_an_error_has_its_line_and_column(text, line, column, says):
    """Ours: a person finds the comma that is missing."""
    with pytest.raises(BadSyntax, match=says) as caught:
        parse_jsonc(text)

    assert (line, column) == (caught.value.line, caught.value.column)


def test_every_part_knows_where_it_stands():
    """Ours: an error about a member names its line."""
    text = '{\n  "a": {\n    "b": [10, 20]}}'
    node = parse_jsonc(text)

    assert (3, 5) == locate_offset(text, find_node(node, ("a", "b"))[0])
    assert (3, 15) == locate_offset(text, find_node(node, ("a", "b", 1))[0])
    assert [None, None] == [find_node(node, ("a", "x")), find_node(node, ("a", "b", 2))]


def test_a_name_that_stands_twice_is_told():
    """Ours: of two members of one name one is lost, and somebody has to say so."""
    node = parse_jsonc('{"a": 1, "b": 2, "a": 3}')

    assert ({"a": 3, "b": 2}, ["a"]) == (node.value, list(node.twice))


@pytest.mark.parametrize(
    ("number", "told"),
    [("1.5e999", "too large"), ("-2e400", "too large"), ("9" * 5000, "too long")],
)
def test_a_number_that_cannot_be_kept_is_refused(number, told):
    """Ours: it would be written back as something that is no JSON."""
    with pytest.raises(BadSyntax, match=told):
        parse_jsonc(f'{{"a": [{number}]}}')
