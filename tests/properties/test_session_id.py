"""Session ids: whatever a client says, its id is short, opens to what it said, and cannot be changed."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.core.http.session_id import (
    MAX_SESSION_ID_CHARS,
    SessionFacts,
    seal_session_id,
    unseal_session_id,
)
from isthmus.core.sealing import SealBroken
from isthmus.wire import ClientCapabilities, Implementation

KEY, OTHER = b"k" * 32, b"o" * 32
NONCE = b"123456789012"

VALUES = st.none() | st.integers() | st.text(max_size=300) | st.just([{"a": [10**30]}])
PART = st.dictionaries(st.text(max_size=9), VALUES, max_size=3)
SETTINGS = st.dictionaries(st.text(max_size=60), PART, max_size=4)


@st.composite
def facts(draw):
    """What a session is, with anything that a client may say."""
    told = {name: draw(SETTINGS) for name in ("extensions", "experimental") if draw(st.booleans())}
    for name, parts in (("sampling", ("context", "tools")), ("elicitation", ("form", "url"))):
        if draw(st.booleans()):
            told[name] = {part: draw(PART) for part in parts}
    info = {name: draw(st.text(max_size=300)) for name in ("name", "version", "title")}
    return SessionFacts(
        draw(st.sampled_from(["2025-03-26", "2025-06-18", "2025-11-25"])),
        msgspec.convert(told, ClientCapabilities),
        msgspec.convert(info, Implementation),
        draw(st.none() | st.binary(min_size=16, max_size=16)),
        draw(st.binary(min_size=10, max_size=10)).hex(),
        draw(st.integers(0, 2**33)),
        "n0123456789",
    )


@given(facts())
def test_an_id_is_short_visible_ascii_and_keeps_what_matters(said):
    """2025-11-25 basic/transports#session-management: visible ASCII, 0x21 to 0x7E."""
    id = seal_session_id(said, [KEY], NONCE, "server")
    found = unseal_session_id(id, [OTHER, KEY], "server")

    assert len(id) <= MAX_SESSION_ID_CHARS
    assert all("\x21" <= char <= "\x7e" for char in id)
    kept = (found.revision, found.owner, found.mark, found.birth, found.node)
    assert (said.revision, said.owner, said.mark, said.birth, said.node) == kept
    for name in ("roots", "sampling", "elicitation", "tasks"):
        before, after = getattr(said.capabilities, name), getattr(found.capabilities, name)
        assert (before is msgspec.UNSET) == (after is msgspec.UNSET)
    assert said.info.name.startswith(found.info.name.rstrip("�")[:8])


@given(facts(), st.data())
def test_what_was_changed_does_not_open(said, data):
    """Ours: a bit, the end, the beginning, another server, another key."""
    id = seal_session_id(said, [KEY], NONCE, "server")
    place = data.draw(st.integers(0, len(id) - 1))
    char = data.draw(st.characters(codec="ascii").filter(lambda char: char != id[place]))
    wrong = [id[:place] + char + id[place + 1 :], id[:place], id[place + 1 :], id + char]

    for changed in wrong:
        with pytest.raises(SealBroken):
            unseal_session_id(changed, [KEY], "server")
    with pytest.raises(SealBroken):
        unseal_session_id(id, [KEY], "another")
    with pytest.raises(SealBroken):
        unseal_session_id(id, [OTHER], "server")


@given(st.text(max_size=700))
def test_garbage_is_no_id(text):
    """Ours: nothing that is sent makes it raise anything else."""
    with pytest.raises(SealBroken):
        unseal_session_id(text, [KEY], "server")
