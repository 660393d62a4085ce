"""URLs of authorization: what is the same, what covers what, and what a browser may be given."""

import pytest

from isthmus.auth.net.urls import (
    add_query,
    canonical_resource,
    check_browser_url,
    is_loopback,
    is_same_issuer,
    is_secure,
    origin_of,
    redirect_matches,
    resource_covers,
    well_known_url,
)
from isthmus.errors import AuthUnsafe


@pytest.mark.covers("auth.client.resource-specific")
@pytest.mark.parametrize(
    ("url", "canonical"),
    [
        ("https://mcp.example.com/mcp", "https://mcp.example.com/mcp"),
        ("https://mcp.example.com", "https://mcp.example.com"),
        ("https://mcp.example.com/", "https://mcp.example.com"),
        ("HTTPS://MCP.Example.com/Path", "https://mcp.example.com/Path"),
        ("https://mcp.example.com:8443/mcp/", "https://mcp.example.com:8443/mcp"),
        ("https://mcp.example.com:443/mcp", "https://mcp.example.com/mcp"),
        ("http://localhost:80/mcp?tenant=a", "http://localhost/mcp?tenant=a"),
        ("http://[::1]:8000/mcp", "http://[::1]:8000/mcp"),
    ],
)
def test_a_servers_url_becomes_its_canonical_resource(url, canonical):
    """The spec wants scheme and host in lower case, and no slash at the end."""
    assert canonical == canonical_resource(url)


@pytest.mark.parametrize(
    "url",
    [
        *("mcp.example.com", "https://h/#part", "ftp://h/", "https:///x", "https://u:p@h/"),
        *("https://h /", "https://h/é", "https://h:70000/", "https://h\\x/", "https://h:0/"),
        "https://h/" + "x" * 9000,
    ],
)
def test_what_is_no_resource_is_refused(url):
    """The spec's own examples of what is none: without a scheme, with a fragment."""
    with pytest.raises(ValueError, match=r"URL|host|fragment"):
        canonical_resource(url)


@pytest.mark.covers("auth.client.resource-must-cover")
@pytest.mark.parametrize(
    ("resource", "url", "does"),
    [
        ("https://h/api", "https://h/api", True),
        ("https://h/api/", "https://h/api", True),
        ("https://h/api", "https://h/api/mcp", True),
        ("https://h", "https://h/api/mcp", True),
        ("https://h/", "https://h", True),
        ("HTTPS://H:443/api", "https://h/api", True),
        ("https://h/api?t=1", "https://h/api?t=1", True),
        ("https://h/api", "https://h/api123", False),
        ("https://h/api/mcp", "https://h/api", False),
        ("https://h/api", "https://h/API", False),
        ("https://h/api", "http://h/api", False),
        ("https://h/api", "https://h:8443/api", False),
        ("https://h/api", "https://h.evil.example/api", False),
        ("https://h/api", "https://h/api/../other", False),
        ("https://h/api", "https://h/api/%2e%2E/other", False),
        ("https://h/api", "https://h/api/..%2fother", False),
        ("https://h/api", "https://h/api%2F..%5Cother", False),
        ("https://h/api", "https://h/api/..;/other", False),
        ("https://h/api", "https://h/api/a..b/..c/...", True),
        ("https://h/api?t=1", "https://h/api?t=2", False),
        ("https://evil.example", "https://h/api", False),
        ("nonsense", "https://h/api", False),
        ("https://h@evil.example/", "https://evil.example/", False),
    ],
)
def test_a_resource_covers_what_is_below_it(resource, url, does):
    """RFC 9728 3.3: by origin and whole segments, so that no neighbour is taken for a part."""
    assert does == resource_covers(resource, url)


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST", "127.0.0.1", "127.8.9.255", "::1", "[::1]"]
)
def test_this_machine_is_known_by_its_usual_names(host):
    """RFC 8252 7.3: the loopback interface."""
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host",
    [
        *("localhost.evil.example", "127.0.0.1.evil.example", "127.1", "128.0.0.1", "", "::"),
        *("127.0.0.01", "127.0.0.256", "127.0.0.\u0661", "localhost.", "0x7f.0.0.1", "0.0.0.1"),
    ],
)
def test_nothing_else_is_this_machine(host):
    """Ours: what only looks like it may be anybody's."""
    assert not is_loopback(host)


@pytest.mark.covers("auth.all.https-or-loopback")
@pytest.mark.parametrize(
    ("url", "secure"),
    [
        ("https://h/", True),
        ("http://localhost:1/", True),
        ("http://127.0.0.1/", True),
        ("http://h/", False),
        ("http://localhost.evil.example/", False),
        ("ftp://h/", False),
        ("", False),
    ],
)
def test_only_https_is_secure_and_what_stays_here(url, secure):
    """The spec: endpoints are served over HTTPS; redirect URIs may be localhost."""
    assert secure == is_secure(url)


@pytest.mark.covers("auth.client.url-opened-safely")
@pytest.mark.parametrize(
    "url",
    [
        "https://login.example/authorize?a=b%20c&d=(e)*f!",
        "http://localhost:8000/authorize",
        "http://127.0.0.1/x#y",
        "https://[2001:db8::1]/x",
    ],
)
def test_a_browser_gets_honest_urls_as_they_are(url):
    """Ours: what was judged is what is opened, letter by letter."""
    assert url == check_browser_url(url)


@pytest.mark.covers("auth.client.url-opened-safely", "auth.threat.t16-dangerous-urls")
@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "vbscript:x",
        "ms-settings:x",
        "smb://h/x",
        "ftp://h/",
        "-flag",
        "--new-window=https://h/",
        "",
        "//h/",
        "h",
        "http://login.example/",
        "http://localhost.evil.example/",
        "https://user:pw@h/",
        'https://h/" & calc',
        "https://h/a b",
        "https://h/'x'",
        "https://h/`id`",
        "https://h/\\x",
        "https://h/\nx",
        "https://h/\x00",
        "https://h/<x>",
        "https://h/|calc",
        "https://h/^x",
        "https://h/\u202e",
        "https://",
    ],
)
def test_a_browser_gets_nothing_that_could_do_more(url):
    """The spec, and CVE-2025-6514: no other scheme, and nothing that a shell would read."""
    with pytest.raises(AuthUnsafe, match="opened in a browser"):
        check_browser_url(url)


@pytest.mark.covers("auth.threat.t15-loopback-widened")
@pytest.mark.parametrize(
    ("registered", "given", "matches"),
    [
        ("https://app.example/cb", "https://app.example/cb", True),
        ("com.example.app:/cb", "com.example.app:/cb", True),
        ("http://127.0.0.1/cb", "http://127.0.0.1:51000/cb", True),
        ("http://localhost:1/cb?a=b", "http://localhost:2/cb?a=b", True),
        ("http://[::1]/cb", "http://[::1]:9/cb", True),
        ("http://localhost/callback", "http://localhost:3118/callback", True),
        ("https://app.example/cb", "https://app.example/cb/", False),
        ("https://app.example/cb", "https://app.example/cb?x=1", False),
        ("https://app.example/cb", "https://APP.example/cb", False),
        ("https://127.0.0.1/cb", "https://127.0.0.1:8/cb", False),
        ("http://app.example/cb", "http://app.example:8/cb", False),
        ("http://127.0.0.1/cb", "http://localhost:8/cb", False),
        ("http://localhost/cb", "http://127.0.0.1:8/cb", False),
        ("http://127.0.0.1/cb", "http://127.0.0.1:51000@evil.example/cb", False),
        ("http://127.0.0.1/cb", "http://127.0.0.1:51000/cb/../x", False),
        ("http://127.0.0.1/cb", "http://127.0.0.1:51000/cb#x", False),
        ("http://127.0.0.1/cb", "http://127.0.0.1:51000/cb?x=1", False),
        ("http://127.0.0.1/cb", "http://127.0.0.1:0/cb", False),
        ("http://127.0.0.1/cb", "http://127.0.0.1:99999/cb", False),
        ("http://127.0.0.1/cb", "http://127.0.0.1:/cb", False),
        ("http://127.0.0.1/cb", "http://127.0.0.1.evil.example:8/cb", False),
        ("http://127.0.0.1/a/../cb", "http://127.0.0.1:8/a/../cb", False),
        ("http://127.0.0.1/cb", "http://127.0.0.1:8/cb\n", False),
        ("http://localhost/cb", "HTTP://localhost:8/cb", False),
    ],
)
def test_a_redirect_is_the_registered_one_but_for_a_loopback_port(registered, given, matches):
    """RFC 8252 7.3: the port, and nothing else, may differ, on this machine alone."""
    assert matches == redirect_matches(registered, given)


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("https://h", "https://h/.well-known/x"),
        ("https://h/", "https://h/.well-known/x"),
        ("https://h/tenant1", "https://h/.well-known/x/tenant1"),
        ("https://h/a/b/", "https://h/.well-known/x/a/b"),
        ("https://h:8443/a?b=c", "https://h:8443/.well-known/x/a?b=c"),
    ],
)
def test_metadata_stands_between_host_and_path(url, found):
    """RFC 8414 3.1 and RFC 9728 3.1: inserted, with the slash at the end removed."""
    assert found == well_known_url(url, "x")


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("https://h", "https://h", True),
        ("https://h", "https://h/", True),
        ("https://h/", "https://h", True),
        ("https://h/a", "https://h/a/", False),
        ("https://h", "https://h//", False),
        ("https://h", "https://H", False),
        ("https://h", "https://h:443", False),
        ("https://h", "http://h", False),
        ("", "/", False),
    ],
)
def test_an_issuer_without_a_path_has_two_spellings(first, second, same):
    """Ours: big providers publish both of them; every other difference is another issuer."""
    assert same == is_same_issuer(first, second)


def test_an_origin_is_spelt_as_browsers_do():
    """Ours: so that it can be compared with what they send."""
    assert "https://h" == origin_of("HTTPS://H:443/x?y")
    assert "http://h:8000" == origin_of("http://h:8000")


def test_no_error_shows_what_stands_behind_the_question_mark():
    """Ours: state, codes and keys travel there."""
    for refuse in (check_browser_url, canonical_resource):
        with pytest.raises((AuthUnsafe, ValueError)) as raised:
            refuse("ftp://login.example/authorize?state=af0ifjsldkj")
        assert "login.example" in str(raised.value)
        assert "af0ifjsldkj" not in str(raised.value)


@pytest.mark.parametrize(
    ("url", "fields", "whole"),
    [
        ("https://h/cb", {"code": "x y"}, "https://h/cb?code=x+y"),
        ("https://h/cb?a=1", {"b": "&"}, "https://h/cb?a=1&b=%26"),
        ("app:/cb", [("a", "1"), ("a", "2")], "app:/cb?a=1&a=2"),
        ("https://h/cb", {}, "https://h/cb"),
    ],
)
def test_parameters_are_added_to_what_is_there(url, fields, whole):
    """Ours: the rest of a URL stays as it came."""
    assert whole == add_query(url, fields)
