"""Policy lint."""

import pytest

from isthmus.host.policy.lint import lint_policy
from support.host.policies import make_policy


def rule(id, effect, when="", more=""):
    """A rule as TOML."""
    return f'[[rule]]\nid = "{id}"\neffect = "{effect}"\nwhen = {{ {when} }}\n{more}\n'


def codes(*rules, servers=None, **layers):
    """What is found: code and rule."""
    return [(one.code, one.rule) for one in lint_policy(make_policy(*rules, **layers), servers)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (rule("never", "allow", 'tool = "read"'), rule("no", "deny", 'tool = "r*"')),
        (rule("never", "ask", 'action = "tool.call", server = ["a", "b"]'), rule("no", "deny", 'action = "tool.*"')),
        (rule("never", "allow", 'tool = "a"', "where = ['args.x == 1', 'args.y == 1']"), rule("no", "deny", 'tool = "a"', "where = ['args.x == 1']")),
        (rule("never", "allow", 'tool = "a", origin = ["local"]'), rule("same", "ask", 'tool = "a", origin = ["local"]')),
        (rule("never", "ask", 'tool = "a", labels = ["x", "y"]'), rule("no", "deny", 'tool = "a", labels = ["x"]')),
        (rule("never", "ask", 'tool = "a", origin = "local"'), rule("no", "deny", 'tool = "a", origin = ["local", "task"]')),
    ],
)  # fmt: skip
def test_a_rule_that_never_decides_is_found(one, other):
    """Ours: whoever wrote it thinks that it holds."""
    assert [("unreachable", "never")] == codes(one, other)


@pytest.mark.parametrize(
    "rules",
    [
        (
            rule("yes", "allow", 'tool = "a"'),
            rule("no", "deny", 'tool = "a"', "where = ['args.x exists']"),
        ),
        (rule("yes", "allow", 'tool = "a*"'), rule("no", "deny", 'tool = "ab"')),
        (rule("yes", "allow", 'server = "a"'), rule("no", "deny", 'tool = "a"')),
        (rule("yes", "allow", 'tool = "a"'), rule("asks", "ask", 'tool = "*"')),
        (
            rule("yes", "allow", 'tool = "a", egress = false'),
            rule("no", "deny", 'tool = "a", egress = true'),
        ),
        (rule("no", "deny", 'tool = "a"'), rule("none", "deny")),
        (
            rule("asks", "ask", 'tool = "a"'),
            rule("two", "ask", 'tool = "a"', "obligations = { max_calls = 3 }"),
        ),
    ],
)
def test_a_rule_that_may_decide_is_not_doubted(rules):
    """Ours: what cannot be told for sure is not said."""
    assert [] == codes(*rules)


def test_layers_count():
    """Ours: a managed question leaves nothing to the user's rules, and a later layer wins between equals."""
    same = 'tool = "a"'

    assert [("unreachable", "mine")] == codes(rule("mine", "allow", same), managed=rule("m", "ask"))
    assert [("unreachable", "theirs")] == codes(
        rule("mine", "allow", same), default=rule("theirs", "ask", same)
    )
    assert [("duplicate", "mine")] == codes(
        rule("mine", "allow", same), default=rule("mine", "deny", 'tool = "b"')
    )


@pytest.mark.parametrize(
    ("one", "code"),
    [
        (rule("r", "deny", 'action = "resource.read", tool = "a"'), "never"),
        (rule("r", "deny", 'tool = "a", uri = "b"'), "never"),
        (rule("r", "ask", "unattended = true"), "never"),
        (rule("r", "allow"), "broad"),
        (rule("r", "allow", 'tool = "*"'), "broad"),
        (rule("r", "allow", 'action = "sampling.*"'), "broad"),
        (rule("r", "allow", 'server = "mail", tool = "send", egress = true'), "broad"),
        (rule("r", "allow", "annotations = { read_only = true }"), None),
        (rule("r", "allow", 'action = "resource.read"'), None),
        (rule("r", "ask"), None),
    ],
)  # fmt: skip
def test_what_can_never_be_and_what_is_too_broad(one, code):
    """Ours: circumstances that exclude one another, and a yes to everything."""
    assert ([] if code is None else [(code, "r")]) == codes(one)


def test_names_that_nobody_has_are_found():
    """Ours: a typing error in a denial is a hole."""
    rules = (
        rule("server", "deny", 'server = "fils"'),
        rule("tool", "deny", 'server = "files", tool = ["rm*", "read"]'),
    )

    assert [] == codes(*rules)
    assert [("unknown", "server")] == codes(*rules, servers={"files": ()})
    assert [("unknown", "server"), ("unknown", "tool")] == codes(
        *rules, servers={"files": ["read"], "x": ()}
    )
    (found, _) = lint_policy(make_policy(*rules), {"files": ["read"]})
    assert "no server is called 'fils'; there are files" == found.text


LABELS = {"mail": ("private",), "web": ("untrusted", "pii")}


@pytest.mark.covers("hostpolicy.lint.labels")
@pytest.mark.parametrize(
    ("label", "says"),
    [
        ("privat", "is 'private' meant"),
        ("Private", "is 'private' meant"),
        ("untrusetd", "is 'untrusted' meant"),
        ("pi", "is 'pii' meant"),
        ("customer", "no server gives the label 'customer'; there are pii, private, untrusted"),
    ],
)
def test_a_label_that_nothing_has_is_found(label, says):
    """Ours: a guard that waits for it guards nothing."""
    written = make_policy(rule("guard", "ask", f'action = "tool.call", labels = ["{label}"]'))
    (found,) = lint_policy(written, {"mail": (), "web": ()}, LABELS)

    assert ("label", "guard") == (found.code, found.rule)
    assert says in found.text


@pytest.mark.covers("hostpolicy.lint.labels")
def test_a_label_is_not_doubted_where_something_has_it_or_nobody_knows():
    """Ours: the two of our own, those of the configuration, and any word without one."""
    of = [
        make_policy(rule("guard", "ask", f'labels = ["{one}"]'))
        for one in ("private", "pii", "crm")
    ]

    assert [] == lint_policy(of[0], {}, {})
    assert [] == lint_policy(of[1], {}, LABELS)
    assert [] == lint_policy(of[2])


@pytest.mark.covers("hostpolicy.lint.labels")
def test_a_mistyped_label_of_a_server_is_found():
    """Ours: private data that are called otherwise go where they like."""
    found = lint_policy(
        make_policy(), {"mail": ()}, {"mail": ("privat", "crm"), "web": ("untrusted",)}
    )

    assert [("label", "server mail")] == [(one.code, one.rule) for one in found]
    assert "is 'private' meant" in found[0].text
