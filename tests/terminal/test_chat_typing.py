"""Completion of what is typed in a conversation."""

import pytest

from isthmus.errors import UsageError
from isthmus.terminal.chat.completion import (
    find_attached,
    parse_prompt_arguments,
    quote_word,
    split_words,
)
from isthmus.wire import Prompt, PromptArgument

PLAN = Prompt(
    name="plan", arguments=[PromptArgument(name="city", required=True), PromptArgument(name="days")]
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("plan a b", ["plan", "a", "b"]),
        ('plan city="New York" days=3', ["plan", "city=New York", "days=3"]),
        ('plan city="New Yo', ["plan", "city=New Yo"]),
        ("plan it's", ["plan", "its"]),
        ("", []),
    ],
)
def test_words_of_a_command(text, words):
    """Ours: quotes hold words together, and one that has no end ends with the line."""
    assert words == split_words(text)


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        (["Paris"], {"city": "Paris"}),
        (["days=2", "Paris"], {"city": "Paris", "days": "2"}),
        (["city=a=b"], {"city": "a=b"}),
        (["x=1"], {"city": "x=1"}),
    ],
)
def test_blanks_are_filled_by_name_or_in_their_order(words, arguments):
    """Ours: what names no blank is a value."""
    assert arguments == parse_prompt_arguments(PLAN, words)


@pytest.mark.parametrize(
    ("words", "wrong"),
    [([], "missing arguments: city=…"), (["a", "b", "c"], "'c' is not an argument of it")],
)
def test_words_that_do_not_fill_the_blanks_are_refused(words, wrong):
    """Ours: with the blanks there are."""
    with pytest.raises(UsageError, match=wrong):
        parse_prompt_arguments(PLAN, words)


def test_resources_are_named_by_words_that_begin_with_an_at_sign():
    """Ours: an address in the middle of a word is none."""
    assert ["shop+a://x", "b"] == find_attached("see @shop+a://x and a@c.example @b")


@pytest.mark.parametrize("value", ["plain", "two words", "it's", 'a "b"', ""])
def test_a_suggested_value_is_read_as_it_was(value):
    """Ours: what the server suggests comes back to it letter by letter."""
    assert [f"city={value}"] == split_words(f"city={quote_word(value)}")
