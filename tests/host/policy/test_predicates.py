"""Predicates of rules about arguments."""

import pytest

from isthmus.host.policy import predicates
from isthmus.host.policy.predicates import BadPredicate, Predicate
from support.host.policies import make_attempt, make_facts


def fits(text, arguments, *, forbids=False, **circumstances):
    """Whether a predicate fits."""
    return Predicate(text).fits(
        make_attempt("t", arguments), make_facts(**circumstances), forbids=forbids
    )


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("glob 'acme/*'", "acme/x", True), ("glob ['a', 'b*']", "bc", True), ("glob 'a'", "b", False),
        (r"regex '[a-z]+\d'", "abc1", True), ("regex 'a'", "ba", False),
        ("in ['a', 3]", 3, True), ("in ['a', 3]", "3", False), ("in [1]", True, False), ("in [1.0]", 1, True),
        ("== 'x'", "x", True), ("!= 'x'", "y", True), ("== true", True, True), ("== 1", True, False),
        ("< 5", 4, True), ("<= 5", 5, True), ("> 5", 5, False), (">= 5", 10**400, True),
        ("size < 3", "ab", True), ("size > 1", [1, 2], True), ("size == 1", {"a": 1}, True),
        ("exists", None, True), ("under('/tmp')", "/tmp/a", True), ("under ['/a', '/tmp']", "/tmp/../etc", False),
        ("host-in ['example.com', '*.example.org']", "https://a.example.org/x", True),
        ("host-in 'example.com'", "https://example.com@evil.com/", False),
    ],
)  # fmt: skip
@pytest.mark.covers("hostpolicy.under.no-escape", "hostpolicy.host-in.no-tricks")
def test_each_operator_says_what_it_says(text, value, expected):
    """Ours: a truth value is no number, and a number no text."""
    assert expected is fits(f"args.x {text}", {"x": value})


@pytest.mark.parametrize(
    ("path", "expected"),
    [("args.a.b", True), ("/a/b", True), ("args./a/b", True), ("args.list.0", True), ("args.list.*", True),
     ("args.**", False), ("/we~1ird~0", True), ("args.gone", False), ("args.a.b.c", False), ("args.list.9", False),
     ("args.__proto__", True), ("object", False)],
)  # fmt: skip
def test_a_path_names_a_value_by_dots_or_as_a_json_pointer(path, expected):
    """Ours: names of others, such as __proto__, are names and nothing else."""
    arguments = {"a": {"b": "x"}, "list": ["x", "x"], "we/ird~": "x", "__proto__": "x", "n": "y"}

    assert expected is fits(f"{path} == 'x'", arguments)


def test_the_object_is_a_value_as_well():
    """Ours: a resource's URI can be looked at as an argument can."""
    attempt = make_attempt("https://example.com/a", action="resource.read")

    assert Predicate("object host-in 'example.com'").fits(attempt, make_facts(), forbids=False)


def test_of_several_values_all_must_fit_what_allows_and_one_what_forbids():
    """Ours: a list with one bad path is a bad list."""
    mixed = {"paths": ["/tmp/a", "/etc/passwd"]}

    assert (False, True) == (
        fits("args.paths.* under '/tmp'", mixed), fits("args.paths.* under '/etc'", mixed, forbids=True),
    )  # fmt: skip


@pytest.mark.parametrize("text", ["args.x under '/tmp'", "args.x glob 'a'", "args.x < 5", "args.x host-in 'a.b'",
                                  "args.x size < 5", "args.x == 1", "args.x in [1]", "args.x regex 'a'"])  # fmt: skip
@pytest.mark.parametrize("negation", ["", "not "])
@pytest.mark.covers("hostpolicy.predicates.doubt")
def test_doubt_counts_against_whoever_wants_something(text, negation):
    """Ours: what cannot be judged does not fit what allows, and fits what forbids, with not as well."""
    doubtful = (
        {"x": None}
        if "size" in text
        else {"x": [{"deep": 1}]}
        if "<" not in text
        else {"x": "no number"}
    )

    assert not fits(negation + text, doubtful)
    assert fits(negation + text, doubtful, forbids=True)


@pytest.mark.parametrize(
    "operator", ["under '/etc'", "glob '/etc/*'", "regex '/etc/.*'", "host-in 'a.b'"]
)
@pytest.mark.parametrize("negation", ["", "not "])
@pytest.mark.covers("hostpolicy.predicates.doubt", "hostpolicy.under.no-escape")
def test_what_is_too_long_to_be_judged_counts_against_whoever_wants_something(operator, negation):
    """Ours: a program may well read a path that is made longer than any path by ``./``."""
    long = {"x": "/etc/" + "./" * 600_000 + "passwd"}

    assert not fits(f"{negation}args.x {operator}", long)
    assert fits(f"{negation}args.x {operator}", long, forbids=True)


def test_a_number_is_no_path_and_lies_nowhere():
    """Ours: what cannot be a path leads nowhere, so that a rule about paths is not about it."""
    assert not fits("args.x under '/etc'", {"x": 3})
    assert not fits("args.x under '/etc'", {"x": 3}, forbids=True)
    assert fits("not args.x under '/etc'", {"x": 3})


def test_a_star_stands_for_every_argument():
    """Ours: whatever it is called, and also where an argument is called ``*``."""
    assert fits("args.* under '/etc'", {"*": "/tmp", "y": "/etc/x"}, forbids=True)
    assert not fits("args.* under '/tmp'", {"*": "/tmp", "y": "/etc/x"})


@pytest.mark.parametrize(("folds", "forbidden"), [(True, True), (False, False)])
def test_case_is_folded_by_what_forbids_where_files_ignore_case(monkeypatch, folds, forbidden):
    """Ours: /TMP/X is another file on Linux, and the same one on macOS and Windows."""
    monkeypatch.setattr(predicates, "CASE_INSENSITIVE", folds)

    assert forbidden == fits("args.x under '/tmp'", {"x": "/TMP/X"}, forbids=True)
    assert not fits("args.x under '/tmp'", {"x": "/TMP/X"})


@pytest.mark.covers("hostpolicy.predicates.doubt")
def test_what_is_not_there_fits_nothing_and_its_absence_allows_nothing():
    """Ours: not about something that is missing fits what forbids, and not what allows."""
    assert [False, False, False, True] == [
        fits("args.x == 1", {}), fits("not args.x == 1", {}),
        fits("args.x == 1", {}, forbids=True), fits("not args.x == 1", {}, forbids=True),
    ]  # fmt: skip
    assert fits("not args.x exists", {})
    assert not fits("not args.x exists", {"x": 1})


@pytest.mark.covers("hostpolicy.under.no-escape", "hostpolicy.predicates.doubt")
def test_a_relative_path_is_judged_where_the_servers_folder_is_known():
    """Ours: elsewhere it counts against whoever wants something."""
    text = "args.x under '${workspace}'"

    assert fits(text, {"x": "a"}, workspace="/w", cwd="/w")
    assert not fits(text, {"x": "../a"}, workspace="/w", cwd="/w")
    assert not fits(text, {"x": "a"}, workspace="/w")
    assert fits(text, {"x": "a"}, workspace="/w", forbids=True)
    assert not fits(text, {"x": "/w/a"})


def test_more_values_than_anybody_looks_at_cannot_be_judged():
    """Ours: a list of a million is not gone through to the end."""
    many = {"x": ["a"] * 20_000}

    assert not fits("args.x.* == 'a'", many)
    assert fits("args.** == 'b'", many, forbids=True)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("args.x", "no predicate"), ("x == 1", "names nothing"), ("args.x like 'a'", "no operator"),
        ("args.x = 1", "no operator"), ("args.x under 'a'", "under nothing"), ("args.x host-in 'https://a.b'", "no host"),
        ("args.x host-in 'B.example'", "no host"), ("args.x size 3", "after size"), ("args.x < 'a'", "not a number"),
        ("args.x regex '(a'", "without"), ("args.x == [1]", "not a text"), ("args.x in 3", "not a list"),
        ("args.x glob 3\ny = 4", "not a glob"), ("args.x exists 3", "no value"), ("args.x glob []", "not a glob"),
        ("args.x in [[1]]", "not a list"), ("args.x in " + "[" * 5000, "not a list"), ("args.x < nan", "not a number"), ("args.x == ", "not a text"),
    ],
)  # fmt: skip
@pytest.mark.covers("hostpolicy.grammar.closed")
def test_what_cannot_be_read_is_told_with_how_to_write_it(text, why):
    """Ours: a predicate that means nothing is never passed over."""
    with pytest.raises(BadPredicate, match=why):
        Predicate(text)
