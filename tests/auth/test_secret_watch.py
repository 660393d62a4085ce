import logging

import pytest

from isthmus.auth.tokens.secret import Secret
from isthmus.errors import AuthRefused, HttpRefused
from support.http.asgi_driver import fetch

TEXT = "a-secret-that-nobody-sees"


def page(status, kind, body, **headers):
    """An app that answers everything by this."""

    async def app(scope, receive, send):
        pairs = [(b"content-type", kind.encode())]
        pairs += [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": status, "headers": pairs})
        await send({"type": "http.response.body", "body": body.encode()})

    return app


@pytest.mark.parametrize("name", ["isthmus.auth", "authlib.oauth2", "aiohttp.client", "asyncio"])
@pytest.mark.covers("auth.threat.t29-secrets-shown")
def test_a_secret_in_a_log_is_seen(secret_watch, name):
    """Ours: whoever logs it, whenever it became a secret, the watch sees it."""
    logging.getLogger(name).debug("got %s", TEXT)
    kept = Secret(TEXT)

    # What keeps our own loggers and Authlib's from showing it is the redaction, for secrets that
    # were known when they were logged; this one was not yet.
    assert [f"the log {name}"] == [leak.split(":")[0] for leak in secret_watch.leaks()]
    assert TEXT == kept.reveal()


def test_a_secret_in_a_traceback_is_seen(secret_watch):
    """Ours: a log with ``exc_info`` shows what the error says."""
    Secret(TEXT)
    try:
        int(TEXT)
    except ValueError:
        logging.getLogger("elsewhere").warning("it failed", exc_info=True)

    assert 1 == len(secret_watch.leaks())


def test_a_secret_in_an_error_is_seen(secret_watch):
    """Ours: also in an error that somebody caught, and when the secret is long forgotten."""
    Secret(TEXT)

    assert "no" == AuthRefused("no").args[0]
    assert [] == secret_watch.leaks()
    assert 401 == HttpRefused(401, f"bad token {TEXT}", {}).status
    assert 1 == len(secret_watch.leaks())


@pytest.mark.parametrize(
    ("status", "kind", "body", "seen"),
    [
        (200, "text/html", f"<p>{TEXT}</p>", True),
        (200, "text/html", f'<input type="hidden" name="csrf" value="{TEXT}">', False),
        (400, "application/json", f'{{"error_description": "{TEXT}"}}', True),
        (200, "application/json", f'{{"access_token": "{TEXT}"}}', False),
    ],
)
async def test_a_secret_in_a_page_or_a_refusal_is_seen(secret_watch, status, kind, body, seen):
    """Ours: pages and refusals show none; answers that hand one out are what they are for."""
    Secret(TEXT)
    await fetch(page(status, kind, body))

    assert seen == bool(secret_watch.leaks())


async def test_an_endpoint_hands_out_live_secrets(secret_watch):
    """Ours: a token, and a code in a redirect, though nobody here wrapped them."""
    await fetch(page(200, "application/json", '{"access_token": "handed-out-token"}'))
    await fetch(page(302, "text/plain", "", location="https://c.example/cb?code=handed-out-code"))
    log = logging.getLogger("elsewhere")
    log.info("handed-out-token")
    log.info("handed-out-code")

    assert 2 == len(secret_watch.leaks())


@pytest.mark.parametrize(
    ("where", "seen"),
    [
        (f"https://c.example/cb?code={TEXT}&state={TEXT}", False),
        (f"https://c.example/cb?code=c&access_token={TEXT}", True),
        (f"https://c.example/cb?code=c#id_token={TEXT}", True),
        (f"https://c.example/{TEXT}", True),
    ],
)
async def test_what_a_redirect_hands_out_beside_a_code_is_seen(secret_watch, where, seen):
    """Ours: a redirect passes through histories and logs, and nothing but what is good once is in it."""
    Secret(TEXT)
    await fetch(page(302, "text/plain", "", location=where))

    assert seen == bool(secret_watch.leaks())


async def test_a_header_of_an_answer_is_seen(secret_watch):
    """Ours: a challenge shows no secret either; cookies and redirects go to whom they are for."""
    Secret(TEXT)
    await fetch(page(401, "text/plain", "", **{"www-authenticate": f'Bearer error="{TEXT}"'}))
    assert 1 == len(secret_watch.leaks())

    await fetch(page(302, "text/plain", "", **{"set-cookie": f"s={TEXT}"}))
    assert [] == secret_watch.leaks()
