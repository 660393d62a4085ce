"""What "such arguments" means."""

import pytest

from host_policies import call, facts
from isthmus.host.policy.predicates import Predicate
from isthmus.host.shapes import Shape, digest, shape_of


@pytest.mark.parametrize(
    ("value", "predicate"),
    [
        ("/srv/app/a.txt", '/x under "/srv/app"'),
        ("file:///srv/app/a.txt", '/x under "/srv/app"'),
        ("/srv/it's \"a\\b/c", '/x under "/srv/it\'s \\"a\\\\b"'),
        ("https://Example.com/a?b", '/x host-in "example.com"'),
        ("https://me@example.com/", None),
        ("rm -rf /", None), ("a/b", None), ("/etc", None), ("~/x", None), (7, None), (["/srv/a/b"], None), ("", None),
    ],
)  # fmt: skip
def test_a_path_and_an_address_have_a_place_and_everything_else_is_itself(value, predicate):
    """Ours: the root is no folder that anybody means by such a file."""
    found, rest = shape_of({"x": value}, facts())

    assert (() if predicate is None else (predicate,)) == found
    assert digest({"x": value} if predicate is None else {}) == rest
    shape = Shape([Predicate(text) for text in found])
    assert shape.covers(call("t", {"x": value}), facts(), rest)
    assert not shape.covers(call("t", {"x": "/elsewhere/a"}), facts(), rest)


@pytest.mark.parametrize("name", ["", "a b", "a\nb", "\u202ea"])
def test_a_name_that_is_no_word_is_held_to_its_value(name):
    """Ours: it cannot be written as a path of a predicate."""
    assert ((), digest({name: "/srv/app/a"})) == shape_of({name: "/srv/app/a"}, facts())


def test_names_with_signs_are_pointers():
    """Ours: as JSON pointers write them."""
    found, rest = shape_of({"a/b~c": "/srv/app/a"}, facts())

    assert ('/a~1b~0c under "/srv/app"',) == found
    assert Shape([Predicate(found[0])]).covers(call("t", {"a/b~c": "/srv/app/b"}), facts(), rest)


def test_a_digest_does_not_depend_on_the_order_of_members():
    """Ours: and what is no JSON has none."""
    assert digest({"a": 1, "b": [2]}) == digest({"b": [2], "a": 1}) != digest({"a": 1, "b": [3]})
    assert digest({"a": object()}) is None
