"""What the scopes mean that a client was registered with."""

import pytest

from isthmus.auth.authorization_server.core.settings import RegistrationPolicy
from isthmus.auth.authorization_server.storage.clients import RegisteredClient
from isthmus.errors import UsageError
from support.auth.small_authority import BACK, SmallAuthority, redirect_parameters


async def test_a_client_that_registered_itself_may_ask_for_more_later():
    """Ours: PyPI mcp and npm register for the first challenge's scopes, and step up afterwards."""
    async with SmallAuthority() as small:
        client = await small.public(scope="read")
        first = await small.tokens(client)
        more = await small.tokens(client, scope="read write")

    assert ("read", "read write") == (first["scope"], more["scope"])


async def test_a_client_that_was_set_up_is_held_to_its_scopes():
    """Ours: what an operator wrote down is a limit."""
    known = RegisteredClient(client_id="desk", redirect_uris=(BACK,), scopes=("read",))
    async with SmallAuthority(registration=RegistrationPolicy(static=[known])) as small:
        refused = redirect_parameters(await small.ask("desk", scope="read write"))
        first = await small.tokens("desk")

    assert ("invalid_scope", "read") == (refused["error"], first["scope"])


def test_a_client_is_not_set_up_with_a_scope_that_there_is_not():
    """Ours: a name that was mistyped is no invalid_scope in its first request."""
    known = RegisteredClient(client_id="desk", redirect_uris=(BACK,), scopes=("raed",))
    with pytest.raises(UsageError, match=r"'desk' asks for 'raed', .*: it has read, write"):
        SmallAuthority(registration=RegistrationPolicy(static=[known]))
