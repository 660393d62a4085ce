"""Sealed journals open only unmodified, unexpired, for the same call; replays find every step."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from isthmus.core.encoding import decode_base64url, encode_base64url
from isthmus.core.journal import (
    Journal,
    JournalSegment,
    Replay,
    Unsealed,
    digest_binding,
    seal,
    unseal,
)

keys = st.binary(min_size=16, max_size=40)
nonces = st.binary(min_size=12, max_size=12)
bindings = st.builds(digest_binding, st.text(), st.text(), st.binary(), st.none() | st.text())
json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
).map(msgspec.json.encode)
digests = st.binary(max_size=8)
segments = st.builds(JournalSegment, digests, st.floats(0, 2**40), st.integers(0, 2**40))
journals = st.builds(
    Journal,
    st.dictionaries(digests, json, max_size=3),
    st.dictionaries(st.text(max_size=8), digests, max_size=3),
    st.integers(0, 99),
    st.integers(0, 99),
    st.just(b"") | json,
    st.lists(segments, max_size=2),
)
times = st.floats(0, 2**40)
seals = st.tuples(keys, nonces, times, bindings)


def plain(journal):
    """A journal that can be compared."""
    return msgspec.msgpack.decode(msgspec.msgpack.encode(journal))


@given(journals, st.lists(keys, min_size=1, max_size=3, unique=True), nonces, times, bindings)
def test_a_journal_comes_back_as_it_was(journal, secrets, nonce, expires_at, call):
    """Whatever is in it, and whichever of the keys sealed it."""
    token = seal(journal, secrets[-1:], nonce, expires_at, call)
    assert plain(journal) == plain(unseal(token, secrets, expires_at - 1, call))


@pytest.mark.covers("rounds.state.verified")
@given(journals, seals, st.data())
def test_a_changed_token_never_opens(journal, sealing, choice):
    """Spec 2026-07-28 basic/patterns/mrtr: state that fails verification MUST be rejected."""
    key, nonce, expires_at, call = sealing
    token = seal(journal, [key], nonce, expires_at, call)
    data = bytearray(decode_base64url(token))
    data[choice.draw(st.integers(0, len(data) - 1))] ^= choice.draw(st.integers(1, 255))
    for changed in (encode_base64url(bytes(data)), token[:-1], token + "A", token.swapcase()):
        if changed != token:
            with pytest.raises(Unsealed):
                unseal(changed, [key], expires_at - 1, call)


@pytest.mark.covers("rounds.state.bound")
@given(seals, keys, bindings, st.floats(-100, 100), st.data())
def test_a_token_opens_only_in_its_time_for_its_call_with_its_key(
    sealing, other_key, other_call, later, choice
):
    """All three are verified on receipt."""
    key, nonce, expires_at, call = sealing
    key2 = choice.draw(st.sampled_from([key, key, other_key]))
    call2 = choice.draw(st.sampled_from([call, call, other_call]))
    token = seal(Journal(), [key], nonce, expires_at, call)
    opens = expires_at + later < expires_at and call == call2 and key == key2
    try:
        unseal(token, [key2], expires_at + later, call2)
    except Unsealed:
        assert not opens
    else:
        assert opens


@pytest.mark.covers("rounds.state.verified")
@given(st.text(st.characters()), st.lists(keys), times, bindings)
def test_no_text_but_our_own_is_a_token(text, secrets, now, call):
    """Anything at all may come from the other side, and none of it passes."""
    with pytest.raises(Unsealed):
        unseal(text, secrets, now, call)


steps = st.tuples(
    st.sampled_from(["question", "effect"]),
    st.sampled_from(["roots/list", "elicitation/create"]),
    st.sampled_from([b"{}", b'{"a":1}', b'{"a":2}']),
    st.sampled_from([None, None, "name", "q1", "q2"]),
)


@given(st.lists(steps, max_size=10), st.data())
def test_a_body_that_asks_one_thing_after_another_gets_every_answer_in_its_place(script, choice):
    """Round after round, each step meets its own result, and no effect happens twice."""
    journal, responses, happened = Journal(), {}, []
    results = [b"%d" % index for index in range(len(script))]
    for _ in range(2 * len(script) + 1):
        run, met, asked = Replay(journal, responses), [], {}
        for index, (kind, name, params, key) in enumerate(script):
            if kind == "effect":
                effect = run.effect(name, params)
                if effect.result is None:
                    happened.append(index)
                    run.record(effect, results[index])
                met.append(effect.result or results[index])
                continue
            known = run.recall(name, params) if choice.draw(st.booleans()) else None
            if known is not None:
                met.append(known)
                continue
            question = run.question(name, params, key)
            if question.answer is None:
                assert question.key not in asked
                asked[question.key] = index
                if choice.draw(st.booleans()):
                    break  # a body that waits here; else a sibling that asks in the same round
            else:
                met.append(question.answer)
        if not asked:
            break
        journal = run.journal()
        responses = {key: Raw(results[index]) for key, index in asked.items()}

    assert results == met
    assert len(set(happened)) == len(happened)
