"""The host has one way to servers: whatever is done there goes through the pipeline."""

import ast

import pytest

ALONE = frozenset({"call_tool", "start_tool", "read_resource", "get_prompt", "completer"})
"""What only clients have."""

METHODS = ALONE | {
    "complete", "subscribe", "unsubscribe", "batch", "request", "notify", "cancel", "task",
}  # fmt: skip
"""What a client does at its server beyond listing what there is."""


FACES = {"host", "cards", "console", "terminal"}


def calls(nodes):
    """Every call of a method, with the name of the method and of what it is called on."""
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield node.func.attr, ast.unparse(node.func.value), node.lineno


def of_host(sources):
    """The files of the host and of its faces."""
    return [(one.name, one.nodes) for one in sources if one.package in FACES]


@pytest.mark.covers("hostkernel.pipeline.one-way")
def test_dispatch_is_called_in_one_place(sources):
    """Ours: a second caller would be a way round policy, consent and the audit log."""
    found = [
        path
        for path, nodes in of_host(sources)
        for name, _on, _line in calls(nodes)
        if name == "dispatch"
    ]

    assert ["host/pipeline/pipeline.py"] == found


@pytest.mark.covers("hostkernel.pipeline.one-way")
def test_nobody_but_acts_calls_servers(sources):
    """Ours: what a client is called for stands in acts, which the pipeline dispatches."""
    found = [
        f"{path}:{line} {on}.{name}"
        for path, nodes in of_host(sources)
        if not path.startswith("host/pipeline/acts/")
        for name, on, line in calls(nodes)
        if name in ALONE or (name in METHODS and on.rsplit(".", 1)[-1].strip("_") == "client")
    ]

    assert [] == found, "\n".join(found)
