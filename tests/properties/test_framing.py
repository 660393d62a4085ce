"""Framing does not depend on how bytes are cut, and loses nothing that fits."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from isthmus.core.framing import LineSplitter, Oversize

LIMIT = 12

streams = st.lists(
    st.one_of(
        st.binary(max_size=20), st.sampled_from([b"\n", b"\r\n", b"\r", b" ", b"x" * 11, b"y" * 13])
    ),
    max_size=20,
).map(b"".join)


@st.composite
def cut_streams(draw):
    """A stream, and the same in pieces."""
    data = draw(streams)
    cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=8)))
    bounds = [0, *cuts, len(data)]
    return data, [data[a:b] for a, b in pairwise(bounds)]


def read(pieces):
    """All the lines of a stream that comes in pieces, and its rest."""
    lines = LineSplitter(LIMIT)
    return [line for piece in pieces for line in lines.feed(piece)], lines.rest()


@given(cut_streams())
def test_lines_do_not_depend_on_how_the_bytes_are_cut(case):
    """We demand it: a pipe may cut anywhere."""
    data, pieces = case
    assert read([data]) == read(pieces)


@given(streams)
def test_lines_are_what_a_simple_reading_of_the_whole_stream_gives(data):
    """The incremental reader agrees with one that sees everything at once."""
    *whole, last = data.split(b"\n")
    expected = [
        Oversize(len(line)) if len(line) > LIMIT else line.removesuffix(b"\r")
        for line in whole
        if line.strip() or len(line) > LIMIT
    ]
    keeps = last.strip() and len(last) <= LIMIT
    assert (expected, last.removesuffix(b"\r") if keeps else b"") == read([data])


@given(cut_streams())
def test_no_more_than_the_limit_is_ever_held(case):
    """Memory stays bounded, whatever comes."""
    lines = LineSplitter(LIMIT)
    for piece in case[1]:
        lines.feed(piece)
        assert LIMIT >= sum(map(len, lines._held))
