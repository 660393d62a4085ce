"""One token, in the one place where it may be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.auth.resource_server.credentials import (
    MalformedCredentials,
    read_credentials,
    read_proof,
)


def read(*values, name=b"authorization"):
    """What is read of the values of a header."""
    return read_credentials([(b"host", b"x"), *((name, value) for value in values)])


@pytest.mark.parametrize(
    ("value", "scheme", "token"),
    [
        (b"Bearer abc", "bearer", "abc"),
        (b"bEARER   a.b-c_d~e+f/g==", "bearer", "a.b-c_d~e+f/g=="),
        (b"DPoP abc ", "dpop", "abc"),
    ],
)
def test_a_token_is_read_with_its_scheme(value, scheme, token):
    """RFC 6750 2.1, RFC 9449 7.1: token68, under a name in any case."""
    assert (scheme, token) == read(value)


@pytest.mark.parametrize("values", [(), (b"",), (b"Basic abc",), (b"Bearerabc",), (b"Digest x=y",)])
def test_another_scheme_brings_no_credentials(values):
    """Ours: there is no token, which is not the same as a bad one."""
    assert read(*values) is None


@given(st.lists(st.binary(max_size=40), max_size=3), st.sampled_from([b"Bearer ", b"DPoP ", b""]))
def test_any_header_is_a_token_none_or_malformed(values, before):
    """Ours: nothing else comes out, and what does is plain ASCII."""
    try:
        found = read(*(before + value for value in values))
    except MalformedCredentials:
        return

    assert found is None or (found.token.isascii() and " " not in found.token)


@pytest.mark.covers("auth.all.never-in-query")
def test_only_one_header_is_looked_at():
    """Spec 2025-11-25 basic/authorization#token-requirements: the Authorization header."""
    assert read(b"Bearer abc", name=b"x-authorization") is None
    assert read(b"Bearer abc", name=b"proxy-authorization") is None


def test_a_proof_is_there_once_or_not_at_all():
    """RFC 9449 4.3: not more than one DPoP header."""
    assert read_proof([]) is None
    assert "abc" == read_proof([(b"dpop", b" abc ")])
    for headers in ([(b"dpop", b"a"), (b"dpop", b"b")], [(b"dpop", b"a" * 9000)]):
        with pytest.raises(MalformedCredentials):
            read_proof(headers)
