"""Pages, and the cursors between them."""

import pytest

from isthmus.core.encoding import decode_base64url, encode_base64url
from isthmus.core.pagination import BadCursor, ItemPage, paginate
from isthmus.errors import UsageError

SECRET = b"sixteen bytes ok"


def page(items, *, cursor=None, size=2, secret=SECRET, scope="tools/list"):
    """A page of a list of names."""
    return paginate(items, str, cursor=cursor, size=size, secret=secret, scope=scope)


def test_a_list_without_a_page_size_is_one_page_in_its_own_order():
    """Paging is the author's choice, and the order without it is too."""
    assert ItemPage(["b", "a"], None) == page(["b", "a"], size=None)


def test_a_cursor_leads_to_the_next_page_and_the_last_page_has_none():
    """Spec 2026-07-28 server/utilities/pagination: no nextCursor ends the results."""
    first = page(["c", "a", "d", "b", "e"])
    second = page(["c", "a", "d", "b", "e"], cursor=first.next_cursor)
    third = page(["c", "a", "d", "b", "e"], cursor=second.next_cursor)

    assert ["a", "b"] == first.items
    assert ["c", "d"] == second.items
    assert ItemPage(["e"], None) == third


def test_a_list_that_fits_has_no_next_page():
    """A full last page is the last all the same."""
    assert ItemPage(["a", "b"], None) == page(["a", "b"])
    assert ItemPage([], None) == page([])


@pytest.mark.covers("pagination.cursors.stable")
def test_a_removed_item_does_not_move_the_place_in_the_list():
    """We demand it: cursors are stable while the list changes, even without the item they name."""
    cursor = page(["a", "b", "c", "d"]).next_cursor
    assert ["c", "d"] == page(["c", "d"], cursor=cursor).items


@pytest.mark.covers("pagination.cursors.stable")
def test_an_added_item_is_neither_skipped_nor_shown_twice():
    """An item added before the place was missed, one added after it is shown."""
    cursor = page(["a", "b", "d"]).next_cursor
    assert ["c", "d"] == page(["a", "aa", "b", "c", "d"], cursor=cursor).items


def test_a_cursor_past_the_end_leads_to_an_empty_page():
    """All that was left may be gone."""
    cursor = page(["a", "b", "c"]).next_cursor
    assert ItemPage([], None) == page(["a"], cursor=cursor)


def test_a_cursor_outlives_the_page_size():
    """A server restarted without paging still reads the cursors it gave."""
    cursor = page(["a", "b", "c", "d", "e"]).next_cursor
    assert ItemPage(["c", "d", "e"], None) == page(
        ["a", "b", "c", "d", "e"], cursor=cursor, size=None
    )


@pytest.mark.covers("pagination.cursors.bad-refused")
@pytest.mark.parametrize("cursor", ["", "x", "tool2", "AAAA", "é", "\ud800", "A" * 24])
def test_a_cursor_made_up_is_refused(cursor):
    """Spec: an invalid cursor is an error; the empty string is a cursor like any other."""
    with pytest.raises(BadCursor):
        page(["a", "b", "c"], cursor=cursor)


@pytest.mark.covers("pagination.cursors.bad-refused")
def test_a_changed_cursor_is_refused():
    """The seal covers every bit of it."""
    token = decode_base64url(page(["a", "b", "c"]).next_cursor)
    for index in range(len(token)):
        changed = bytearray(token)
        changed[index] ^= 1
        with pytest.raises(BadCursor):
            page(["a", "b", "c"], cursor=encode_base64url(bytes(changed)))


@pytest.mark.covers("pagination.cursors.bad-refused")
def test_a_cursor_of_another_list_is_refused():
    """Names of tools mean nothing among prompts."""
    cursor = page(["a", "b", "c"]).next_cursor
    with pytest.raises(BadCursor):
        page(["a", "b", "c"], cursor=cursor, scope="prompts/list")


def test_a_cursor_sealed_with_another_secret_is_refused():
    """Only servers that share the secret share cursors."""
    cursor = page(["a", "b", "c"]).next_cursor
    with pytest.raises(BadCursor):
        page(["a", "b", "c"], cursor=cursor, secret=b"another sixteen.")


def test_the_scope_and_the_key_cannot_trade_characters():
    """A cursor of list "a" after "bc" is none of list "ab" after "c"."""
    cursor = page(["bc", "bd"], size=1, scope="a").next_cursor
    token = decode_base64url(cursor)
    with pytest.raises(BadCursor):
        page(["c", "d"], cursor=encode_base64url(token[:16] + b"c"), size=1, scope="ab")


@pytest.mark.parametrize("size", [0, -1])
def test_a_page_that_holds_nothing_is_an_authors_mistake(size):
    """Such a list would never end."""
    with pytest.raises(UsageError, match="one item or more"):
        page(["a"], size=size)
