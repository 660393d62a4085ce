"""Encryption at rest: what is opened is what was sealed, at its place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.auth.authorization_server.storage.vault import StoreVault, derive_key, read_store_key
from isthmus.errors import UsageError

ONE, TWO = b"1" * 32, b"2" * 32


@given(st.binary(max_size=200), st.text(max_size=50))
def test_a_sealed_content_is_opened(content, place):
    """Ours: any bytes, anywhere."""
    vault = StoreVault([ONE])

    assert content == vault.open(vault.seal(content, place), place)


def test_a_changed_byte_is_noticed():
    """Ours: each of them."""
    vault = StoreVault([ONE])
    sealed = vault.seal(b"content", "key/1")
    for at in range(len(sealed)):
        spoilt = sealed[:at] + bytes([sealed[at] ^ 1]) + sealed[at + 1 :]
        with pytest.raises(UsageError):
            vault.open(spoilt, "key/1")


def test_two_records_cannot_be_swapped():
    """Ours: each opens where it belongs."""
    vault = StoreVault([ONE])
    with pytest.raises(UsageError):
        vault.open(vault.seal(b"content", "key/1"), "key/2")


def test_a_digest_matches_under_the_former_key_too():
    """Ours: clients keep their secrets when the key changes."""
    digest = StoreVault([ONE]).digest("secret")

    assert StoreVault([TWO, ONE]).matches(digest, "secret")
    assert not StoreVault([TWO, ONE]).matches(digest, "other")
    assert not StoreVault([TWO]).matches(digest, "secret")


def test_each_purpose_has_a_key_of_its_own():
    """Ours: HKDF."""
    assert derive_key(ONE, b"seal") != derive_key(ONE, b"mac")
    assert 32 == len(read_store_key(b"x" * 32))
