"""What other sides send: read and shown with care."""

import pytest

from isthmus.auth.protocol import parse_lifetime, parse_members


@pytest.mark.parametrize("body", [b"", b"[1]", b"null", b"{", b'"\xff"', b"[" * 100_000])
def test_a_body_that_is_no_json_object_has_no_members(body):
    """Ours: nothing that a server answers raises here."""
    assert {} == parse_members(body)


def test_an_object_has_its_members_under_any_content_type():
    """Ours: servers are careless with content types, and a token response is one all the same."""
    assert {"error": "invalid_grant"} == parse_members(b'{"error":"invalid_grant"}')


@pytest.mark.parametrize(
    ("value", "life"),
    [(60, 60.0), ("60", 60.0), (0, None), (-1, None), ("x", None), (None, None), (10**400, None)],
)
def test_a_lifetime_is_a_number_of_seconds_or_nothing(value, life):
    """RFC 6749 5.1: a number; some servers write a text."""
    assert life == parse_lifetime(value)
