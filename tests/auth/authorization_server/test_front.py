"""Tests of the pages as a whole: their paths, their failures."""

import logging

import pytest

from isthmus.auth.authorization_server.pages.templates import STYLE_NAME, STYLE_SHEET
from support.auth.authority import (
    Visitor,
    form_action,
    hidden_fields,
    make_authority,
    make_users,
    request_url,
)
from support.http.asgi_driver import fetch

ISSUER = "https://login.example/tenant"


@pytest.fixture
async def authority(tmp_path):
    made = make_authority(ISSUER, make_users(tmp_path))
    yield made
    await made.close()


async def test_the_pages_are_under_the_issuers_own_path(authority):
    """We demand that several servers can share an origin."""
    pages = set(authority.front.routes)
    assert {
        "/tenant/auth/login", "/tenant/auth/consent", "/tenant/auth/logout",
        f"/tenant/auth/{STYLE_NAME}",
    } == pages  # fmt: skip
    assert pages <= authority.routes.keys()


async def test_the_style_sheet_is_kept_for_good(authority):
    """We demand that pages come at once."""
    sheet = await fetch(authority, "GET", f"/tenant/auth/{STYLE_NAME}")
    assert (200, STYLE_SHEET) == (sheet.status, sheet.body)
    assert "immutable" in sheet.header("cache-control")
    assert "text/css; charset=utf-8" == sheet.header("content-type")


async def test_a_way_through_the_pages_works_under_a_path(authority):
    """We demand that links and forms know where they are."""
    alice = Visitor(authority, "https://login.example")
    page = await alice.log_in(request_url(ISSUER))
    assert "/tenant/auth/consent" == form_action(page)
    assert "code=" in str((await alice.decide(page)).header("location"))


class Broken:
    """Users in a database that is gone."""

    async def begin(self, request):
        from isthmus.auth.authorization_server.users.users import LoginPage

        return LoginPage()

    async def submit(self, request, form):
        raise RuntimeError("the database at 10.0.0.5 is gone")

    async def get(self, user_id):
        return None


async def test_a_failure_of_ours_is_a_page_that_tells_nothing_and_a_log_that_tells_all(caplog):
    """We demand that what fails inside is for the operator to read."""
    authority = make_authority(ISSUER, Broken())
    alice = Visitor(authority, "https://login.example")
    page = await alice.follow(await alice.get(request_url(ISSUER)))
    with caplog.at_level(logging.ERROR, "isthmus.auth"):
        failed = await alice.post(
            form_action(page), {**hidden_fields(page), "account": "a", "password": "b"}
        )
    assert 500 == failed.status
    assert b"10.0.0.5" not in failed.body
    assert "10.0.0.5" in caplog.text
    assert "no-store" == failed.header("cache-control")
    await authority.close()


async def test_a_server_for_machines_has_no_login():
    """We demand that without users nobody can log in, and that this is said."""
    authority = make_authority(ISSUER, None)
    alice = Visitor(authority, "https://login.example")
    answered = await alice.get(request_url(ISSUER))
    assert answered.status in {303, 400, 403, 404}
    assert "code=" not in str(answered.header("location"))
    await authority.close()


@pytest.mark.parametrize("path", ["login", "consent"])
@pytest.mark.parametrize("request_", ["", "x", "a.b", "a." + "0" * 64, "é.é", "." * 500])
async def test_a_made_up_request_is_over(authority, path, request_):
    """We demand that links that lead nowhere say so, whatever they hold."""
    from urllib.parse import quote

    alice = Visitor(authority, "https://login.example")
    await alice.get(request_url(ISSUER))
    page = await alice.get(f"/tenant/auth/{path}?request={quote(request_)}")
    assert 410 == page.status


async def test_a_method_that_is_none_of_ours_is_refused(authority):
    """We demand that pages are read and forms are sent, and nothing else."""
    assert 405 == (await fetch(authority, "DELETE", "/tenant/auth/consent")).status
    assert 415 == (await fetch(authority, "POST", "/tenant/auth/consent", body={})).status
