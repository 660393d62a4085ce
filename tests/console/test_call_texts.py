"""Command lines and rules that are made of a call."""

import json
import shlex

import pytest

from isthmus.console.drawing.call_line import write_call_line
from isthmus.console.drawing.rule_text import write_rule
from isthmus.host import Attempt, Facts, Policy
from isthmus.host.policy.rule_file import read_layers

HOSTILE = [
    'it\'s "quoted" `id` $(id) $HOME !! \\ \n -- ;|&',
    "\x1b[2J\x7f\u202e\U0001f600\u2028",
    '"]\n[[rule]]\neffect = "allow"',
    "''' \"\"\"",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_shell_reads_back_the_call(text):
    """Ours: what is copied does what was done, and holds nothing that a terminal obeys."""
    line = write_call_line("files__read", {"path": text, "n": [1, {"a": None}]})

    words = shlex.split(line)
    assert words[:4] == ["isthmus", "call", "--host", "files__read"]
    assert json.loads(words[5]) == {"path": text, "n": [1, {"a": None}]}
    assert line.isascii()
    assert line.isprintable()


def test_a_call_without_arguments_is_short():
    """Ours: nothing is written that says nothing."""
    assert write_call_line("clock__now", {}) == "isthmus call --host clock__now"


@pytest.mark.parametrize("text", [*HOSTILE, "plain", "a*b?c"])
def test_a_rule_made_of_a_call_fits_that_call(text):
    """Ours: the rule is read by the grammar of policies, and decides the same call once more."""
    arguments = {"path": text, "count": 3, "force": True, "list": [1], "odd key": "x", "a/b~c": "y"}
    written = write_rule(
        "deny",
        action="tool.call",
        server="files",
        object=text.replace("\n", " "),
        principal="user:a*",
        arguments=arguments,
    )

    layers = read_layers(written, "user")
    attempt = Attempt(
        id="1",
        action="tool.call",
        principal="user:a*",
        server="files",
        object=text.replace("\n", " "),
        arguments=arguments,
    )
    trace = Policy(layers).decide(attempt, Facts())
    assert len(layers[0].rules) == 1
    assert trace.effect == "deny"
    assert trace.rule == layers[0].rules[0].id


def test_what_was_redacted_is_no_condition():
    """Ours: nobody knows what stood there, so that a rule would never fit."""
    written = write_rule(
        "allow",
        action="tool.call",
        server="s",
        object="t",
        arguments={"token": "Bearer [redacted]", "big": 2**70, "*": 1},
    )

    assert "where" not in written
    assert '# The rule holds whatever these arguments are: "token", "big", "*"' in written


def test_a_rule_says_which_arguments_it_does_not_look_at():
    """Ours: a rule that allows must not hold for more than whoever adds it believes."""
    given = {"cmd": ["rm", "x"], "at\n[[rule]]": None, "ratio": 1.5, "force": True}
    written = write_rule("allow", action="tool.call", server="s", object="t", arguments=given)
    lost = write_rule("allow", action="tool.call", server="s", object="t", arguments="[9 bytes]")

    assert 'where = ["args.ratio == 1.5", "args.force == true"]' in written
    assert '# The rule holds whatever these arguments are: "cmd", "at\\u000A[[rule]]"' in written
    assert "were not kept: the rule holds for any" in lost
    assert (
        1 == len(read_layers(written, "user")[0].rules) == len(read_layers(lost, "user")[0].rules)
    )


@pytest.mark.parametrize(
    ("action", "key"),
    [("resource.read", "uri"), ("prompt.get", "prompt"), ("completion", "object")],
)
def test_the_target_is_called_as_policies_call_it(action, key):
    """Ours: a URI is `uri`, a prompt `prompt`, anything else `object`."""
    assert f'{key} = "x"' in write_rule("ask", action=action, server="s", object="x")
