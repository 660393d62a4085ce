"""What "such arguments" means."""

import pytest

from isthmus.host.approvals.grant_matching import GrantShape, derive_shape, digest_arguments
from isthmus.host.policy.predicates import Predicate
from support.host.policies import make_attempt, make_facts


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
    found, rest = derive_shape({"x": value}, make_facts())

    assert (() if predicate is None else (predicate,)) == found
    assert digest_arguments({"x": value} if predicate is None else {}) == rest
    shape = GrantShape([Predicate(text) for text in found])
    assert shape.covers(make_attempt("t", {"x": value}), make_facts(), rest)
    assert not shape.covers(make_attempt("t", {"x": "/elsewhere/a"}), make_facts(), rest)


@pytest.mark.parametrize("name", ["", "a b", "a\nb", "\u202ea"])
def test_a_name_that_is_no_word_is_held_to_its_value(name):
    """Ours: it cannot be written as a path of a predicate."""
    assert ((), digest_arguments({name: "/srv/app/a"})) == derive_shape(
        {name: "/srv/app/a"}, make_facts()
    )


def test_names_with_signs_are_pointers():
    """Ours: as JSON pointers write them."""
    found, rest = derive_shape({"a/b~c": "/srv/app/a"}, make_facts())

    assert ('/a~1b~0c under "/srv/app"',) == found
    assert GrantShape([Predicate(found[0])]).covers(
        make_attempt("t", {"a/b~c": "/srv/app/b"}), make_facts(), rest
    )


def test_a_digest_does_not_depend_on_the_order_of_members():
    """Ours: and what is no JSON has none."""
    assert (
        digest_arguments({"a": 1, "b": [2]})
        == digest_arguments({"b": [2], "a": 1})
        != digest_arguments({"a": 1, "b": [3]})
    )
    assert digest_arguments({"a": object()}) is None
