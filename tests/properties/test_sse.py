"""Events read are the events sent, however the bytes are cut; garbage is never an exception."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from isthmus.core.http.sse import SseEvent, SseParser, encode_event

LIMIT = 40

FRAGMENTS = [
    b"data: ", b"data", b"id: ", b"event:", b"retry: 1", b":", b"\n", b"\n\n", b"\r", b"\r\n",
    b"\xef\xbb\xbf", b"\0", b"x" * 38,
]  # fmt: skip

streams = st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.binary(max_size=12)), max_size=25).map(
    b"".join
)

names = st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"]), max_size=9)
sent = st.tuples(
    st.binary(max_size=30).map(lambda data: data.replace(b"\r", b"")),
    st.one_of(st.none(), names.filter(bool)),
    st.one_of(st.none(), names),
    st.one_of(st.none(), st.integers(0, 10**11)),
)


def cut(draw, data):
    """The same bytes in pieces."""
    bounds = [0, *sorted(draw(st.lists(st.integers(0, len(data)), max_size=8))), len(data)]
    return [data[a:b] for a, b in pairwise(bounds)]


def read(pieces, limit):
    """Everything a parser makes of a stream that comes in pieces."""
    events = SseParser(limit)
    read = [event for piece in pieces for event in events.feed(piece)]
    return read, events.last_id, events.retry


@given(streams, st.data())
def test_events_do_not_depend_on_how_the_bytes_are_cut(data, choice):
    """We demand it: TCP may cut anywhere, between a CR and its LF, inside a mark."""
    assert read([data], LIMIT) == read(cut(choice.draw, data), LIMIT)


@given(st.lists(sent, max_size=6), st.data())
def test_what_is_encoded_is_what_is_parsed(messages, choice):
    """The parser inverts the encoder, ids and reconnection times persisting as WHATWG has it."""
    stream = b"".join(encode_event(d, event=e, id=i, retry=r) for d, e, i, r in messages)
    expected, last_id, last_retry = [], "", None
    for data, event, id, retry in messages:
        last_id = last_id if id is None else id
        last_retry = last_retry if retry is None else retry
        expected.append(SseEvent(event or "message", data, last_id, last_retry))

    assert (expected, last_id, last_retry) == read(cut(choice.draw, stream), 10_000)


@given(streams, st.data())
def test_no_more_than_the_limit_is_ever_held(data, choice):
    """Memory stays bounded, whatever comes."""
    events = SseParser(LIMIT)
    for piece in cut(choice.draw, data):
        events.feed(piece)
        assert LIMIT >= sum(map(len, events._held))
        assert LIMIT >= sum(map(len, events._data))
