"""A connection of ours does with the same bytes what uvicorn's own does, but for what is listed."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.examples import count_examples
from support.http.http_differences import assert_same, cut, may_differ
from support.http.messages import hello, make_http_app
from support.http.raw_requests import REQUESTS


def make_app():
    """A small app."""
    return make_http_app(hello=hello)


@pytest.mark.parametrize("first", REQUESTS)
async def test_each_request_by_itself_and_before_a_call(first):
    """Ours: whole and byte by byte, on a connection that is used again."""
    data = REQUESTS[first]
    for pieces in (
        [data, data, REQUESTS["call"]],
        [data + REQUESTS["call"] + data],
        [REQUESTS["call"], data],
        [REQUESTS["call"], REQUESTS["call"] + data, REQUESTS["call"]],
        [*(bytes([one]) for one in data), REQUESTS["call"]]
        if len(data) < 450
        else [data[:-1], data[-1:]],
    ):
        await assert_same(make_app, pieces)


@settings(max_examples=count_examples(150), deadline=None)
@given(
    names=st.lists(st.sampled_from(sorted(REQUESTS)), min_size=1, max_size=4),
    places=st.lists(st.integers(0, 4000), max_size=4),
    spoiled=st.none() | st.tuples(st.integers(0, 4000), st.binary(max_size=3)),
)
def test_requests_in_any_order_cut_anywhere(names, places, spoiled):
    """Ours: also with some bytes of them replaced."""
    data = b"".join(REQUESTS[name] for name in names)
    if spoiled is not None:
        at = spoiled[0] % len(data)
        data = data[:at] + spoiled[1] + data[at + len(spoiled[1]) :]
    if not may_differ(data):
        asyncio.run(assert_same(make_app, cut(data, places)))
