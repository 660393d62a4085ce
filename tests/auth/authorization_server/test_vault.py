"""Encryption at rest: what is opened is what was sealed, at its place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.auth.authorization_server.vault import Vault, derive, key_from
from isthmus.errors import UsageError

ONE, TWO = b"1" * 32, b"2" * 32


@given(st.binary(max_size=200), st.text(max_size=50))
def test_what_is_sealed_is_opened(content, place):
    """Ours: any bytes, anywhere."""
    vault = Vault([ONE])

    assert content == vault.open(vault.seal(content, place), place)


def test_a_changed_byte_is_noticed():
    """Ours: each of them."""
    vault = Vault([ONE])
    sealed = vault.seal(b"content", "key/1")
    for at in range(len(sealed)):
        spoilt = sealed[:at] + bytes([sealed[at] ^ 1]) + sealed[at + 1 :]
        with pytest.raises(UsageError):
            vault.open(spoilt, "key/1")


def test_two_records_cannot_be_swapped():
    """Ours: each opens where it belongs."""
    vault = Vault([ONE])
    with pytest.raises(UsageError):
        vault.open(vault.seal(b"content", "key/1"), "key/2")


def test_a_digest_matches_under_the_former_key_too():
    """Ours: clients keep their secrets when the key changes."""
    digest = Vault([ONE]).digest("secret")

    assert Vault([TWO, ONE]).matches(digest, "secret")
    assert not Vault([TWO, ONE]).matches(digest, "other")
    assert not Vault([TWO]).matches(digest, "secret")


def test_each_purpose_has_a_key_of_its_own():
    """Ours: HKDF."""
    assert derive(ONE, b"seal") != derive(ONE, b"mac")
    assert 32 == len(key_from(b"x" * 32))
