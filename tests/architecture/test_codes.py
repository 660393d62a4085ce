"""Error codes: those of the specification mean what it says, and ours lie outside of its range."""

import ast

import pytest

RESERVED = range(-32099, -31999)
DEFINED = {-32002, -32020, -32021, -32022, -32042}
# What other servers send: we only read it, or a program that was written for their library sends it (ADR 0124).
HEARD = {
    ("transports/http/client/channel.py", -32000),
    ("transports/http/client/channel.py", -32001),
    ("compat/types/table.py", -32000),  # constants that mcp.types has; nothing here sends them
    ("compat/types/table.py", -32001),
    ("compat/fastmcp/server/middleware/rate_limiting.py", -32000),
    ("compat/fastmcp/server/middleware/error_handling.py", -32000),
    ("compat/fastmcp/server/middleware/error_handling.py", -32001),
}


def codes(nodes):
    """Each negative whole number in a file, with its line."""
    return [
        (-node.operand.value, node.lineno)
        for node in nodes
        if isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.USub)
        and isinstance(node.operand, ast.Constant)
        and isinstance(node.operand.value, int)
    ]


@pytest.mark.covers("errors.codes.of-the-specification")
def test_no_code_of_the_reserved_range_is_of_our_own_making(sources):
    """Spec 2026-07-28 basic#error-codes: MUST NOT emit codes that it does not define."""
    ours = [
        f"{source.name}:{line}: {code}"
        for source in sources
        for code, line in codes(source.nodes)
        if code in RESERVED
        and code not in DEFINED
        and source.package != "linter"
        and (source.name, code) not in HEARD
    ]

    assert [] == ours
