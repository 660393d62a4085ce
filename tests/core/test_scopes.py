"""What a scope is."""

import pytest

from isthmus.core.principal import check_scopes
from isthmus.errors import UsageError


@pytest.mark.parametrize(
    "scopes", [set(), {"a", "files:read"}, ["a", "a"], ("https://x.example/y",)]
)
def test_scopes_are_a_set_whatever_they_come_in(scopes):
    """RFC 6749 3.3: their order does not matter."""
    assert frozenset(scopes) == check_scopes(scopes, "this")


@pytest.mark.parametrize(
    "scopes", ["files:read", None, 1, True, [1], [None], {""}, {"a b"}, {'a"'}, {"a\\b"}, {"ä"}]
)
def test_what_are_no_scopes_is_refused_by_name(scopes):
    """RFC 6749 3.3: printable ASCII without blanks, quotes and backslashes."""
    with pytest.raises(UsageError, match="this: "):
        check_scopes(scopes, "this")


@pytest.mark.covers("auth.resource.no-offline-access")
def test_offline_access_is_none_of_a_servers():
    """Spec 2026-07-28 basic/authorization#refresh-tokens: SHOULD NOT be named."""
    with pytest.raises(UsageError, match="offline_access"):
        check_scopes({"a", "offline_access"}, "this")
