"""Names of tools over all servers: legal everywhere, two-way, the same whatever else is there."""

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from isthmus.host.catalog.names import (
    ItemNaming,
    NameTable,
    is_server_name,
    join_uri,
    make_name,
    make_namespace,
    split_uri,
)
from support.examples import count_examples

LEGAL = re.compile(r"[A-Za-z0-9_-]{1,64}")

servers = st.from_regex(r"[a-z0-9][a-z0-9.-]{0,30}", fullmatch=True)
anything = st.text(max_size=80) | st.from_regex(r"[A-Za-z0-9_.-]{1,128}", fullmatch=True)


@pytest.mark.covers("hostchat.names.legal")
@settings(max_examples=count_examples(60))
@given(servers | anything, anything)
@example("a" * 31, "b" * 128)
@example("a..b.", "")
@example("My Server", "<script>alert(1)</script>")
def test_every_name_is_legal_for_every_provider(server, own):
    """Ours: providers take letters, digits, underscore and hyphen, 64 at most."""
    name = make_name(server, own)

    assert LEGAL.fullmatch(name)
    assert make_namespace(server) == name.split("__", 1)[0]


@pytest.mark.covers("hostchat.names.two-way")
@settings(max_examples=count_examples(60))
@given(st.lists(st.tuples(servers, anything), max_size=20, unique=True))
def test_every_name_leads_back_to_its_server_and_tool(things):
    """Ours: what a model names is one tool of one server."""
    table = NameTable(ItemNaming(*thing) for thing in things)

    assert {thing: thing for thing in things} == {
        thing: table.owners[table.names[thing]] for thing in things
    }
    assert () == table.clashes


@settings(max_examples=count_examples(60))
@given(servers, anything, servers, anything)
@example("a", "_b", "a.", "b")
@example("a.b", "c", "a-b", "c")
@example("a", "get!", "a", f"get_{'0' * 8}")
def test_two_things_never_have_one_name(server, own, other, another):
    """Ours: a name is of one thing."""
    assert ((server, own) == (other, another)) == (
        make_name(server, own) == make_name(other, another)
    )


@pytest.mark.covers("hostchat.names.stable")
@settings(max_examples=count_examples(60))
@given(st.lists(st.tuples(servers, anything), max_size=12, unique=True), st.randoms())
def test_names_do_not_depend_on_who_came_first(things, random):
    """Ours: the same tool has the same name in every run, whichever server starts first."""
    mixed = list(things)
    random.shuffle(mixed)

    assert (
        NameTable(ItemNaming(*t) for t in things).names
        == NameTable(ItemNaming(*t) for t in mixed).names
    )


@settings(max_examples=count_examples(60))
@given(servers, st.text(max_size=60))
@example("shop", "ui://shop+panel")
@example("shop", "git+https://example.com/x")
@example("My_Shop", "file:///x")
def test_a_printed_resource_leads_back_to_its_server_and_uri(server, uri):
    """Ours: a resource in one word can be typed and is understood."""
    assert (server, uri) == split_uri(join_uri(server, uri))


@pytest.mark.parametrize("text", ["", "file:///a", "a b+file:///a", "+x", "ui://x"])
def test_what_names_no_server_is_no_printed_resource(text):
    """Ours: a plain URI stays one."""
    assert split_uri(text) is None


@pytest.mark.parametrize(
    ("server", "own", "name"),
    [
        ("shop", "book", "shop__book"),
        ("shop", "__proto__", "shop____proto__"),
        ("my.shop", "book-2", "my_shop__book-2"),
        ("shop", "a.b", "shop__a_b_2e7336dc"),
        ("shop", "<script>", "shop__script_5b63e5b2"),
        ("shop", "\u202eevil", "shop__evil_c34b5d3b"),
    ],
)
def test_names_are_these(server, own, name):
    """Ours: names stand in grants, rules and logs, so they stay as they are from version to version."""
    assert name == make_name(server, own)


@pytest.mark.covers("hostchat.names.no-shadow")
def test_what_would_have_the_same_name_has_none():
    """Ours: neither of two things stands in for the other."""
    table = NameTable([ItemNaming("a", "x"), ItemNaming("a", "y", "x"), ItemNaming("a", "z")])

    assert {"a__z": ("a", "z")} == table.owners
    assert [("a__x", (("a", "x"), ("a", "y")))] == [(c.name, c.of) for c in table.clashes]
    assert "'x' of a, 'y' of a would both be called a__x" in str(table.clashes[0])


@pytest.mark.parametrize("name", ["", "A", ".a", "-a", "a_b", "a" * 32, "a\n", "ä"])
def test_names_that_no_server_may_have(name):
    """Ours: lower case, digits, dot and hyphen, 31 at most."""
    assert not is_server_name(name)


def test_a_name_is_kept_as_long_as_it_fits_and_cut_to_fit_otherwise():
    """Ours: to the last character that there is room for."""
    fits, cut = make_name("a", "b" * 61), make_name("a", "b" * 62)

    assert "a__" + "b" * 61 == fits
    assert (64, "a__" + "b" * 52 + "_") == (len(cut), cut[:56])
