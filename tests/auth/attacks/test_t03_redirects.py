"""T3: an honest URL redirects to one that is not."""

import pytest

from isthmus.auth.network import Network, NetworkFailed, desktop
from local_web import answer, serving


@pytest.mark.covers("auth.threat.t03-redirects-off")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_no_redirect_is_followed(status):
    """Ours: what somebody else names next is not asked, least of all where clouds keep their keys."""
    async with serving(lambda asked: answer(status=200)) as inside:
        to = [f"{inside.url}/latest/meta-data", "http://169.254.169.254/latest/meta-data"]
        for where in to:
            async with serving(
                lambda asked, where=where: answer(status=status, location=where)
            ) as web:
                network = Network(desktop(web.url))
                with pytest.raises(NetworkFailed, match=str(status)):
                    await network.json(f"{web.url}/metadata")
                fetched = await network.fetch("GET", f"{web.url}/metadata")
                await network.close()

                assert status == fetched.status
                assert 2 == len(web.requests)

    assert 0 == inside.connections
