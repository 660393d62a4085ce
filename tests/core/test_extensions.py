"""How extensions are named, declared and refused."""

import pytest

from isthmus.core.extensions import (
    check_identifier,
    check_settings,
    find_settings,
    refuse_undeclared,
)
from isthmus.errors import UsageError
from isthmus.revisions import BY_NAME, LEGACY
from isthmus.wire import ClientCapabilities, ServerCapabilities


@pytest.mark.covers("extensions.identifiers.named")
@pytest.mark.parametrize(
    "identifier",
    [
        "io.modelcontextprotocol/tasks",
        "io.modelcontextprotocol/oauth-client-credentials",
        "com.example/my-extension",
        "com.example.mcp/x",
        "local/a",
        "a-1.b2/x_y.z-2",
    ],
)
def test_an_identifier_is_a_prefix_and_a_name(identifier):
    """The rules of ``_meta`` keys, with a prefix (spec 2026-07-28 basic/versioning)."""
    assert identifier == check_identifier(identifier)


@pytest.mark.covers("extensions.identifiers.named")
@pytest.mark.parametrize(
    ("identifier", "match"),
    [
        ("refunds", "needs a prefix"),
        ("/refunds", "needs a prefix"),
        ("1com.example/x", "needs a prefix"),
        ("com.example-/x", "needs a prefix"),
        ("com..example/x", "needs a prefix"),
        ("com example/x", "needs a prefix"),
        ("com.example/", "what follows the slash"),
        ("com.example/-x", "what follows the slash"),
        ("com.example/x.", "what follows the slash"),
        ("com.example/a/b", "what follows the slash"),
        ("dev.mcp/x", "reserved"),
        ("com.mcp.tools/x", "reserved"),
        ("org.modelcontextprotocol.api/x", "reserved"),
    ],
)
def test_other_identifiers_are_refused_with_the_rule(identifier, match):
    """MUST follow the naming rules, reserved prefixes included (spec 2026-07-28 basic#_meta)."""
    with pytest.raises(UsageError, match=match):
        check_identifier(identifier)


def test_settings_are_a_json_object():
    """An empty object means none (spec 2026-07-28 basic/versioning)."""
    assert {} == check_settings("a/b", None)
    assert {"mimeTypes": ["text/html"]} == check_settings("a/b", {"mimeTypes": ("text/html",)})


@pytest.mark.parametrize(("settings", "match"), [([1], "an object"), ({"x": object()}, "sent")])
def test_settings_that_are_none_are_refused(settings, match):
    """What cannot be declared is found out before anybody connects (ours)."""
    with pytest.raises(UsageError, match=match):
        check_settings("a/b", settings)


def test_what_was_declared_is_found_on_either_side():
    """Both sides declare extensions under the same member (spec 2026-07-28 schema)."""
    declared = {"a/b": {"x": 1}, "a/c": {}}

    for capabilities in (ClientCapabilities, ServerCapabilities):
        assert {"x": 1} == find_settings(capabilities(extensions=declared), "a/b")
        assert {} == find_settings(capabilities(extensions=declared), "a/c")
        assert find_settings(capabilities(extensions=declared), "a/d") is None
        assert find_settings(capabilities(), "a/b") is None


@pytest.mark.covers("extensions.methods.undeclared-refused")
def test_a_modern_refusal_says_what_to_declare():
    """MUST list the missing capabilities (spec 2026-07-28 basic#_meta)."""
    refused = refuse_undeclared("a/b", "b/go", BY_NAME["2026-07-28"])

    assert -32021 == refused.code
    assert {"requiredCapabilities": {"extensions": {"a/b": {}}}} == refused.data


@pytest.mark.covers("extensions.methods.legacy-unknown")
@pytest.mark.parametrize("revision", LEGACY, ids=str)
def test_a_legacy_refusal_says_that_there_is_no_such_method(revision):
    """Revisions without extensions do not have their methods (ours, after JSON-RPC 2.0)."""
    refused = refuse_undeclared("a/b", "b/go", revision)

    assert -32601 == refused.code
    assert refused.data is None
