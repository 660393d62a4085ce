"""Frames: what is one, what is none, and how each is written."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw

from isthmus.wire.jsonrpc import (
    ErrorBody,
    Frame,
    Unreadable,
    encode_answer,
    encode_call,
    encode_error,
    encode_note,
    parse,
)


def test_a_request_is_read():
    """Spec: an id and a method; params stay raw."""
    frame = parse(b'{"jsonrpc":"2.0","id":1,"method":"a/b","params":{"c": [1]},"extra":1}')

    assert ("a/b", 1, b'{"c": [1]}') == (frame.method, frame.id, bytes(frame.params))
    assert (UNSET, UNSET) == (frame.result, frame.error)


@pytest.mark.covers("messages.ids.kinds")
@pytest.mark.parametrize("id", ["", "a", 0, -3, 2**80])
def test_an_id_is_any_string_or_integer(id):
    """Spec: and it keeps its type."""
    frame = parse(json.dumps({"jsonrpc": "2.0", "id": id, "method": "a"}).encode())

    assert (id, type(id)) == (frame.id, type(frame.id))


@pytest.mark.covers("messages.notifications.unanswered")
def test_a_notification_has_no_id():
    """Spec: a method without an id."""
    frame = parse(b'{"jsonrpc":"2.0","method":"a"}')

    assert (UNSET, UNSET, "a") == (frame.id, frame.params, frame.method)


@pytest.mark.covers("messages.answers.same-id")
def test_answers_are_read():
    """Spec: a result, or an error with code and message."""
    answer = parse(b'{"jsonrpc":"2.0","id":"x","result":{}}')
    error = parse(b'{"jsonrpc":"2.0","id":"x","error":{"code":-1,"message":"m","data":[2]}}')

    assert ("x", b"{}") == (answer.id, bytes(answer.result))
    assert ErrorBody(code=-1, message="m", data=[2]) == error.error


@pytest.mark.parametrize("head", ['"id":null,', ""])
def test_an_error_need_not_say_what_it_answers(head):
    """Spec: null, or since 2025-11-25 nothing, where the id could not be read."""
    frame = parse(b'{"jsonrpc":"2.0",%b"error":{"code":1,"message":""}}' % head.encode())

    assert isinstance(frame, Frame)
    assert not frame.id


@pytest.mark.covers("messages.ids.kinds", "messages.errors.shape")
@pytest.mark.parametrize(
    ("data", "code", "legible"),
    [
        (b"", -32700, None),
        (b"{", -32700, None),
        (b"\xff", -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', -32700, None),
        (b"3", -32600, None),
        (b"null", -32600, None),
        (b"{}", -32600, None),
        (b'{"id":1,"method":"a"}', -32600, 1),
        (b'{"jsonrpc":"1.0","id":1,"method":"a"}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":null,"method":"a"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"a"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":true,"method":"a"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":"x","method":3}', -32600, "x"),
        (b'{"jsonrpc":"2.0","id":1}', -32600, 1),
        (b'{"jsonrpc":"2.0","result":{}}', -32600, None),
        (b'{"jsonrpc":"2.0","id":null,"result":{}}', -32600, None),
        (b'{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":1,"error":{"code":"x","message":""}}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":1,"error":{"message":""}}', -32600, 1),
    ],
)
def test_what_is_no_frame_is_refused(data, code, legible):
    """Spec: -32700 for what is no JSON, -32600 for what is no JSON-RPC; with its id if legible."""
    refused = parse(data)

    assert isinstance(refused, Unreadable)
    assert (code, legible) == (refused.code, refused.id)


def test_depth_is_refused_not_raised():
    """Ours: a bomb of brackets is refused, whoever opens it."""
    for data in (b"[" * 10_000, b'{"a":' * 100_000, b'{"id":' + b"[" * 100_000):
        assert -32700 == parse(data).code
    assert -32600 == parse(b"[" * 100_000).code  # which is no array of messages, whatever follows


@pytest.mark.parametrize("member", [b"0", b"[]", b"{}", b'""'])
def test_a_long_array_of_what_is_no_message_is_refused_whole(member):
    """Ours: to take millions of members apart is not worth it, where one cannot be served."""
    few, many = (b"[" + b",".join([member] * count) + b"]" for count in (3, 100_000))

    assert [member] * 3 == [bytes(one) for one in parse(few)]
    assert -32600 == parse(many).code


def test_a_long_array_of_messages_is_handed_over():
    """Ours: messages may be many, and large."""
    message = b'{"jsonrpc":"2.0","method":"a","params":{"a":[%b]}}' % b",".join([b"1"] * 1000)

    assert [message] * 100 == [bytes(one) for one in parse(b"[%b]" % b",".join([message] * 100))]


def test_long_complaints_are_cut():
    """Ours: an error message does not echo a megabyte."""
    data = b'{"jsonrpc":"2.0","id":1,"method":"a","error":{"code":1,"message":{"%b":1}}}' % (
        b"x" * 10_000
    )

    assert len(parse(data).message) < 300


def test_a_batch_is_handed_over_unread():
    """Spec: 2025-03-26 has batches; whoever knows the revision reads the members."""
    members = parse(b'[{"jsonrpc":"2.0","method":"a"}, 3]')

    assert [b'{"jsonrpc":"2.0","method":"a"}', b"3"] == [bytes(m) for m in members]


@pytest.mark.covers("messages.bad-input.never-kills")
@given(st.binary(max_size=200))
def test_nothing_raises(data):
    """Ours: whatever bytes come, parse returns."""
    assert parse(data) is not None


@given(st.text(max_size=20), st.integers() | st.text(max_size=9), st.booleans())
def test_what_is_written_can_be_read(method, id, has_params):
    """Ours: writing and reading are inverse, with any method and id."""
    params = b'{"a":1}' if has_params else None
    call, note = parse(encode_call(id, method, params)), parse(encode_note(method, params))
    raw = None if call.params is UNSET else bytes(call.params)

    assert (id, method, params) == (call.id, call.method, raw)
    assert (UNSET, method) == (note.id, note.method)


@pytest.mark.covers("messages.answers.same-id")
def test_answers_are_written():
    """Spec: an answer has the id of its request, and exactly one of result and error."""
    error = ErrorBody(code=1, message="m")

    assert b'{"jsonrpc":"2.0","id":"a","result":{}}' == encode_answer("a", b"{}")
    written = b'"error":{"code":1,"message":"m"}}'
    assert b'{"jsonrpc":"2.0","id":3,' + written == encode_error(3, error)
    assert b'{"jsonrpc":"2.0","id":null,' + written == encode_error(None, error)
    assert b'{"jsonrpc":"2.0",' + written == encode_error(None, error, null_id=False)
    assert b'{"jsonrpc":"2.0","id":0,' + written == encode_error(0, error, null_id=False)


def test_raw_members_are_written_as_they_are():
    """Ours: raw JSON is not read to be written."""
    assert b'{"code":1,"message":"","data":{"a" :1}}' in encode_error(
        1, ErrorBody(code=1, message="", data=Raw(b'{"a" :1}'))
    )


@pytest.mark.parametrize(
    "inside",
    [
        b'"params":{"name":"a","arguments":{"text":"\xff"}}',
        b'"params":{"unknown":"\xc3("}',
        b'"params":["\xed\xa0\x80"]',
        b'"params":{"_meta":{"\xe2\x82":1}}',
        b'"unknown":"\xf8"',
    ],
)
def test_what_is_not_utf8_is_a_parse_error_wherever_it_stands(inside):
    """Ours: also in members that are read later, or never."""
    for id in (b'"id":1,', b""):
        refused = parse(b'{"jsonrpc":"2.0",%b"method":"tools/call",%b}' % (id, inside))
        assert isinstance(refused, Unreadable)
        assert -32700 == refused.code
        assert "not UTF-8" in refused.message


def test_utf8_is_looked_at_piece_by_piece():
    """Ours: a character may lie across two pieces, and the last one may be cut."""
    for text in ("ü" * 100_000, "x" + "𝄞" * 50_000, "a" * 65_535 + "€"):
        data = b'{"jsonrpc":"2.0","method":"m","params":{"text":"%b"}}' % text.encode()
        assert isinstance(parse(data), Frame)
        assert isinstance(
            parse(data.replace(text[-1].encode(), text[-1].encode()[:-1])), Unreadable
        )


def test_an_answer_that_is_not_utf8_is_left_to_who_waits_for_it():
    """Ours: its call fails at once, in place of an answer that is dropped."""
    assert isinstance(parse(b'{"jsonrpc":"2.0","id":1,"result":{"text":"\xff"}}'), Frame)
