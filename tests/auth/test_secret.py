"""Secrets: they show nothing, and are all known while they live."""

import copy
import gc
import json
import pickle

import msgspec
import pytest

from isthmus.auth.tokens.secret import (
    Secret,
    decode_secret,
    encode_secret,
    reveal,
    s256,
    sha256_digest,
)
from isthmus.core.redaction.live_secrets import list_live_secrets


@pytest.mark.parametrize(
    "show", [str, repr, "{}".format, "{:>20}".format, "{!r}".format, lambda s: f"{[s]} {s!s}"]
)
def test_no_representation_shows_a_secret(show):
    """Ours: whoever prints, formats or logs it by accident has told nobody."""
    assert "hunter2" not in show(Secret("hunter2-and-more"))


def test_it_comes_out_by_one_word():
    """Ours: a search for ``reveal`` finds every place where a secret leaves its wrapping."""
    assert (
        "hunter2"
        == Secret("hunter2").reveal()
        == reveal(Secret(Secret("hunter2")))
        == reveal("hunter2")
    )


def test_equal_texts_are_equal_secrets():
    """Ours: comparing is what secrets are for, with texts as well, and anything else is not one."""
    assert Secret("a") == Secret("a") == "a"
    assert Secret("a") != Secret("b")
    assert Secret("a") != 1
    assert Secret("\ud800é") == "\ud800é"
    assert {Secret("a"): 1}[Secret("a")]
    assert not Secret("")


def test_nothing_writes_it_down():
    """Ours: what turns objects into bytes gets an error rather than the text."""
    secret = Secret("hunter2")
    for write in (pickle.dumps, json.dumps, msgspec.json.encode):
        with pytest.raises(TypeError):
            write(secret)
    assert secret is copy.deepcopy([secret])[0] is copy.copy(secret)


def test_the_living_are_known_and_the_dead_forgotten():
    """Ours: who looks for secrets in logs knows them all, and none is kept alive for that."""
    first, second = Secret("text-one-here"), Secret("text-one-here")
    assert "text-one-here" in set(list_live_secrets())
    del first
    gc.collect()
    assert "text-one-here" in set(list_live_secrets()), "an equal one still lives"
    del second
    gc.collect()
    assert "text-one-here" not in set(list_live_secrets())


def test_random_ones_differ():
    """Ours: 32 bytes of the system's randomness, in letters that any header takes."""
    made = {Secret.random().reveal() for _ in range(100)}

    assert 100 == len(made)
    assert {43} == {len(text) for text in made}


def test_its_hash_is_the_challenge_of_a_verifier():
    """RFC 7636, Appendix B: the specification's own example; half a character is no crash."""
    verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"

    assert "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM" == s256(verifier) == s256(Secret(verifier))
    assert 32 == len(sha256_digest("\ud800"))


def test_a_record_holds_secrets_and_nothing_else_that_msgspec_does_not_know():
    """Ours: what a store writes comes back as a secret, and a mistake in a record is an error."""
    record = msgspec.json.encode([Secret("hunter2")], enc_hook=encode_secret)

    assert [Secret("hunter2")] == msgspec.json.decode(
        record, type=list[Secret], dec_hook=decode_secret
    )
    with pytest.raises(NotImplementedError):
        msgspec.json.encode([object()], enc_hook=encode_secret)
    with pytest.raises(NotImplementedError):
        msgspec.json.decode(b"[1]", type=list[pickle.Pickler], dec_hook=decode_secret)
