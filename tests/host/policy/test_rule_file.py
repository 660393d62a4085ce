"""Rules from TOML."""

import os

import pytest

from isthmus.host.model.errors import PolicyError
from isthmus.host.model.trace import Obligations
from isthmus.host.policy.predicates import Predicate
from isthmus.host.policy.rule_file import load_layers, read_layers

WHOLE = """
extends = "developer"

[[rule]]
id = "repo-writes"
effect = "ask"
reason = "it writes"
when = { action = "tool.call", server = "github", tool = ["create_*", "update_*"] }
where = ["args.repo glob 'acme/*'"]
unless = { labels = "untrusted" }
obligations = { assurance = "local_ui", timeout = "30s", max_calls = 20, redact = ["/token"], remember = ["session"], review = "both" }

[[rule]]
id = "second"
effect = "deny"

[rule.when]
server = "x"
"""


def test_a_rule_says_all_that_there_is():
    """Ours: one text stands for a list of one, and a yes for this once is always to be had."""
    base, own = read_layers(WHOLE, "user")
    first, second = own.rules

    assert ("default", "user", 4, 13) == (base.name, own.name, first.line, second.line)
    assert (("tool.call",), ("create_*", "update_*"), ("untrusted",)) == (
        first.when.action, first.when.tool, first.unless.labels,
    )  # fmt: skip
    assert (Predicate("args.repo glob 'acme/*'"),) == first.where
    assert Obligations(assurance="local_ui", timeout=30.0, max_calls=20, redact=("/token",), remember=("once", "session"), review="both") == first.obligations  # fmt: skip
    assert ("x",) == second.when.server


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("effekt = 'ask'", "p.toml:4: rule r: 'effekt' is no key here; did you mean 'effect'?"),
        ("when = { sever = 'x' }", "did you mean 'server'?"),
        ("when = { action = 'tool.cal' }", "which is no action; did you mean 'tool.call'?"),
        ("when = { action = 'nothing.*' }", "which is no action"),
        ("when = { origin = 'lokal' }", "did you mean 'local'?"),
        ("when = { tool = [] }", "an empty one fits nothing"),
        ("when = { tool = 3 }", "when.tool is a text or a list"),
        ("when = { egress = 'yes' }", "when.egress is true or false"),
        ("when = { annotations = { readonly = true } }", "did you mean 'read_only'?"),
        ("when = { annotations = { read_only = 1 } }", "read_only is true or false"),
        (
            "when = { annotations = { read_only = true } }",
            "a server that leaves it out would get by",
        ),
        ("when = 3", "when is a table"),
        ("where = 'args.x exists'", "where is a list"),
        ("where = ['args.x']", "p.toml:4: rule r: where 'args.x': 'args.x' is no predicate"),
        ("where = [3]", "which is no text of a predicate"),
        ("unless = {}", "unless is empty"),
        ("unless = { annotations = { read_only = true } }", "would get by"),
        ("reason = 3", "reason is a sentence"),
        ("obligations = { show = 'full' }", "'show' is no key here"),
        ("obligations = { timeout = '3 years' }", "obligations.timeout is a time"),
        ("obligations = { timeout = -1 }", "obligations.timeout is a time"),
        ("obligations = { max_calls = 0 }", "a number above 0"),
        ("obligations = { redact = ['token'] }", "a list of JSON pointers"),
        ("obligations = { remember = [] }", "obligations.remember is a list of once"),
        ("obligations = { assurance = 'sure' }", "obligations.assurance is one of callback"),
        ("obligations = 3", "obligations is a table"),
    ],
)
@pytest.mark.covers("hostpolicy.grammar.closed")
def test_what_cannot_be_is_told_with_place_and_mend(text, says):
    """Ours: nothing is passed over, since what was meant might have been a denial."""
    with pytest.raises(PolicyError) as error:
        read_layers(f'[[rule]]\nid = "r"\neffect = "ask"\n{text}\n', "user", source="p.toml")

    assert says in str(error.value)
    assert str(error.value).startswith("p.toml:")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[rule]]", "it needs an id"),
        (
            '[[rule]]\nid = "a"\neffect = "allow"\nwhen = { labels = ["x"] }',
            "cannot wait for labels",
        ),
        ('[[rule]]\nid = "a"\neffect = "deny"\nunless = { egress = true }', "nothing is stricter"),
        ('[[rule]]\nid = "a"\neffect = "permit"', "effect is one of allow, ask, deny"),
        (
            '[[rule]]\nid = "a"\neffect = "ask"\n[[rule]]\nid = "a"\neffect = "ask"',
            "another rule is called 'a'",
        ),
        ('[rule]\nid = "a"', "begin each with [[rule]]"),
        ("[[rules]]", "did you mean 'rule'?"),
        ("extends = 'develop'", "did you mean 'developer'?"),
        ("extends = 3", "is no policy here"),
        ("rule = [3]", "rule must be tables"),
        ("[[rule", "is not TOML"),
        ("\0", "is not TOML"),
        ("a = " + "[" * 5000, "is not TOML"),
        ("[[rule]]\n" * 3000, "more than 2000 rules"),
    ],
)
@pytest.mark.covers("hostpolicy.grammar.closed")
def test_a_file_that_cannot_be_is_refused_as_a_whole(text, says):
    """Ours: half of a policy is none."""
    with pytest.raises(PolicyError) as error:
        read_layers(text, "user", source="p.toml")

    assert says in str(error.value)


@pytest.mark.covers("hostpolicy.broken.locked-down")
def test_a_file_too_large_or_not_a_text_is_broken(tmp_path):
    """Ours: reading never raises, and says why."""
    huge, bytes_ = tmp_path / "huge.toml", tmp_path / "bytes.toml"
    huge.write_text("#" * (1024 * 1024 + 1))
    bytes_.write_bytes(b"\xff\xfe")

    assert "is larger than" in load_layers(str(huge), "user")[0].broken
    assert "cannot be read" in load_layers(str(bytes_), "user")[0].broken
    assert "cannot be read" in load_layers("~nobody-there/p.toml", "user")[0].broken


@pytest.mark.parametrize("what", ["pipe", "device"])
def test_what_never_ends_is_no_policy(tmp_path, what):
    """Ours: a workspace's rules may become a link to anything after it was trusted."""
    path = tmp_path / "p.toml"
    if what == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    (layer,) = load_layers(str(path), "workspace")

    assert f"{path} is no file" == layer.broken


def test_a_shipped_policy_tightens_a_workspace_by_what_it_asks_and_denies():
    """Ours: what it allows is left out there."""
    (layer,) = load_layers("developer", "workspace")

    assert {"ask", "deny"} == {rule.effect for rule in layer.rules}
