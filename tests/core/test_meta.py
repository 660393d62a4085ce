"""Keys of ``_meta`` that a program may use."""

import pytest

from isthmus.wire.meta import find_key_flaw


@pytest.mark.covers("clientcalls.meta.keys")
@pytest.mark.parametrize(
    "key",
    ["a", "traceparent", "com.example/a", "com.example.mcp/a-b_c.d9", "io.modelcontextprotocol/x"],
)
def test_a_key_has_a_name_and_maybe_a_prefix(key):
    """Spec 2026-07-28 basic#_meta: labels, a slash, a name."""
    assert find_key_flaw(key) is None


@pytest.mark.covers("clientcalls.meta.keys")
@pytest.mark.parametrize(
    "key", ["-a", "a-", "1x/a", "com..example/a", "com.example-/a", "a b", "ü", "a/b/c", 7]
)
def test_anything_else_is_no_key(key):
    """Spec 2026-07-28 basic#_meta: what a name MUST look like."""
    assert "is no key of _meta" in find_key_flaw(key)


@pytest.mark.covers("clientcalls.progress.token-ours")
def test_the_progress_token_is_ours_to_choose():
    """Spec 2026-07-28 basic/patterns/progress: unique across all requests in flight."""
    assert "on_progress=" in find_key_flaw("progressToken")
