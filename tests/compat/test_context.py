"""``Context`` that a program makes itself, as tests of servers do."""

from types import SimpleNamespace

import pytest

from isthmus.compat.mcp.context import Context


def test_a_context_has_the_request_that_it_is_made_with():
    """In 1.x, Context(request_context=…, fastmcp=…) leads to the lifespan's object."""
    lifespan = object()
    made = Context(request_context=SimpleNamespace(lifespan_context=lifespan), fastmcp="server")
    assert lifespan is made.request_context.lifespan_context
    assert "server" == made.fastmcp


def test_a_context_without_a_request_says_so():
    """Outside of a request there is none."""
    with pytest.raises(ValueError, match="outside of a request"):
        _ = Context().request_context
