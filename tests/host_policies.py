"""Attempts, circumstances and policies for tests, in a line each."""

from isthmus.host.attempt import Attempt
from isthmus.host.config.entries import Labels
from isthmus.host.policy.facts import Facts
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.reading import read_layers
from isthmus.wire import Tool, ToolAnnotations

__all__ = ["READS", "call", "facts", "policy", "tool"]

READS = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)


def call(tool="read", arguments=None, *, server="files", action="tool.call", **more):
    """An attempt; a tool call unless it says otherwise."""
    more = {"id": "1", "principal": "user:local", "run": "run"} | more
    return Attempt(action=action, server=server, object=tool, arguments=arguments or {}, **more)


def facts(*, egress=False, reads=(), returns=(), labels=(), **more):
    """Circumstances: those of a stranger, but for what is named."""
    more = {"identity": "id", "fingerprint": "f", "now": 1.0, "assurance": "local_ui"} | more
    target = Labels(reads=tuple(reads), returns=tuple(returns), egress=egress)
    return Facts(labels=frozenset(labels), target=target, **more)


def policy(*rules, **layers):
    """A policy of the user's rules, and of other layers' as keywords, each a text of TOML."""
    named = {"user": "\n".join(rules), **layers}
    return Policy([one for name, text in named.items() for one in read_layers(text, name)])


def tool(name="read", **more):
    """A tool's definition."""
    return Tool(name=name, **({"input_schema": {"type": "object"}} | more))
