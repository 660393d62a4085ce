"""The journal of one call: steps known by content, and tokens that open only where they belong."""

import msgspec
import pytest
from msgspec import Raw

from isthmus.core import journal as journals
from isthmus.core.encoding import decode_base64url, encode_base64url
from isthmus.core.journal import (
    MAX_TOKEN_CHARS,
    Journal,
    JournalEffect,
    JournalQuestion,
    JournalTooLarge,
    Replay,
    Unsealed,
    canonicalize,
    digest_binding,
    encode_canonically,
    seal,
    seal_steps,
    unseal,
    unseal_steps,
)
from isthmus.core.sealing import make_cipher
from isthmus.errors import UsageError

KEY = b"k" * 32
OTHER = b"o" * 32
NONCE = b"123456789012"
CALL = digest_binding("tools/call", "book", b'{"day":1}', None)

NAME = b'{"message":"Your name?"}'
COLOUR = b'{"message":"Your colour?"}'
ANN = Raw(b'{"action":"accept","content":{"name":"Ann"}}')
RED = Raw(b'{"action":"accept","content":{"colour":"red"}}')

ELICIT = "elicitation/create"


def encode_answer(question):
    """The answer of a question as bytes."""
    assert question.answer is not None
    return bytes(question.answer)


# --- one run over a journal


@pytest.mark.covers("rounds.keys.unique")
def test_a_new_question_is_open_under_a_short_key():
    """Spec 2026-07-28 basic/patterns/mrtr: keys are the server's, and unique."""
    run = Replay(Journal())
    assert JournalQuestion("q1", None) == run.question(ELICIT, NAME)
    assert JournalQuestion("q2", None) == run.question(ELICIT, COLOUR)


def test_a_question_answered_since_is_known_in_the_next_run():
    """The client's answers arrive under the keys they were asked by."""
    first = Replay(Journal())
    first.question(ELICIT, NAME)
    second = Replay(first.journal(), {"q1": ANN})

    assert bytes(ANN) == encode_answer(second.question(ELICIT, NAME))
    assert JournalQuestion("q2", None) == second.question(ELICIT, COLOUR)


def test_answers_of_all_earlier_rounds_are_known():
    """A call may ask in any number of rounds."""
    first = Replay(Journal())
    first.question(ELICIT, NAME)
    second = Replay(first.journal(), {"q1": ANN})
    second.question(ELICIT, NAME)
    second.question(ELICIT, COLOUR)
    third = Replay(second.journal(), {"q2": RED})

    assert bytes(ANN) == encode_answer(third.question(ELICIT, NAME))
    assert bytes(RED) == encode_answer(third.question(ELICIT, COLOUR))
    assert 2 == third.rounds


@pytest.mark.covers("rounds.missing.asked-again")
def test_a_question_without_an_answer_is_asked_again_under_its_key():
    """Spec: missing information is asked for again, not an error."""
    first = Replay(Journal())
    first.question(ELICIT, NAME)
    first.question(ELICIT, COLOUR)
    second = Replay(first.journal(), {"q1": ANN})

    second.question(ELICIT, NAME)
    assert JournalQuestion("q2", None) == second.question(ELICIT, COLOUR)


@pytest.mark.covers("rounds.missing.asked-again")
def test_answers_nobody_asked_for_are_ignored():
    """Spec: the server ignores what it does not recognise."""
    first = Replay(Journal())
    first.question(ELICIT, NAME)
    second = Replay(first.journal(), {"q2": ANN, "name": ANN})
    assert JournalQuestion("q1", None) == second.question(ELICIT, NAME)


def test_a_question_that_reads_otherwise_is_another_question():
    """Consent to one text is no consent to another."""
    first = Replay(Journal())
    first.question(ELICIT, b'{"message":"Pay 10?"}', "pay")
    second = Replay(first.journal(), {"pay": ANN})
    assert JournalQuestion("pay", None) == second.question(
        ELICIT, b'{"message":"Pay 1000?"}', "pay"
    )


def test_the_method_is_part_of_the_question():
    """Two kinds of question may have the same parameters."""
    first = Replay(Journal())
    first.question(ELICIT, b"{}")
    second = Replay(first.journal(), {"q1": ANN})
    assert None is second.question("roots/list", b"{}").answer


def test_one_value_has_one_spelling():
    """Order of members and blanks mean nothing in JSON; no parameters are empty ones."""
    assert b'{"a":1,"b":2}' == encode_canonically({"b": 2, "a": 1})
    assert b'{"a":1,"b":2}' == canonicalize(Raw(b'{ "b": 2, "a": 1 }'))
    assert b"{}" == canonicalize(None)
    assert b"{x" == canonicalize(b"{x")


def test_equal_questions_are_told_apart_by_their_order():
    """Asking the same thing twice gives two answers."""
    first = Replay(Journal())
    first.question(ELICIT, NAME)
    first.question(ELICIT, NAME)
    second = Replay(first.journal(), {"q1": ANN, "q2": RED})
    assert bytes(ANN) == encode_answer(second.question(ELICIT, NAME))
    assert bytes(RED) == encode_answer(second.question(ELICIT, NAME))


def test_an_author_may_name_a_question():
    """A client may know what to do with a name it knows."""
    first = Replay(Journal())
    assert JournalQuestion("user_name", None) == first.question(ELICIT, NAME, "user_name")
    second = Replay(first.journal(), {"user_name": ANN})
    assert bytes(ANN) == encode_answer(second.question(ELICIT, NAME, "user_name"))


@pytest.mark.covers("rounds.keys.unique")
def test_no_two_open_questions_have_one_key():
    """Spec: keys MUST be unique within the request, whatever authors call their questions."""
    run = Replay(Journal())
    keys = [
        run.question(ELICIT, NAME, "name").key,
        run.question(ELICIT, COLOUR, "name").key,
        run.question(ELICIT, NAME, "q2").key,
        run.question(ELICIT, COLOUR).key,
        run.question(ELICIT, b"{}").key,
    ]
    assert ["name", "name_1", "q2", "q3", "q4"] == keys
    assert keys == list(run.journal().pending)


def test_a_name_may_be_used_again_once_its_question_is_answered():
    """Asking until the answer fits is a loop over one name."""
    first = Replay(Journal())
    first.question(ELICIT, NAME, "name")
    second = Replay(first.journal(), {"name": ANN})
    second.question(ELICIT, NAME, "name")
    assert JournalQuestion("name", None) == second.question(ELICIT, COLOUR, "name")


@pytest.mark.covers("rounds.effects.once")
def test_an_effect_happens_once():
    """Decision D7: what it gave travels in the journal."""
    first = Replay(Journal())
    effect = first.effect("shop.reserve", b'["1 May"]')
    assert None is effect.result
    first.record(effect, b'{"seat":12}')
    second = Replay(first.journal())
    again = second.effect("shop.reserve", b'["1 May"]')

    assert JournalEffect(effect.digest, b'{"seat":12}') == again
    assert None is second.effect("shop.reserve", b'["1 May"]').result
    assert None is second.effect("shop.reserve", b'["2 May"]').result
    assert None is second.effect("shop.cancel").result


def test_a_client_cannot_answer_an_effect():
    """An effect has no key, and no answer is taken for its result."""
    first = Replay(Journal())
    effect = first.effect("shop.reserve", NAME)
    first.question("shop.reserve", NAME)
    second = Replay(first.journal(), {effect.digest: ANN, "q1": ANN, "shop.reserve": ANN})
    assert None is second.effect("shop.reserve", NAME).result


def test_a_run_is_a_replay_until_it_has_met_all_that_is_known():
    """What was said in an earlier round is not said again."""
    first = Replay(Journal())
    assert not first.replaying
    first.record(first.effect("reserve"), b"1")
    first.question(ELICIT, NAME)
    second = Replay(first.journal(), {"q1": ANN})

    assert second.replaying
    second.effect("reserve")
    assert second.replaying
    second.question(ELICIT, NAME)
    assert not second.replaying


def test_a_run_that_does_something_new_is_no_replay():
    """A body that took another way is not silent for ever."""
    first = Replay(Journal())
    first.question(ELICIT, NAME)
    second = Replay(first.journal(), {"q1": ANN})
    second.question(ELICIT, COLOUR)
    assert not second.replaying


def test_the_journal_of_a_round_does_not_change_afterwards():
    """It may be sealed while the body is still being stopped."""
    run = Replay(Journal())
    run.question(ELICIT, NAME)
    journal = run.journal()
    run.question(ELICIT, COLOUR)
    run.record(run.effect("reserve"), b"1")
    assert ["q1"] == list(journal.pending)
    assert {} == journal.steps


# --- the token


def full_journal():
    """A journal with something of everything in it."""
    first = Replay(Journal())
    first.question(ELICIT, NAME)
    second = Replay(first.journal(), {"q1": ANN})
    second.question(ELICIT, NAME)
    second.record(second.effect("reserve"), b'{"seat":12}')
    second.question(ELICIT, COLOUR, "colour")
    return second.journal()


def plain(journal):
    """A journal that can be compared."""
    return msgspec.msgpack.decode(msgspec.msgpack.encode(journal))


def sealed(journal=None, keys=(KEY,), expires_at=100.0):
    """A token for ``CALL``."""
    return seal(journal or full_journal(), keys, NONCE, expires_at, CALL)


def refusal(token, keys=(KEY,), now=50.0, call=CALL):
    """Why a token does not open."""
    with pytest.raises(Unsealed) as caught:
        unseal(token, keys, now, call)
    return caught.value.reason


def test_a_sealed_journal_opens_for_its_own_call():
    """Nothing is lost on the way to the client and back."""
    assert plain(full_journal()) == plain(unseal(sealed(), (KEY,), 50.0, CALL))


def test_a_token_shows_nothing_of_what_is_in_it():
    """Decision D7: results of effects stay secret."""
    assert b"seat" not in decode_base64url(sealed())


def test_a_token_opens_with_a_key_that_no_longer_seals():
    """Keys are rotated by putting the new one first."""
    assert plain(full_journal()) == plain(unseal(sealed(), (OTHER, KEY), 50.0, CALL))


def test_a_token_does_not_open_without_its_key():
    """Only servers that share the key share journals."""
    assert "a key this server does not have" in refusal(sealed(), keys=(OTHER,))
    assert "a key this server does not have" in refusal(sealed(), keys=())


@pytest.mark.covers("rounds.state.bound")
def test_a_token_does_not_open_after_its_time():
    """Spec: a short expiry is verified on receipt."""
    assert "expired 0 s ago" == refusal(sealed(), now=100.0)
    assert "expired 60 s ago" == refusal(sealed(), now=160.0)


@pytest.mark.covers("rounds.state.bound")
@pytest.mark.parametrize(
    "call",
    [
        digest_binding("prompts/get", "book", b'{"day":1}', None),
        digest_binding("tools/call", "cancel", b'{"day":1}', None),
        digest_binding("tools/call", "book", b'{"day":2}', None),
        digest_binding("tools/call", "book", None, None),
        digest_binding("tools/call", "book", b'{"day":1}', "ann"),
        digest_binding("tools/call", "book", b'{"day":1}', ""),
        digest_binding("tools/callb", "ook", b'{"day":1}', None),
    ],
)
def test_a_token_does_not_open_for_another_call_or_principal(call):
    """Spec: state presented on a request that does not match is rejected."""
    assert "another call or principal" in refusal(sealed(), call=call)


def test_the_binding_does_not_depend_on_how_the_arguments_are_spelled():
    """A client may write its request anew; leaving out empty arguments says the same."""
    a = digest_binding("tools/call", "book", b'{"a":1,"b":[2]}', "ann")
    assert a == digest_binding("tools/call", "book", Raw(b' { "b" : [2], "a":1}'), "ann")
    assert digest_binding("tools/call", "x", None, None) == digest_binding(
        "tools/call", "x", b"{}", None
    )


@pytest.mark.covers("rounds.state.verified")
def test_a_token_with_any_bit_changed_does_not_open():
    """Spec: state that fails verification MUST be rejected."""
    data = decode_base64url(sealed())
    for index in range(len(data)):
        changed = bytearray(data)
        changed[index] ^= 1
        assert refusal(encode_base64url(bytes(changed)))


@pytest.mark.covers("rounds.state.verified")
@pytest.mark.parametrize(
    "token", ["", "x", "tampered", "A" * 43, "é" * 50, sealed() + "=", "\ud800"]
)
def test_what_is_no_token_does_not_open(token):
    """Spec: requestState is attacker-controlled input."""
    assert "not a token of ours" == refusal(token)


def test_a_token_longer_than_any_of_ours_is_not_even_read():
    """What we never made costs nothing to refuse."""
    assert f"{MAX_TOKEN_CHARS + 1} characters long" == refusal("A" * (MAX_TOKEN_CHARS + 1))


def test_a_token_of_an_older_program_does_not_open_if_its_journal_cannot_be_read():
    """Servers of two versions may share a key for a while."""
    head = decode_base64url(sealed())[:5]
    _, cipher = make_cipher(KEY)
    wrong = [
        [],
        "text",
        [100.0, {}],
        [100.0, [{"a": 1}, {}, 0, 0]],
        [100.0, [{b"a": b"1"}, {}, "0"]],
    ]
    for content in [b"", b"\xc1", *map(msgspec.msgpack.encode, wrong)]:
        token = encode_base64url(head + NONCE + cipher.encrypt(NONCE, content, head + CALL))
        assert "an incompatible server" in refusal(token)


def test_a_journal_too_large_for_a_token_is_refused():
    """The token travels in every further request of the call."""
    run = Replay(Journal())
    run.record(run.effect("download"), msgspec.json.encode("x" * MAX_TOKEN_CHARS))
    with pytest.raises(JournalTooLarge, match=r"Limits\.request_state") as caught:
        sealed(run.journal())
    assert MAX_TOKEN_CHARS < caught.value.size


# --- segments

STEPS = {b"?one": b'{"seat":12}', b"!two": b"[]"}
ID = b"i" * 16


def keep(steps=None, id=ID, keys=(KEY,), call=CALL):
    """Sealed steps."""
    return seal_steps(STEPS if steps is None else steps, id, keys, NONCE, call)


def test_kept_steps_open_for_their_call_and_under_their_id():
    """Nothing is lost in the store, and nothing of it can be read there."""
    assert STEPS == unseal_steps(keep(), ID, (KEY,), CALL)
    assert STEPS == unseal_steps(keep(), ID, (OTHER, KEY), CALL)
    assert b"seat" not in keep()


@pytest.mark.parametrize(
    ("data", "id", "keys", "call"),
    [
        (keep(), b"j" * 16, (KEY,), CALL),
        (keep(), ID, (OTHER,), CALL),
        (keep(), ID, (), CALL),
        (keep(), ID, (KEY,), digest_binding("tools/call", "book", b'{"day":1}', "ann")),
        (keep()[:-1], ID, (KEY,), CALL),
        (b"", ID, (KEY,), CALL),
        (decode_base64url(sealed()), ID, (KEY,), CALL),
    ],
)
def test_kept_steps_do_not_open_for_anything_else(data, id, keys, call):
    """Who can write to the store cannot give a call the answers of another, or of another time."""
    with pytest.raises(Unsealed):
        unseal_steps(data, id, keys, call)


def test_kept_steps_with_any_bit_changed_do_not_open():
    """A store is trusted with keeping, and with nothing else."""
    data = keep()
    for index in range(len(data)):
        changed = bytearray(data)
        changed[index] ^= 1
        with pytest.raises(Unsealed):
            unseal_steps(bytes(changed), ID, (KEY,), CALL)


def test_kept_steps_are_no_token_and_a_token_keeps_no_steps():
    """One key seals both, and neither stands for the other."""
    assert refusal(encode_base64url(keep()))


def test_kept_steps_of_an_older_program_are_refused():
    """Servers of two versions may share a store for a while."""
    _, cipher = make_cipher(KEY)
    head = keep()[:5]
    sealed_list = cipher.encrypt(NONCE, msgspec.msgpack.encode([1]), head + CALL + ID)
    with pytest.raises(Unsealed, match="incompatible"):
        unseal_steps(head + NONCE + sealed_list, ID, (KEY,), CALL)


def test_steps_that_are_kept_are_met_as_those_that_are_carried():
    """A run knows both, and hands on only what it carried."""
    first = Replay(Journal())
    first.question(ELICIT, NAME)
    second = Replay(first.journal(), {"q1": ANN})
    second.question(ELICIT, NAME)
    second.question(ELICIT, COLOUR)
    kept = second.journal()
    third = Replay(msgspec.structs.replace(kept, steps={}), {"q1": RED}, kept.steps)

    assert bytes(ANN) == third.recall(ELICIT, NAME)
    assert None is third.recall(ELICIT, b"{}")
    third.question(ELICIT, b"{}")
    assert 0 == len(third.journal().steps.keys() & kept.steps.keys())


def test_what_is_recalled_counts_as_met_and_what_is_not_known_does_not():
    """A question is looked up first, and put only where nothing is known."""
    first = Replay(Journal())
    first.question(ELICIT, NAME)
    first.question(ELICIT, NAME)
    second = Replay(first.journal(), {"q1": ANN, "q2": RED})

    assert [bytes(ANN), bytes(RED), None, None] == [second.recall(ELICIT, NAME) for _ in range(4)]
    assert not second.replaying
    assert JournalQuestion("q3", None) == second.question(ELICIT, NAME)


@pytest.mark.parametrize(("keys", "nonce"), [((), NONCE), ((KEY,), b"short"), ((KEY,), b"x" * 13)])
def test_sealing_without_a_key_or_a_nonce_of_the_right_length_is_a_mistake(keys, nonce):
    """AES-GCM wants twelve bytes, and each seal wants a key."""
    with pytest.raises(UsageError, match="12 bytes"):
        seal(Journal(), keys, nonce, 100.0, CALL)


@pytest.mark.covers("rounds.state.verified")
def test_the_wire_learns_nothing_about_why_a_token_does_not_open():
    """One message for every reason; the reason is for the log."""
    assert "Invalid params" in journals.UNUSABLE_STATE
    assert "requestState refused: expired 0 s ago" == str(Unsealed("expired 0 s ago"))


def test_a_named_answer_counts_in_a_first_round_and_only_there():
    """An author's key says what was answered; later rounds go by the journal (our promise)."""
    came = {"user_name": Raw(b'{"action":"decline"}'), "q1": Raw(b"{}")}
    first = Replay(Journal(), came)

    answer = first.question("elicitation/create", b"{}", "user_name").answer
    assert bytes(came["user_name"]) == answer
    assert None is first.question("roots/list", b"{}").answer

    later = Replay(first.journal(), {"other": Raw(b"{}")})
    assert None is later.question("elicitation/create", b'{"a":1}', "other").answer
