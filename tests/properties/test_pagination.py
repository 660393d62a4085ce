"""A walk over pages sees every item that stays, once; no made-up cursor is anything but refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.core.pagination import BadCursor, paginate

SECRET = b"sixteen bytes ok"

keys = st.sets(st.text(max_size=6), max_size=20)


def page(items, cursor, size):
    """A page of a list of names."""
    return paginate(items, str, cursor=cursor, size=size, secret=SECRET, scope="tools/list")


@given(keys, st.lists(keys, max_size=20), st.integers(1, 5))
@pytest.mark.covers("pagination.cursors.stable")
def test_what_stays_in_a_changing_list_is_seen_exactly_once(stays, changing, size):
    """We demand it: pages are stable whatever comes and goes between them."""
    seen, cursor = [], None
    for extra in [*changing, *[set()] * 50]:
        items, cursor = page(sorted(stays | extra, key=hash), cursor, size)
        seen += items
        if cursor is None:
            break

    assert cursor is None
    assert sorted(stays) == sorted(key for key in seen if key in stays)
    assert len(seen) == len(set(seen))


@given(st.text(st.characters()))
@pytest.mark.covers("pagination.cursors.bad-refused")
def test_no_text_but_our_own_is_a_cursor(text):
    """Anything at all may come from the other side, and none of it passes."""
    with pytest.raises(BadCursor):
        page(["a"], text, 1)
