"""Attacks on rules: arguments that a rule reads otherwise than the server does."""

import os

import pytest

from isthmus.host.model.attempt import Attempt
from isthmus.host.model.facts import Facts
from isthmus.host.policy.places import canonicalize_path
from isthmus.host.policy.predicates import Predicate


def fits(text, arguments, *, forbids, cwd=""):
    """Whether a predicate fits arguments."""
    attempt = Attempt(
        id="a", action="tool.call", principal="user:me", server="s", arguments=arguments
    )
    return Predicate(text).fits(attempt, Facts(cwd=cwd), forbids=forbids)


@pytest.mark.covers("hostpolicy.predicates.star-member")
@pytest.mark.parametrize("path", ["args.*", "args.to.*", "/to/*"])
def test_a_member_that_is_called_star_hides_no_other(path):
    """Ours: ``*`` is every member, also where one has that name."""
    arguments = {"*": "a@acme.com", "to": {"*": "a@acme.com", "x": "b@evil.example"}}

    assert fits(f"{path} glob '*evil*'", {**arguments, "y": "evil"}, forbids=True)
    assert not fits(f"{path} glob '*@acme.com'", {**arguments, "y": "evil"}, forbids=False)


@pytest.mark.covers("hostpolicy.predicates.kinds")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("args.n == 5", "5"),
        ("args.n == true", "true"),
        ("args.n == true", 1),
        ("args.n == 'true'", True),
        ("args.n in [1, 2]", "2"),
        ("args.n != 5", "5"),
    ],
)
def test_a_value_of_another_kind_cannot_be_judged(text, value):
    """Ours: many servers read "5" as 5, so it counts against whoever wants something."""
    assert fits(text, {"n": value}, forbids=True)
    assert not fits(text, {"n": value}, forbids=False)


@pytest.mark.covers("hostpolicy.predicates.paths-read-otherwise")
@pytest.mark.parametrize(
    "path",
    [
        " /etc/passwd",
        "/etc/passwd\n",
        "\t../x",
        "$HOME/.ssh/id",
        "${HOME}/.ssh/id",
        "%USERPROFILE%/x",
        "/proc/self/cwd/x",
        "/proc/1/cwd/etc",
        "/dev/fd/3",
        "/tmp/../proc/self/cwd/passwd",
        "//proc/thread-self/cwd",
        "file:///proc/self/cwd/x",
    ],
)
def test_a_path_that_servers_read_otherwise_leads_nowhere_that_is_known(path):
    """Ours: blanks are often stripped, variables filled in, and /proc/self is another's."""
    assert None is canonicalize_path(path, os.sep)


@pytest.mark.parametrize("path", ["routes/$id.tsx", "a b.txt", "100%.txt", "x/proc/self"])
def test_a_path_that_only_looks_odd_is_a_path(path):
    """Ours: what nobody reads otherwise is what it says."""
    assert f"/nowhere/{path}" == canonicalize_path(path, "/nowhere")
