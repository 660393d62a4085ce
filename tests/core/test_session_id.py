"""The session id: which facts are left out where they do not all fit, and in what order."""

import msgspec
import pytest

from isthmus.core.encoding import encode_base64url
from isthmus.core.http.session_id import (
    ID_KIND,
    MAX_SESSION_ID_CHARS,
    SessionFacts,
    seal_session_id,
    unseal_session_id,
)
from isthmus.core.sealing import SealBroken, encrypt
from isthmus.wire import ClientCapabilities, Implementation

KEY = b"k" * 32
NONCE = b"123456789012"


def reopen_id(capabilities=None, **info):
    """What the id of a session says of its client."""
    said = SessionFacts(
        "2025-11-25",
        msgspec.convert(capabilities or {}, ClientCapabilities),
        msgspec.convert({"name": "client", "version": "1"} | info, Implementation),
        b"o" * 16,
        "ab" * 10,
        1_800_000_000,
        "n0123456789",
    )
    id = seal_session_id(said, [KEY], NONCE, "server")
    assert len(id) <= MAX_SESSION_ID_CHARS
    return unseal_session_id(id, [KEY], "server")


def test_what_fits_is_kept_whole():
    """Ours: a client of today with all its capabilities."""
    told = {
        "roots": {"listChanged": True},
        "sampling": {"tools": {}, "context": {}},
        "elicitation": {"form": {}, "url": {}},
        "extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html"]}},
    }

    found = reopen_id(told, title="A client")

    assert told == msgspec.to_builtins(found.capabilities)
    assert "A client" == found.info.title


def test_pictures_go_first():
    """Ours: they are of no use to a session."""
    icons = [{"src": "data:image/png;base64," + "A" * 5000}]

    found = reopen_id({"extensions": {"a/b": {"c": 1}}}, icons=icons, description="d" * 500)

    assert Implementation(name="client", version="1") == found.info
    assert {"extensions": {"a/b": {"c": 1}}} == msgspec.to_builtins(found.capabilities)


def test_then_what_is_experimental_and_the_settings_of_extensions():
    """Ours: that an extension is there says more than how it is set."""
    told = {"experimental": {"x": {}}, "extensions": {"a/b": {"c": "d" * 500}}, "roots": {}}

    found = reopen_id(told)

    assert {"extensions": {"a/b": {}}, "roots": {}} == msgspec.to_builtins(found.capabilities)


def test_then_extensions_and_at_last_the_end_of_a_name():
    """Ours: what is in the specification stays."""
    told = {"extensions": {f"a/{n}": {} for n in range(500)}, "sampling": {}}

    found = reopen_id(told, name="ü" * 500, version="1" * 500)

    assert {"sampling": {}} == msgspec.to_builtins(found.capabilities)
    assert "ü" * 32 == found.info.name
    assert "1" * 64 == found.info.version


def test_numbers_that_msgpack_cannot_carry_do_no_harm():
    """Ours: JSON has integers of any size."""
    found = reopen_id({"experimental": {"x": {"n": 10**30}}, "roots": {}})

    assert {"roots": {}} == msgspec.to_builtins(found.capabilities)


def test_an_id_of_another_version_of_ours_does_not_open():
    """Ours: two versions may share a secret for a while."""
    content = msgspec.msgpack.encode(["2025-11-25", 1])
    sealed = encrypt(ID_KIND, content, [KEY], NONCE, b"session server")

    with pytest.raises(SealBroken, match="incompatible"):
        unseal_session_id(encode_base64url(sealed), [KEY], "server")
