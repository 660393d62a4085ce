"""Tests of upstream tokens as they are written down."""

import msgspec
import pytest

from isthmus.auth.authorization_server.upstream.token_rows import (
    UpstreamTokens,
    decode_tokens,
    encode_tokens,
)
from isthmus.auth.tokens.secret import Secret

TOKENS = UpstreamTokens(
    provider="acme",
    issuer="https://login.example",
    subject="7",
    access=Secret("access-token-1"),
    refresh=Secret("refresh-token-1"),
    expires_at=1000.0,
    ends_at=2000.0,
    scopes=("files",),
    checked_at=900.0,
)


@pytest.mark.parametrize("change", [{}, {"refresh": None}, {"expires_at": None, "ends_at": None}])
def test_tokens_come_back_as_they_were(change):
    """Ours: what is written down is all there is."""
    tokens = msgspec.structs.replace(TOKENS, **change)

    assert tokens == decode_tokens(encode_tokens(tokens))


def test_tokens_do_not_show_themselves():
    """Ours: a repr is logged sooner or later."""
    assert "token-1" not in f"{TOKENS!r} {TOKENS}"


@pytest.mark.parametrize(
    ("now", "stale", "over"),
    [(969, False, False), (970, True, False), (1999, True, False), (2000, True, True)],
)
def test_a_token_is_stale_a_little_early_and_over_at_the_end(now, stale, over):
    """Ours: it is to arrive while it is good."""
    assert (stale, over) == (TOKENS.stale(now), TOKENS.over(now))


def test_without_times_nothing_ends():
    """Ours: a provider that says nothing is asked by its status only."""
    tokens = msgspec.structs.replace(TOKENS, expires_at=None, ends_at=None)

    assert not tokens.stale(1e12)
    assert not tokens.over(1e12)


def test_text_that_is_no_tokens_is_refused():
    """Ours: a store that was changed does not become a token."""
    with pytest.raises(msgspec.ValidationError):
        decode_tokens(b'{"provider": 1}')
