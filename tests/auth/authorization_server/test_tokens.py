"""Refresh tokens as texts: made by us, taken apart without believing anything."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.auth.authorization_server.core.tokens import (
    TokenAnswer,
    is_genuine,
    make_refresh_token,
    parse_refresh_token,
)

KEY = b"m" * 32


@given(st.text("abc-_019", min_size=1, max_size=22), st.integers(0, 10**9), st.text(max_size=20))
def test_a_refresh_token_is_genuine_for_its_client_alone(grant, gen, client):
    """Ours: any grant, any generation, any client."""
    presented = parse_refresh_token(make_refresh_token(KEY, grant, gen, client).reveal())

    assert (grant, gen) == (presented.grant_id, presented.gen)
    assert is_genuine(KEY, presented, client)
    assert not is_genuine(KEY, presented, client + "x")
    assert not is_genuine(b"n" * 32, presented, client)


@given(st.text(max_size=100))
def test_anything_else_is_none_or_not_genuine(text):
    """Ours: bytes that anybody can send."""
    presented = parse_refresh_token(text)

    assert presented is None or not is_genuine(KEY, presented, "c")


@pytest.mark.parametrize("gen", ["-1", "+1", "1.0", "", "¹", "9" * 12, " 1"])
def test_a_generation_is_a_plain_number(gen):
    """Ours: one spelling of each."""
    assert parse_refresh_token(f"rt.g.{gen}.m") is None


def test_a_token_answer_shows_only_its_names():
    """Ours: Authlib logs it as a whole."""
    answer = TokenAnswer(access_token="at", expires_in=5)

    assert "TokenAnswer(access_token, expires_in)" == f"{answer}" == repr(answer)
