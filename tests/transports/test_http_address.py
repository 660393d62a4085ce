"""What is said of a server beside its URL."""

import pytest

from isthmus.errors import UsageError
from isthmus.transports.http.address import Http, HttpSse


def test_what_people_see_of_an_address_holds_no_secrets():
    """Ours: headers and proxies are where people put their keys."""
    at = Http("https://a.example/mcp", headers={"Authorization": "s3cret"}, proxy="http://u:pw@p")

    assert ("Http('https://a.example/mcp')", "https://a.example/mcp") == (repr(at), str(at))
    assert "HttpSse('https://a.example/sse')" == repr(HttpSse("https://a.example/sse"))


@pytest.mark.parametrize("url", ["a.example/mcp", "ws://a.example", "", "ftp://a.example"])
def test_what_is_no_url_of_http_is_refused(url):
    """Ours: before anything is connected to."""
    with pytest.raises(UsageError, match="is no URL of HTTP"):
        Http(url)
