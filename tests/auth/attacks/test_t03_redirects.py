"""T3: an honest URL redirects to one that is not."""

import pytest

from isthmus.auth.net.network import Network, NetworkFailed, desktop
from support.http.local_web import make_response, serve_responses


@pytest.mark.covers("auth.threat.t03-redirects-off")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_no_redirect_is_followed(status):
    """Ours: what somebody else names next is not asked, least of all where clouds keep their keys."""
    async with serve_responses(lambda asked: make_response(status=200)) as inside:
        to = [f"{inside.url}/latest/meta-data", "http://169.254.169.254/latest/meta-data"]
        for where in to:
            async with serve_responses(
                lambda asked, where=where: make_response(status=status, location=where)
            ) as web:
                network = Network(desktop(web.url))
                with pytest.raises(NetworkFailed, match=str(status)):
                    await network.json(f"{web.url}/metadata")
                fetched = await network.fetch("GET", f"{web.url}/metadata")
                await network.close()

                assert status == fetched.status
                assert 2 == len(web.requests)

    assert 0 == inside.connections
