"""What holds for every test of authorization: no secret is seen anywhere."""

import pytest

from secret_watch import watching
from upstream_provider import UpstreamProvider


@pytest.fixture(autouse=True)
def secret_watch(monkeypatch):
    """Fails a test in which a secret stands in a log, an error, a page or a refusal.

    A test in which one has to, such as a command that prints a new secret once, asks for the
    fixture and calls ``leaks()``, which says what there was and forgets it.
    """
    with watching(monkeypatch) as watch:
        yield watch
    assert [] == watch.leaks(), "a secret was seen"


@pytest.fixture
async def remote():
    """An OpenID provider on this machine, which users are logged in at and have agreed to."""
    async with UpstreamProvider() as provider:
        yield provider
