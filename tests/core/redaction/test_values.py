"""Plain data without secrets: arguments, results and addresses as they are kept and shown."""

import pytest

from isthmus.auth.tokens.secret import Secret
from isthmus.core.redaction.live_secrets import spell_secret
from isthmus.core.redaction.values import Redactor

R = "[redacted]"


@pytest.mark.covers("hostaudit.redaction.pointers")
def test_what_a_pointer_names_is_taken_out():
    """Ours: by RFC 6901, a star for every member, and nothing where there is nothing."""
    given = {"card": {"number": "4111", "name": "Ada"}, "a/b": ["x", {"c": 1}, {"c": 2}]}
    redactor = Redactor(pointers=["/card/number", "/a~1b/*/c", "/nowhere/at/all"])

    assert {
        "card": {"number": R, "name": "Ada"},
        "a/b": ["x", {"c": R}, {"c": R}],
    } == redactor.redact(given)
    assert "4111" == given["card"]["number"]


@pytest.mark.covers("hostaudit.redaction.pointers")
def test_a_rule_may_name_more():
    """Ours: for one value alone; the whole of it too."""
    redactor = Redactor(pointers=["/a"])

    assert {"a": R, "b": R} == redactor.redact({"a": 1, "b": 2}, ["/b"])
    assert {"a": R, "b": [2, R]} == redactor.strip({"a": 1, "b": [2, "x"]}, ["b/1"])


@pytest.mark.covers("hostaudit.redaction.live")
def test_secrets_in_json_are_those_that_are_held_just_then():
    """Ours: one that is made later is found, in its spelling, and none that nobody holds any more."""
    data = b'{"a": "first-secret", "b": "quo\\"te secret"}'
    redactor = Redactor()
    assert [] == redactor.known(data)
    first = Secret("first-secret")
    assert ["first-secret"] == redactor.known(data)
    second = Secret('quo"te secret')
    assert {*spell_secret('quo"te secret'), "first-secret"} == {*redactor.known(data)}
    del first
    assert {*spell_secret('quo"te secret')} == {*redactor.known(data)}
    del second
    assert [] == redactor.known(data)


@pytest.mark.covers("hostaudit.redaction.live")
@pytest.mark.parametrize(
    "text", ["correct horse", "pässwört/+&", 'quo"te\\d', "line\nbreak", "1234567890"]
)
def test_secrets_that_are_held_are_taken_out_in_every_spelling(text):
    """Ours: keys, values, numbers, URLs and JSON within texts; nothing is left once nobody holds it."""
    held = Secret(text)
    given = {
        "plain": f"<{text}>",
        text: "as a key",
        "spelt": [f"x={form}" for form in spell_secret(text)],
        "digits": int(text) if text.isdigit() else text,
    }
    told = repr(Redactor().redact(given))

    assert [] == [form for form in spell_secret(text) if form in told]
    assert held == text


@pytest.mark.covers("hostaudit.redaction.live")
@pytest.mark.parametrize(
    "spelt",
    ["p\u00e4ss/w+r&d", "p%C3%A4ss%2Fw%2Br%26d", "p%C3%A4ss/w%2Br%26d", r"p\u00e4ss/w+r&d"],
)
def test_a_secret_is_taken_out_as_addresses_and_json_spell_it(spelt):
    """Ours: whatever spelling a server answers with."""
    held = Secret("p\u00e4ss/w+r&d")

    assert {"a": f"x {R} y"} == Redactor().redact({"a": f"x {spelt} y"})
    assert held == "p\u00e4ss/w+r&d"


@pytest.mark.covers("hostaudit.redaction.names")
def test_what_a_name_calls_secret_keeps_its_shape_only():
    """Ours: below it nothing is believed."""
    given = {
        "credentials": {"user": "ada", "tries": 3, "none": None, "list": ["x"]},
        "pin": 1234,
        "password": "",
        "token": True,
    }

    assert {
        "credentials": {"user": R, "tries": R, "none": None, "list": R}, "pin": R, "password": "", "token": True,
    } == Redactor().redact(given)  # fmt: skip


@pytest.mark.covers("hostaudit.redaction.argv")
def test_command_lines_keep_no_secret():
    """Ours: neither after the word, nor in it."""
    argv = [
        "server",
        "--token",
        "abc",
        "--api-key=def",
        "--name",
        "cats",
        "-v",
        "https://a:b@c.example",
    ]

    assert [
        "server", "--token", R, f"--api-key={R}", "--name", "cats", "-v", f"https://{R}@c.example",
    ] == Redactor().redact(argv)  # fmt: skip


def test_what_is_no_plain_data_is_not_shown():
    """Ours: bytes by their number, secrets not at all, others by their type."""
    given = [b"abc", Secret("x"), object(), {1}, (2,)]

    assert ["[3 bytes]", R, "[object]", [1], [2]] == Redactor().redact(given)


def test_what_is_too_deep_is_left_out():
    """Ours: nothing recurses for ever."""
    value = deep = []
    for _ in range(5000):
        deep.append([])
        deep = deep[0]

    assert "too deep" in repr(Redactor().redact(value))


@pytest.mark.covers("hostaudit.redaction.linear")
@pytest.mark.parametrize(
    "piece",
    ["eyJ", "://a", "://a@", "-----BEGIN PRIVATE KEY-----", "token=", "a-", "Bearer ", "aA1", "SG.", "?code=a&", "-----BEGIN ",
     "-eyJ", "_eyJ", "eyJ-"],
)  # fmt: skip
def test_the_time_is_linear_in_the_text(piece, monkeypatch):
    """Ours: no pattern looks at a character more often where the text is longer (200,000 of them end)."""
    text = piece * (200_000 // len(piece))

    assert isinstance(Redactor().text(text), str)
