"""``WWW-Authenticate``: read by its grammar, and written so that it can be read."""

import pytest

from isthmus.auth.net.challenge import Challenge, parse_challenges, write_challenge


@pytest.mark.parametrize(
    ("values", "found"),
    [
        (["Bearer"], [("bearer", {}, None)]),
        (['Bearer realm="x"'], [("bearer", {"realm": "x"}, None)]),
        (['bearer REALM="x",Scope=a'], [("bearer", {"realm": "x", "scope": "a"}, None)]),
        (
            ['Bearer realm="x", Basic realm="y"'],
            [("bearer", {"realm": "x"}, None), ("basic", {"realm": "y"}, None)],
        ),
        (["Negotiate abc==, Bearer"], [("negotiate", {}, "abc=="), ("bearer", {}, None)]),
        (
            ["Negotiate abc", 'Bearer a="b"'],
            [("negotiate", {}, "abc"), ("bearer", {"a": "b"}, None)],
        ),
        (['Bearer a = "b" , c="d"'], [("bearer", {"a": "b", "c": "d"}, None)]),
        ([',, Bearer a="b",, ,c="d",'], [("bearer", {"a": "b", "c": "d"}, None)]),
        (["Bearer,Basic,DPoP"], [("bearer", {}, None), ("basic", {}, None), ("dpop", {}, None)]),
        (["Bearer, a=b"], [("bearer", {"a": "b"}, None)]),
        ([r'Bearer a="q\"u\\o\te"'], [("bearer", {"a": r'q"u\ote'}, None)]),
        (['Bearer a=""'], [("bearer", {"a": ""}, None)]),
        (['Bearer a="1", a="2"'], [("bearer", {"a": "1"}, None)]),
        (['Bearer a="b", ???, c="d"'], [("bearer", {"a": "b", "c": "d"}, None)]),
        (['Bearer a="never ends, c="d"'], [("bearer", {}, None)]),
        (['Bearer a="never ends\\'], [("bearer", {}, None)]),
        (['Bearer a=b "\\'], [("bearer", {}, None)]),
        ([""], []),
        (["   "], []),
        (['realm="x"'], []),
        ([], []),
    ],
)
def test_challenges_are_read_as_the_grammar_says(values, found):
    """RFC 9110 11.6.1: schemes, parameters and lists, with all the white space that is allowed."""
    assert [Challenge(*one) for one in found] == parse_challenges(values)


def test_scopes_are_a_set_or_not_named():
    """RFC 6750 3: a challenge without ``scope`` says nothing about scopes, which is not none."""
    read = parse_challenges(['Bearer scope="a  b", Bearer scope="", Bearer'])

    assert [{"a", "b"}, set(), None] == [challenge.scopes for challenge in read]


def test_too_much_is_cut():
    """Ours: a header of any length costs a bounded time and makes a bounded list."""
    many = parse_challenges([", ".join(["Bearer"] * 5000)] * 20)
    wide = parse_challenges(["Bearer " + ", ".join(f"p{n}=1" for n in range(5000))])

    assert 32 == len(many)
    assert 32 == len(wide[0].params)


def test_challenges_are_written_with_quotes():
    """RFC 6750 3: values are quoted strings, and what means something in one is escaped."""
    params = {"realm": 'a"b\\c', "scope": "x y", "missing": None}

    assert r'Bearer realm="a\"b\\c", scope="x y"' == write_challenge("Bearer", params)
    assert "DPoP" == write_challenge("DPoP", {"error": None})


@pytest.mark.parametrize(
    ("scheme", "name"), [("Bea rer", "a"), ("", "a"), ("Bearer", "a=b"), ("Bearer", "")]
)
def test_names_are_tokens(scheme, name):
    """RFC 9110 11.1: what is no token is not written."""
    with pytest.raises(ValueError, match="no name of a"):
        write_challenge(scheme, {name: "x"})
