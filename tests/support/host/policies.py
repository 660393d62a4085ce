"""Attempts, circumstances and policies for tests, in a line each."""

from isthmus.host.model.attempt import Attempt
from isthmus.host.model.entries import Labels
from isthmus.host.model.facts import Facts
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.rule_file import read_layers
from isthmus.wire import Tool, ToolAnnotations

__all__ = ["READS", "make_attempt", "make_facts", "make_policy", "make_tool"]

READS = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)


def make_attempt(tool="read", arguments=None, *, server="files", action="tool.call", **more):
    """An attempt; a tool call unless it says otherwise."""
    more = {"id": "1", "principal": "user:local", "run": "run"} | more
    return Attempt(action=action, server=server, object=tool, arguments=arguments or {}, **more)


def make_facts(*, egress=False, reads=(), returns=(), labels=(), **more):
    """Circumstances: those of a stranger, but for what is named."""
    more = {"identity": "id", "fingerprint": "f", "now": 1.0, "assurance": "local_ui"} | more
    target = Labels(reads=tuple(reads), returns=tuple(returns), egress=egress)
    return Facts(labels=frozenset(labels), target=target, **more)


def make_policy(*rules, **layers):
    """A policy of the user's rules, and of other layers' as keywords, each a text of TOML."""
    named = {"user": "\n".join(rules), **layers}
    return Policy([one for name, text in named.items() for one in read_layers(text, name)])


def make_tool(name="read", **more):
    """A tool's definition."""
    return Tool(name=name, **({"input_schema": {"type": "object"}} | more))
