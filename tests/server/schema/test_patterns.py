"""Patterns that mean the same to Python, ECMAScript and Rust."""

import base64 as codec
import re

import jsonschema_rs
import pytest

from isthmus.errors import UsageError
from isthmus.server.schema import patterns


def admits(pattern: str, text: str) -> bool:
    """Whether a validator admits the text, in the dialect schemas are written in."""
    schema = {"type": "string", "pattern": pattern}
    found: bool = jsonschema_rs.Draft202012Validator(schema).is_valid(text)
    return found


@pytest.mark.parametrize(
    ("least", "most"), [(low, high) for low in range(8) for high in (None, *range(low, 8))]
)
def test_base64_is_bounded_to_the_byte(least, most):
    """Ours: the length of the text alone would admit up to two bytes too few or too many."""
    pattern = patterns.make_base64_pattern(least, most)
    expected = [least <= n <= (99 if most is None else most) for n in range(12)]

    assert expected == [admits(pattern, codec.b64encode(b"x" * n).decode()) for n in range(12)]


@pytest.mark.parametrize("text", ["A", "AA", "AAA", "A===", "AA=A", "====", "_-==", "AAAA\n"])
def test_text_that_is_not_base64_is_not_admitted(text):
    """Ours: the function would refuse it."""
    assert not admits(patterns.make_base64_pattern(), text)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"\Aa\Z", "^a$"),
        (r"(?P<n>a)", "(?<n>a)"),
        (r"\\A(?:a)(?=b)(?!c)", r"\\A(?:a)(?=b)(?!c)"),
        (r"\(?P<", r"\(?P<"),
        (r"a+?b*c{2,3}", r"a+?b*c{2,3}"),
    ],
)
def test_pythons_spellings_become_ecmascripts(pattern, expected):
    """JSON Schema's patterns are ECMAScript's."""
    assert expected == patterns.translate_pattern(pattern)


@pytest.mark.parametrize("pattern", ["(?i)a", "(?P=n)", "(?#x)", "(?(1)a|b)", "(?>a)", "a++"])
def test_patterns_that_only_python_has_are_refused(pattern):
    """Ours: hosts would fail to compile the schema, or read it otherwise."""
    with pytest.raises(UsageError, match="ECMAScript"):
        patterns.translate_pattern(pattern)


@pytest.mark.parametrize(
    "name",
    [name for name in patterns.__all__ if isinstance(getattr(patterns, name), str)],
)
def test_our_own_patterns_need_nothing_special(name):
    """Ours: no look-around, no classes that differ between dialects."""
    pattern = getattr(patterns, name)

    assert [] == re.findall(r"\(\?|\\[dDwWsSbB]", pattern)
