"""What holds for every test of authorization: no secret is seen anywhere."""

import pytest

from support.auth.upstream_provider import UpstreamProvider


@pytest.fixture(autouse=True)
def watched(secret_watch):
    """No secret is seen."""
    return secret_watch


@pytest.fixture
async def remote():
    """An OpenID provider on this machine, which users are logged in at and have agreed to."""
    async with UpstreamProvider() as provider:
        yield provider
