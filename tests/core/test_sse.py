"""Server-sent events: what is sent, and what is read from bytes cut anywhere."""

import pytest

from isthmus.core.framing import Oversize
from isthmus.core.http.sse import SseEvent, SseParser, encode_comment, encode_event
from isthmus.errors import UsageError

LIMIT = 100


def read(data, limit=LIMIT):
    """The events of a stream in one chunk."""
    return SseParser(limit).feed(data)


def message(data, id="", retry=None, event="message"):
    """An event with the fields a test does not speak of left at their defaults."""
    return SseEvent(event, data, id, retry)


# --- sending


def test_one_line_of_data_is_one_line_on_the_wire():
    """The common case: JSON without line breaks."""
    assert b'data: {"a":1}\n\n' == encode_event(b'{"a":1}')


def test_a_message_event_names_its_type_first():
    """The form the official implementations send."""
    assert b"event: message\ndata: {}\n\n" == encode_event(b"{}", event="message")


def test_another_type_is_named_too():
    """HTTP+SSE of 2024-11-05 announces its endpoint by an event of its own."""
    assert b"event: endpoint\ndata: /m?s=1\n\n" == encode_event(b"/m?s=1", event="endpoint")


def test_each_line_of_data_is_a_data_field():
    """WHATWG: a line break would end the field."""
    assert b"data: a\ndata: b\ndata: c\ndata: \n\n" == encode_event(b"a\r\nb\rc\n")


def test_id_and_retry_come_before_the_data():
    """A priming event (2025-11-25) has an id, a retry and empty data."""
    assert b"id: s1/7\nretry: 500\ndata: \n\n" == encode_event(b"", id="s1/7", retry=500)


@pytest.mark.parametrize("forged", ["a\nb", "a\rb"])
def test_a_line_break_in_a_type_is_refused(forged):
    """It would forge a field."""
    with pytest.raises(UsageError, match="event type"):
        encode_event(b"{}", event=forged)


@pytest.mark.parametrize("forged", ["a\nb", "a\rb", "a\0b"])
def test_a_line_break_or_nul_in_an_id_is_refused(forged):
    """It would forge a field, or be ignored by every receiver."""
    with pytest.raises(UsageError, match="event id"):
        encode_event(b"{}", id=forged)


def test_a_negative_retry_is_refused():
    """Receivers take digits only."""
    with pytest.raises(UsageError, match="-1"):
        encode_event(b"{}", retry=-1)


def test_a_comment_is_a_line_nobody_reads():
    """The heartbeat of an idle stream."""
    assert b":\n\n" == encode_comment()
    assert b": still here\n\n" == encode_comment(b"still here")
    assert [] == read(encode_comment() + encode_comment(b"still here"))


@pytest.mark.parametrize("text", [b"a\ndata: forged", b"a\rb"])
def test_a_comment_of_two_lines_is_refused(text):
    """The second line would be a field."""
    with pytest.raises(UsageError, match="one line"):
        encode_comment(text)


# --- receiving


def test_an_event_without_a_type_is_a_message():
    """WHATWG: the default type."""
    assert [message(b"a")] == read(b"data: a\n\n")


def test_a_type_holds_for_one_event():
    """WHATWG: the type is reset after each event."""
    expected = [message(b"a", event="ping"), message(b"b")]
    assert expected == read(b"event: ping\ndata: a\n\ndata: b\n\n")


def test_an_empty_type_is_a_message():
    """WHATWG: only a non-empty type counts."""
    assert [message(b"a")] == read(b"event: \ndata: a\n\n")


def test_data_lines_are_joined_by_newlines():
    """WHATWG: several data fields make one text."""
    assert [message(b"a\n\nb")] == read(b"data: a\ndata\ndata:b\n\n")


def test_one_blank_after_the_colon_is_no_part_of_the_value():
    """WHATWG: one, not more."""
    assert [message(b"a"), message(b" a"), message(b"\ta")] == read(
        b"data:a\n\ndata:  a\n\ndata:\ta\n\n"
    )


def test_empty_data_is_an_event():
    """A priming event (2025-11-25) has empty data and must be seen for its id."""
    assert [message(b"", id="1")] == read(b"id: 1\ndata: \n\n")


def test_an_event_without_data_is_none_but_its_id_counts():
    """WHATWG: no data, no event; the last event id is set all the same."""
    events = SseParser(LIMIT)
    assert [] == events.feed(b"event: ping\nid: 4\n\n")
    assert "4" == events.last_id
    assert [message(b"a", id="4")] == events.feed(b"data: a\n\n")


def test_comments_and_unknown_fields_are_ignored():
    """WHATWG: servers keep connections open by comments."""
    assert [message(b"a")] == read(b": hello\nfoo: bar\nfoo\n:\ndata: a\n:\n\n")


def test_a_field_name_with_blanks_is_unknown():
    """WHATWG: names are compared as they are."""
    assert [] == read(b" data: a\n\nDATA: a\n\ndata : a\n\n")


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_lines_end_in_any_of_three_ways(end):
    """WHATWG: CR, LF and CR LF."""
    data = b"event: ping" + end + b"data: a" + end + b"data: b" + end + end
    assert [message(b"a\nb", event="ping")] == read(data)


def test_a_return_and_its_newline_may_be_cut_apart():
    """CR LF is one line end wherever a chunk ends."""
    events = SseParser(LIMIT)
    assert [] == events.feed(b"data: a\r")
    assert [] == events.feed(b"")
    assert [] == events.feed(b"\n")
    assert [] == events.feed(b"data: b\r")
    assert [message(b"a\nb")] == events.feed(b"\n\r\n")


def test_a_return_that_ends_a_chunk_ends_its_line():
    """CR alone is a line end: nothing waits for a newline that never comes."""
    events = SseParser(LIMIT)
    assert [message(b"a")] == events.feed(b"data: a\r\r")
    assert [message(b"b")] == events.feed(b"data: b\n\n")


@pytest.mark.parametrize("cut", range(5))
def test_a_byte_order_mark_at_the_start_is_ignored(cut):
    """WHATWG: one mark, at the start, in however many chunks."""
    data = b"\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n"
    events = SseParser(LIMIT)
    assert [message(b"a")] == [*events.feed(data[:cut]), *events.feed(data[cut:])]


def test_the_last_event_id_persists():
    """WHATWG: events without an id have that of the event before."""
    expected = [message(b"a", id="1"), message(b"b", id="1"), message(b"c")]
    assert expected == read(b"id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n")


def test_an_id_with_a_nul_is_ignored():
    """WHATWG: such an id does not count."""
    assert [message(b"a", id="1")] == read(b"id: 1\nid: 2\0\ndata: a\n\n")


def test_the_id_of_an_unfinished_event_does_not_count():
    """Resuming after it would lose the event."""
    events = SseParser(LIMIT)
    events.feed(b"id: 1\ndata: a\n\nid: 2\ndata: b\n")
    assert "1" == events.last_id


def test_retry_is_kept_from_when_it_came():
    """The client must wait that long (2025-11-25), event or no event."""
    events = SseParser(LIMIT)
    assert [] == events.feed(b"retry: 500\n\n")
    assert 500 == events.retry
    assert [message(b"a", retry=500)] == events.feed(b"data: a\n\n")


@pytest.mark.parametrize("value", [b"", b"-1", b"1.5", b"5s", "٣".encode(), b"9" * 5000])
def test_a_retry_that_is_no_sensible_number_is_ignored(value):
    """WHATWG: ASCII digits only; and no number may be too long for Python."""
    events = SseParser(10_000)
    events.feed(b"retry: " + value + b"\n\n")
    assert None is events.retry


def test_a_stream_may_begin_with_blank_lines():
    """WHATWG: they end an event that was never begun."""
    assert [message(b"a")] == read(b"\n\ndata: a\n\n")


def test_any_line_may_come_in_pieces():
    """TCP may cut anywhere, not in the first line alone."""
    events = SseParser(LIMIT)
    assert [message(b"a")] == events.feed(b"data: a\n\nda")
    assert [] == events.feed(b"ta: ")
    assert [message(b"b")] == events.feed(b"b\n\n")


def test_an_unfinished_event_is_no_event():
    """WHATWG: what the end of the stream cuts off is dropped."""
    assert [] == read(b"data: a\n")
    assert [] == read(b"data: a")


def test_bytes_that_are_no_utf8_become_replacement_characters():
    """WHATWG decoding; data stays bytes, for the JSON parser to judge."""
    expected = [SseEvent("�", b"\xff", "�", None)]
    assert expected == read(b"event: \xff\nid: \xfe\ndata: \xff\n\n")


def test_an_event_of_just_the_limit_is_kept():
    """The limit is the most that is allowed."""
    line = b"data: " + b"x" * (LIMIT - 6)
    assert [message(line[6:])] == read(line + b"\n\n")


def test_an_event_over_the_limit_is_reported_once_and_later_ones_survive():
    """One answer too large must not end the stream."""
    data = b"id: 1\ndata: " + b"x" * LIMIT + b"\ndata: more\n\ndata: b\n\n"
    assert [Oversize(LIMIT + 11), message(b"b", id="1")] == read(data)


def test_a_long_line_anywhere_in_an_event_throws_the_event_away():
    """A line over the limit is too much whichever field it is, and whenever it comes."""
    data = b"data: a\n\ndata: b\n: " + b"x" * LIMIT + b"\ndata: c\n\ndata: d\n\n"
    assert [message(b"a"), Oversize(2 + LIMIT + 2 + 2), message(b"d")] == read(data)


def test_many_small_lines_over_the_limit_are_too_large_as_well():
    """The limit holds for the event, not for the line."""
    data = b"data: 123456789\n" * 20 + b"\ndata: b\n\n"
    assert [Oversize, SseEvent] == [type(event) for event in read(data)]


def test_an_event_over_the_limit_is_not_kept_in_memory():
    """What is thrown away is thrown away at once."""
    events = SseParser(LIMIT)
    for _ in range(10):
        events.feed(b"x" * 50)
    assert [] == events._held
    assert [Oversize(500)] == events.feed(b"\n\n")


def test_comments_never_fill_an_event():
    """A stream that is kept open for days sends any number of them."""
    events = SseParser(LIMIT)
    for _ in range(LIMIT):
        assert [] == events.feed(b": still here\n")
    assert [message(b"a")] == events.feed(b"data: a\n\n")
