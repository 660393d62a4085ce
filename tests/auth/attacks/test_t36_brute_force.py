"""T36: passwords cannot be guessed in numbers, nor names found out."""

import asyncio

import pytest

from isthmus.auth import Allowance, Limits, LoginPolicy
from isthmus.errors import UsageError
from isthmus.store.meter import Rate
from support.auth.authority import (
    PASSWORD,
    Visitor,
    form_action,
    hidden_fields,
    make_authority,
    make_users,
    request_url,
)

ISSUER = "https://login.example"
WRONG = "wrong horse battery"
PROVES = pytest.mark.covers("auth.threat.t36-brute-force")


@pytest.fixture
async def authority(tmp_path):
    users = make_users(tmp_path, "alice", "bob", "carol")
    users.disable("carol")
    made = make_authority(ISSUER, users)
    yield made
    await made.close()


async def attempt(visitor, account, password=WRONG):
    page = await visitor.follow(await visitor.get(request_url(ISSUER)))
    fields = {**hidden_fields(page), "account": account, "password": password}
    return await visitor.post(form_action(page), fields)


async def test_how_often_one_may_try_and_how_long_a_login_lasts_are_settings(tmp_path):
    """Ours: an operator who knows better says so, and a setting that cannot be is told at once."""
    login = LoginPolicy(same_account_and_address=Allowance(2, 60), request_ttl=120)
    made = make_authority(ISSUER, make_users(tmp_path, "alice"), login=login)
    mallory = Visitor(made, ISSUER)
    assert [403, 403, 429] == [(await attempt(mallory, "alice")).status for _ in range(3)]
    await made.close()
    with pytest.raises(UsageError, match="same_account"):
        make_authority(ISSUER, None, login=LoginPolicy(same_account=Allowance(0, 60)))
    with pytest.raises(UsageError, match="idle"):
        make_authority(ISSUER, None, login=LoginPolicy(idle=0))


async def test_how_often_one_may_ask_is_a_setting(tmp_path):
    """Ours: the rates of addresses and clients, too."""
    limits = Limits(per_address=Rate(3, seconds=60))
    made = make_authority(ISSUER, make_users(tmp_path, "alice"), limits=limits)
    bob = Visitor(made, ISSUER)
    assert [303, 303, 303, 429] == [(await bob.get(request_url(ISSUER))).status for _ in range(4)]
    await made.close()


def without_tokens(page):
    """A page as it is for everybody."""
    text = page.body.decode()
    for value in hidden_fields(page).values():
        text = text.replace(value, "…")
    return text


@PROVES
async def test_the_sixth_try_is_refused_whatever_the_password(authority, caplog):
    """We demand 429 with a time to wait after five tries, also for the right password."""
    mallory = Visitor(authority, ISSUER)
    assert [403] * 5 == [(await attempt(mallory, "alice")).status for _ in range(5)]
    sixth = await attempt(mallory, "alice", PASSWORD)
    assert 429 == sixth.status
    assert 0 < int(sixth.header("retry-after")) <= 900
    assert b"too many tries" in sixth.body
    assert "from 192.0.2.1" in caplog.text
    assert "alice" not in caplog.text
    assert "__Host-isthmus-session" not in mallory.cookies


@PROVES
async def test_tries_at_once_do_not_get_around_the_limit(authority):
    """We demand that a try counts before it is judged."""
    visitors = [Visitor(authority, ISSUER) for _ in range(12)]
    tried = await asyncio.gather(*(attempt(visitor, "alice") for visitor in visitors))
    assert [403] * 5 + [429] * 7 == sorted(page.status for page in tried)


@PROVES
async def test_new_cookies_and_new_requests_do_not_get_around_the_limit(authority):
    """We demand that what counts is the account and the address, not the browser."""
    statuses = [(await attempt(Visitor(authority, ISSUER), "alice")).status for _ in range(6)]
    assert 429 == statuses[-1]


@PROVES
async def test_other_spellings_of_a_name_do_not_get_around_the_limit(authority):
    """We demand that names which log in as the same user have their tries together."""
    mallory = Visitor(authority, ISSUER)
    spellings = ["alice", "ALICE", " alice", "\uff41lice", "a\uff4cice", "\U0001d41alice"]
    statuses = [(await attempt(mallory, account=name)).status for name in spellings]
    assert [403] * 5 + [429] == statuses


@PROVES
async def test_somebody_elsewhere_can_still_log_in(authority):
    """We demand that a guesser does not lock the user out."""
    mallory = Visitor(authority, ISSUER, "198.51.100.7")
    for _ in range(6):
        await attempt(mallory, "alice")
    alice = Visitor(authority, ISSUER, "192.0.2.1")
    assert b"Allow" in (await alice.log_in(request_url(ISSUER))).body


@PROVES
async def test_the_answer_is_the_same_for_known_unknown_and_disabled_users(authority):
    """We demand that nobody finds out who is a user here."""
    pages = []
    for account in ("alice", "nobo", "carol"):
        visitor = Visitor(authority, ISSUER)
        password = PASSWORD if account == "carol" else WRONG
        page = await attempt(visitor, account, password)
        pages.append((page.status, without_tokens(page).replace(account, "…")))
    assert 1 == len(set(pages))


@PROVES
async def test_an_unknown_account_runs_out_of_tries_as_a_known_one_does(authority):
    """We demand that the limit does not tell who is a user either."""
    mallory = Visitor(authority, ISSUER)
    assert [403] * 5 + [429] == [(await attempt(mallory, "nobody")).status for _ in range(6)]
