"""T7: words of an answer that is not from whom we asked."""

import pytest

from isthmus import Client
from isthmus.auth import MemoryTokenStore, OAuth
from isthmus.errors import AuthRefused, AuthUnsafe
from support.auth.oauth_town import TownBrowser, open_town


def error(p, **changed):
    return {
        "error": "access_denied", "error_description": "call 0900 EVIL", "error_uri": "http://evil/",
        "state": p["state"], "iss": p["iss"], **changed,
    }  # fmt: skip


async def log_in_and_fail(spoil):
    """What a user is told after a spoiled answer, and what the browser showed."""
    browser = TownBrowser()
    auth = OAuth(open_browser=browser, store=MemoryTokenStore())
    async with open_town() as here:
        here.authority.response = spoil
        with pytest.raises((AuthRefused, AuthUnsafe)) as caught:
            await Client(here.url, auth=auth).open()
    return caught.value, browser


@pytest.mark.covers("auth.threat.t07-error-injection", "auth.client.iss-byte-exact")
async def test_nothing_of_another_issuers_error_is_shown():
    """The spec: neither its code nor its words, nor its link."""
    told, browser = await log_in_and_fail(lambda p: error(p, iss="https://evil.example"))

    assert type(told) is AuthUnsafe
    assert [] == [word for word in ("denied", "EVIL", "evil") if word in str(told)]
    assert "EVIL" not in browser.answers[0][1]


async def test_the_words_of_the_right_issuer_are_shortened_and_harmless():
    """Ours: one line, without control characters; the page repeats nothing."""
    told, browser = await log_in_and_fail(
        lambda p: error(p, error_description="x\r\n\x1b[31m" + "y" * 999)
    )

    assert type(told) is AuthRefused
    assert str(told).isprintable()
    assert len(str(told)) < 600
    assert "yyy" not in browser.answers[0][1]
