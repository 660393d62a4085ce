"""Redaction: secrets are taken out of what people will read, and nothing else is."""

import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from isthmus.core.redaction.live_secrets import REDACTED
from isthmus.core.redaction.messages import Redact

redact = Redact()

SECRET = "hunter2-Zq8"
TOKEN = "abcDEF123456ghiJKL789"


@pytest.mark.covers("logging.secrets.redacted")
@pytest.mark.parametrize(
    "name",
    [
        *("password", "PASSWORD", "db_password", "dbPassword", "user-password", "passwords"),
        *("token", "access_token", "refreshToken", "tokens", "secret", "client_secret"),
        *("api_key", "apiKey", "X-API-Key", "APIKEY", "authorization", "Proxy-Authorization"),
        *("private_key", "credentials", "Set-Cookie", "pin", "cardPin", "session_id", "pwd"),
        *("pageToken", "progress_token", "tokens[]", "passwords:", "PINS[]", f"token{'-' * 200}"),
    ],
)
def test_a_member_named_like_a_secret_is_taken_out(name):
    """The spec: log messages MUST NOT contain credentials or secrets."""
    for value in (SECRET, [SECRET], {"a": SECRET}):
        assert {"x": {name: REDACTED}} == redact({"x": {name: value}})


@pytest.mark.covers("logging.secrets.redacted")
@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"Authorization: Bearer {TOKEN}", f"Authorization: Bearer {REDACTED}"),
        (f"bearer {TOKEN}.", f"bearer {REDACTED}"),
        ("Basic dXNlcjpwYXNzd29yZA== ok", f"Basic {REDACTED} ok"),
        (f"https://ada:{SECRET}@example.com/x", f"https://{REDACTED}@example.com/x"),
        (f"postgres://:{SECRET}@db/x?y", f"postgres://{REDACTED}@db/x?y"),
        (f"https://{TOKEN}@example.com", f"https://{REDACTED}@example.com"),
        (f"login with password={SECRET} done", f"login with password={REDACTED} done"),
        (f'{{"api_key": "{SECRET}", "n": 1}}', f'{{"api_key": "{REDACTED}", "n": 1}}'),
        (f"?access_token={TOKEN}&page=2", f"?access_token={REDACTED}&page=2"),
        (f"eyJhbGciOiJIUzI1NiJ9.{TOKEN}.{TOKEN}", REDACTED),
        (f"key sk-{TOKEN} was refused", f"key {REDACTED} was refused"),
        (f"ghp_{TOKEN}, AKIA{'Q' * 16}", f"{REDACTED}, {REDACTED}"),
        ("npm_Zq9xV3kLmN7p hf_Zq9xV3kLmN7p pypi-Zq9xV3kLmN7p", " ".join([REDACTED] * 3)),
        ("ghp_Zq9xV3kLmN7p sk_prod_Zq9xV3kL shpat_Zq9xV3kLmN7p", " ".join([REDACTED] * 3)),
        ("sk_live_Zq9xV3kLmN7p-Zq9xV3kL glpat-Zq9xV3kLmN7p", " ".join([REDACTED] * 2)),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\n", f"{REDACTED}\n"),
    ],
)
def test_a_secret_in_a_text_is_taken_out(text, left):
    """The spec: the same in any words, as far as its form gives it away."""
    assert left == redact(text)
    assert [{"a": left}] == redact([{"a": text}])


@pytest.mark.parametrize(
    "honest",
    [
        *("12 tokens were used", "the password was wrong", "monkey business", "spin: fast"),
        *("https://example.com/a@b", "user@example.com", "the bearer of news", "turkey=2"),
        *({"max_tokens": 100, "inputTokens": 7}, {"spin": "up", "monkey": "x", "opinion": "y"}),
        *({"password": None, "has_token": True}, {"keys": ["a"], "author": "ada"}, [1, 2.5, None]),
        *({"pass": 12, "fail": 3}, {"nextPageToken": 4}, "my_npm_package_registry is up"),
    ],
)
def test_what_is_no_secret_is_left_alone(honest):
    """Ours: a log that is full of holes helps nobody."""
    assert honest == redact(honest)


def test_an_author_may_add_names_and_forms():
    """Ours: a house has secrets of its own."""
    own = Redact(names=["IBAN", "case number"], patterns=[r"INT-\d+"])

    assert {"iban": REDACTED, "case_number": REDACTED, "b": f"see {REDACTED}"} == own(
        {"iban": "DE02", "case_number": 7, "b": "see INT-1234"}
    )


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)
secrets = st.text(
    "abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789", min_size=16, max_size=40
)
names = st.sampled_from(["password", "apiKey", "client_secret", "Authorization", "auth-token"])


def planted(data, secret, name, draw):
    """A secret somewhere in plain data."""
    kept = draw(st.sampled_from(["member", "bearer", "url", "assigned"]))
    if kept == "member":
        leaf = {name: secret}
    else:
        leaf = {
            "bearer": f"got Bearer {secret} from it",
            "url": f"see https://me:{secret}@host/path",
            "assigned": f"retry with {name}={secret} now",
        }[kept]
    for _ in range(draw(st.integers(0, 5))):
        leaf = draw(st.sampled_from([[data, leaf], {"x": leaf, "y": data}, [leaf]]))
    return leaf


@pytest.mark.covers("logging.secrets.redacted")
@given(plain, secrets, names, st.data())
def test_no_planted_secret_comes_out(data, secret, name, draw):
    """The spec, for whatever is around the secret: MUST NOT."""
    if name == "Authorization":
        name = "token"  # in a text, a scheme stands after it
    assume(secret not in json.dumps(data))
    written = json.dumps(redact(planted(data, secret, name, draw.draw)), default=str)

    assert secret not in written


@given(plain)
def test_whatever_is_logged_comes_out_as_json_and_stays_as_it_is(data):
    """Ours: it never raises, and what was redacted once is not redacted again."""
    once = redact(data)

    assert once == redact(once)
    json.dumps(once).encode()


@pytest.mark.parametrize(
    "text",
    ["password" * 20_000, "a-" * 100_000, "://" + "a" * 300_000, "bearer " * 50_000, "eyJ" * 90_000,
     "-----BEGIN PRIVATE KEY-----" * 9_000, "token=" * 50_000, "x_" * 100_000 + "token"],
)  # fmt: skip
def test_no_text_keeps_it_busy(text):
    """Ours: a log message cannot be made to stop the server; the time of a test is the limit."""
    assert len(redact(text)) <= len(text)


@pytest.mark.parametrize("text", ["-eyJ", "eyJ-", "eyJhbGciOi", ".eyJ"])
def test_a_text_that_looks_like_a_token_all_over_is_read_once(text):
    """Ours: what a tool logs may come from a client, and nobody else is served meanwhile."""
    assert text * 200_000 == redact(text * 200_000)


@pytest.mark.parametrize(
    "before", ["Bearer \n", "invalid token ", "basic\t", "Digest client-", "token 'bearer "]
)
def test_a_word_that_comes_before_credentials_does_not_hide_the_name_of_one(before):
    """Ours: ``password`` is the name of what follows it, and not the token of a scheme."""
    for sign in ("=", ": ", " = "):
        text = f"{before}password{sign}{SECRET}"
        assert f"{before}password{sign}{REDACTED}" == redact(text)


def test_a_token_behind_other_words_is_taken_out():
    """Ours: whatever a name was tied to it with."""
    token = f"eyJ{TOKEN}.eyJ{TOKEN}.{TOKEN}"

    assert f"session_{REDACTED} a-b-{REDACTED}" == redact(f"session_{token} a-b-{token}")
