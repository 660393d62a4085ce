"""Pages: where a user may be sent."""

import pytest

from isthmus.core.elicitation import find_page_flaw


@pytest.mark.parametrize(
    "url", ["https://a.example/", "http://localhost:8000/x?y#z", "https://[::1]/", "HTTPS://A"]
)
def test_a_page_on_the_web_is_one(url):
    """Spec 2026-07-28 client/elicitation#url-mode-elicitation-requests: a valid URL."""
    assert find_page_flaw(url) is None


@pytest.mark.covers("elicitation.url.sent-valid")
@pytest.mark.parametrize(
    "url",
    [
        *("", "nowhere", "//", "https://", "https://[::1", "file:///etc", "ftp://a/", None, 3),
        *("javascript:alert(1)", "https://a/ b", "https://a/\x00", "https://a/\u202e"),
    ],
)
def test_anything_else_is_none(url):
    """Ours: nobody is sent to what a browser would not open, or would run."""
    assert find_page_flaw(url).startswith("url ")
