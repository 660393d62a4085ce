"""Texts without secrets: what looks like one, by its form or its name, and what does not."""

import pytest

from isthmus.core.redaction.forms import names_secret
from isthmus.core.redaction.texts import looks_random, redact_text

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJlLWhlcmU"
SECRETS = [
    JWT,
    "sk-proj-abcDEF1234567890",
    "sk-ant-api03-abcdefghij",
    "sk_live_abcdefghij0123456789",
    "AKIAIOSFODNN7EXAMPLE",
    "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "ghp_abcdefghijklmnopqrst0123456789abcdef",
    "github_pat_11ABCDEFG0abcdefghijkl",
    "glpat-abcdefghij0123456789",
    "xoxb-1234567890-abcdefghij",
    "AIzaSyA1234567890abcdefghijklmnopqrstuv",
    "0123456789abcdef0123456789abcdef",
    "dGhpcyBpcyBhIHJhbmRvbSBrZXkgMTIz",
]


@pytest.mark.covers("hostaudit.redaction.forms")
@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize(
    "around", ["{}", "use {} for it", "https://api.example/v1?x={}&y=2", '"{}"', "a={},b"]
)
def test_what_looks_like_a_secret_is_taken_out(secret, around):
    """Ours: wherever in a text it stands."""
    assert secret not in redact_text(around.format(secret))


@pytest.mark.covers("hostaudit.redaction.forms")
def test_a_private_key_is_taken_out_whole():
    """Ours: in PEM, also one that was cut off."""
    begin, end = "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"
    body = "MIIEow\nIBAA\n"

    assert "a [redacted] b" == redact_text(f"a {begin}\n{body}{end} b")
    assert "a [redacted]" == redact_text(f"a {begin}\n{body}")


@pytest.mark.covers("hostaudit.redaction.addresses")
@pytest.mark.parametrize(
    ("address", "kept"),
    [
        ("https://ada:hunter2@git.example/x", "https://[redacted]@git.example/x"),
        ("postgres://u:p%40ss@db:5432/app?sslmode=on", "postgres://[redacted]@db:5432/app?sslmode=on"),
        ("https://x.example/cb?code=abc123&state=7", "https://x.example/cb?code=[redacted]&state=7"),
        ("https://x.example/?api_key=abc&q=cats", "https://x.example/?api_key=[redacted]&q=cats"),
        ("https://x.example/?q=cats#top", "https://x.example/?q=cats#top"),
    ],
)  # fmt: skip
def test_addresses_keep_neither_users_nor_secret_parameters(address, kept):
    """Ours: userinfo and query are where keys are put."""
    assert kept == redact_text(address)


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer abc123def",
        "export GITHUB_TOKEN=abcdef",
        "password: hunter2",
        '{"client_secret": "s3cr3t"}',
        "curl -H 'X-Api-Key: abc-def'",
        "Basic dXNlcjpwYXNz",
    ],
)
def test_what_is_called_a_secret_is_taken_out_of_texts(text):
    """Ours: by its name, whatever it looks like."""
    assert "[redacted]" in redact_text(text)


@pytest.mark.parametrize(
    "text",
    [
        "Fix the thing in the parser, line 12 of src/isthmus/core/redaction/texts.py",
        "get_user_preferences_for_account",
        "ContextForgeGatewayConfigurationManager",
        "report-2024-11-05-final-version",
        "550e8400-e29b-41d4-a716-446655440000",
        "01M803VAWZ72WP511FFKEW7N70",
        "https://example.com/a/long/path/to/something.html",
        "application/vnd.openxmlformats-officedocument",
        "a basic understanding of what a token is",
        "max_tokens=100 and 3 tokens: fine",
    ],
)
def test_ordinary_words_paths_and_ids_stay(text):
    """Ours: a log that hides everything shows nothing."""
    assert text == redact_text(text)


def test_names_are_known_however_they_are_spelt():
    """Ours: and pages of a list are no secret."""
    secret = ["password", "X-Api-Key", "githubToken", "AWS_SECRET_ACCESS_KEY", "otp", "Set-Cookie"]
    secret += ["dbpwd", "o.t.p", "p_i_n", "auth", "Bearer"]
    plain = ["tokens_in", "progressToken", "nextPageToken", "secretary", "name", "key", "x" * 500]

    assert [] == [name for name in secret if not names_secret(name)]
    assert [] == [name for name in plain if names_secret(name)]


def test_only_the_beginning_of_a_long_run_is_looked_at():
    """Ours: chance shows early."""
    assert not looks_random("a" * 300 + "xK3" * 100)
    assert looks_random("xK3pQ9" * 200)
