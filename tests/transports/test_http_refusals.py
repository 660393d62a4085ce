"""What is made of answers that are none."""

import pytest

from isthmus.transports.http.client.requests import (
    make_http_refused,
    read_refusal_body,
    resolve_redirect,
    same_origin,
)
from support.http.scripted_requests import ScriptedReply


@pytest.mark.parametrize(
    ("url", "other", "expected"),
    [
        ("http://a/x", "http://a/y", True),
        ("http://a/x", "http://a:80/y", True),
        ("https://a:443/x", "https://a/y", True),
        ("http://A/x", "http://a/y", True),
        ("http://[::1]:8/x", "http://[::1]:8/y", True),
        ("http://u:p@a/x", "http://a/y", True),
        ("http://a/x", "https://a/y", False),
        ("http://a/x", "http://b/y", False),
        ("http://a/x", "http://a:81/y", False),
        ("http://a/x", "http://a:port/y", False),
        ("http://a/x", "http://[/y", False),
        ("http://a/x", "http:///y", False),
        ("http://a/x", "", False),
    ],
)
def test_the_same_origin_is_the_same_scheme_host_and_port(url, other, expected):
    """Ours: what was meant for one origin goes to no other."""
    assert expected is same_origin(url, other)


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("/there", "http://a.example/there"),
        ("there?x=1", "http://a.example/there?x=1"),
        ("http://a.example:80/there", "http://a.example:80/there"),
        ("/mcp", None),
        ("", None),
        ("http://b.example/mcp", None),
        ("https://a.example/mcp", None),
        ("http://[", None),
    ],
)
def test_where_a_redirect_may_lead(location, expected):
    """Ours: the same scheme, host and port, and not in a circle."""
    assert expected == resolve_redirect("http://a.example/mcp", location)


async def test_a_refusal_shows_the_beginning_of_its_body_and_where_it_redirects():
    """Ours: enough to see what answered."""
    error = make_http_refused(ScriptedReply(302, Location="http://b/"), b"\xff" + b"x" * 1000)

    assert (302, 500) == (error.status, len(error.body))
    assert "it redirects to http://b/: use that URL if you trust it" in str(error)
    assert b"why" == await read_refusal_body(ScriptedReply(500, b"why"))
