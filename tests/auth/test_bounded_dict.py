"""The dictionary that is bounded."""

from isthmus.auth.cache import BoundedDict


def test_the_oldest_entry_is_forgotten_first():
    """Ours: an entry that is set again is new again."""
    newest = BoundedDict(2)
    newest["a"] = 1
    newest["b"] = 2
    newest["a"] = 3
    newest["c"] = 4

    assert {"a": 3, "c": 4} == newest


def test_one_without_room_holds_nothing():
    """Ours: ``remember=0`` remembers nothing, and is no error."""
    newest = BoundedDict(0)
    newest["a"] = 1

    assert {} == newest
