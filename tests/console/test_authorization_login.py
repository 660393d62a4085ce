"""Sign-in of several users at our authorization server, and what attackers try there."""

from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

from isthmus.auth.authorization_server.storage.clients import RegisteredClient
from isthmus.auth.client.registration import StaticClient
from isthmus.console.authorization_login import LOGIN_LIFE_S, SESSION_LIFE_S, check_target, is_user
from isthmus.core.principal import Principal
from support.console.signed_in_users import RESOURCE, SignedInUsers

SESSION = "isthmus-console-8765"
CROSS = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}


def read_query(url):
    """The parameters of a URL."""
    return dict(parse_qsl(urlsplit(url).query))


def change_query(path, **changes):
    """A path with other parameters; None takes one away."""
    fields = {**read_query(path), **changes}
    kept = {key: value for key, value in fields.items() if value is not None}
    return f"{path.partition('?')[0]}?{urlencode(kept)}"


async def test_a_user_signs_in_and_sees_what_is_theirs(tmp_path):
    """Ours: by the principal that their calls have; somebody else's question is not there."""
    async with SignedInUsers(tmp_path) as users:
        browser = users.open_browser()
        status, _, text = await browser.send("GET", "/console/inbox")
        assert status == 401
        assert "/console/login/begin?next=%2Fconsole%2Finbox" in text
        status, head, _ = await users.sign_in(browser)
        assert (status, head["location"]) == (303, "/console/")
        await users.hosted.ask(principal=users.name("ada"), what="tea of ada")
        _, foreign = await users.hosted.ask(principal=users.name("bob"), what="tea of bob")
        inbox = await browser.get("/console/inbox")
        hidden = await browser.send("GET", foreign)
        servers = await browser.send("GET", "/console/servers")

    assert "tea of ada" in inbox
    assert "tea of bob" not in inbox
    assert [hidden[0], servers[0]] == [404, 404]


async def test_an_operator_is_known_by_principal_or_by_scope(tmp_path):
    """Ours: and sees everything."""
    async with SignedInUsers(tmp_path, operator_scope="files:write") as users:
        by_scope = users.open_browser()
        url = await users.begin(by_scope)
        assert read_query(url)["scope"] == "files:write"
        await by_scope.send("GET", await users.agree(url))
        assert "Servers" in await by_scope.get("/console/servers")
        users.login._operator_scope = ""
        users.login._operators = frozenset({users.name("bob")})
        for account, status in (("bob", 200), ("ada", 404)):
            browser = users.open_browser()
            await users.sign_in(browser, account)
            assert (await browser.send("GET", "/console/servers"))[0] == status


async def test_the_request_is_bound_and_asks_for_the_console_alone(tmp_path):
    """Ours: PKCE by S256, a state of 256 bits, the exact redirect URI, and the console as resource."""
    async with SignedInUsers(tmp_path) as users:
        first = read_query(await users.begin(users.open_browser()))
        second = read_query(await users.begin(users.open_browser()))

    assert first["code_challenge_method"] == "S256"
    assert first["redirect_uri"] == f"{RESOURCE}/login/back"
    assert first["resource"] == RESOURCE
    assert len(first["state"]) == 43
    assert first["state"] != second["state"]
    assert first["code_challenge"] != second["code_challenge"]
    assert first["client_id"] == second["client_id"]


async def test_a_login_of_an_attacker_signs_nobody_in_at_another_browser(tmp_path):
    """Ours: login CSRF. The state is good for the browser that began, and stays good for it."""
    async with SignedInUsers(tmp_path) as users:
        attacker, victim = users.open_browser(), users.open_browser()
        back = await users.agree(await users.begin(attacker), "bob")
        stranger = await victim.send("GET", back, **CROSS)
        await users.begin(victim)  # now it has a cookie, of another login
        tricked = await victim.send("GET", back, **CROSS)
        inbox = await victim.send("GET", "/console/inbox")
        own = await attacker.send("GET", back, **CROSS)

    assert [stranger[0], tricked[0], inbox[0], own[0]] == [403, 403, 401, 303]
    assert SESSION not in victim.cookies


@pytest.mark.parametrize("state", ["", "x" * 43, None])
async def test_a_state_that_was_not_given_is_refused(state, tmp_path):
    """Ours: guessed, empty or left out."""
    async with SignedInUsers(tmp_path) as users:
        browser = users.open_browser()
        back = await users.agree(await users.begin(browser))
        answer = await browser.send("GET", change_query(back, state=state), **CROSS)

    assert answer[0] == 403
    assert SESSION not in browser.cookies


@pytest.mark.parametrize(
    "changes",
    [{"iss": "https://evil.example"}, {"iss": None}, {"code": "stolen"}, {"code": None}],
    ids=["mix-up", "no-issuer", "other-code", "no-code"],
)
async def test_an_answer_that_is_not_the_issuers_is_refused_once_and_for_all(changes, tmp_path):
    """Ours: RFC 9207, and a code that is not of this login; the true answer comes too late then."""
    async with SignedInUsers(tmp_path) as users:
        browser = users.open_browser()
        back = await users.agree(await users.begin(browser))
        forged = await browser.send("GET", change_query(back, **changes), **CROSS)
        late = await browser.send("GET", back, **CROSS)

    assert [forged[0], late[0]] == [403, 403]
    assert SESSION not in browser.cookies


async def test_an_answer_is_taken_once(tmp_path):
    """Ours: whoever reads it in a history or a log signs nobody in."""
    async with SignedInUsers(tmp_path) as users:
        browser = users.open_browser()
        back = await users.agree(await users.begin(browser))
        binding = dict(browser.cookies)
        first = await browser.send("GET", back, **CROSS)
        thief = users.open_browser()
        thief.cookies = binding
        again = await thief.send("GET", back, **CROSS)

    assert [first[0], again[0]] == [303, 403]


async def test_a_code_of_another_login_is_refused(tmp_path):
    """Ours: code injection. The code is bound to the verifier of the login that asked for it."""
    async with SignedInUsers(tmp_path) as users:
        mine, theirs = users.open_browser(), users.open_browser()
        stolen = read_query(await users.agree(await users.begin(theirs), "bob"))["code"]
        back = await users.agree(await users.begin(mine), "ada")
        answer = await mine.send("GET", change_query(back, code=stolen), **CROSS)

    assert answer[0] == 403


async def test_a_session_is_never_one_that_was_there_before(tmp_path):
    """Ours: fixation. What somebody put into the browser is not taken up, and who signs in again is new."""
    async with SignedInUsers(tmp_path) as users:
        browser = users.open_browser()
        browser.cookies[SESSION] = planted = "A" * 43
        await users.sign_in(browser)
        first = browser.cookies[SESSION]
        await users.sign_in(browser, "bob")
        second = browser.cookies[SESSION]
        old = users.open_browser()
        answers = []
        for value in (planted, first, second):
            old.cookies = {SESSION: value}
            answers.append((await old.send("GET", "/console/inbox"))[0])

    assert len({planted, first, second}) == 3
    assert answers == [401, 401, 200]


async def test_the_cookies_are_out_of_reach(tmp_path):
    """Ours: for scripts and for forms of other sites; the binding is gone after the login."""
    async with SignedInUsers(tmp_path) as users:
        browser = users.open_browser()
        _, head, _ = await browser.send("GET", "/console/login/begin")
        await users.sign_in(browser)

    assert "HttpOnly; SameSite=Lax" in head["set-cookie"]
    assert browser.cookies["isthmus-console-login-8765"] == ""
    assert len(browser.cookies[SESSION]) == 43


async def test_a_login_ends(tmp_path):
    """Ours: by signing out, in this browser alone, and after its time; so does one that was only begun."""
    async with SignedInUsers(tmp_path) as users:
        browser, other = users.open_browser(), users.open_browser()
        await users.sign_in(browser)
        await users.sign_in(other)
        kept = dict(browser.cookies)
        status, head, _ = await browser.submit("/console/inbox", "/console/logout")
        assert (status, head["location"]) == (303, "/console/login")
        browser.cookies = kept
        assert (await browser.send("GET", "/console/inbox"))[0] == 401
        assert (await other.send("GET", "/console/inbox"))[0] == 200
        begun = await users.begin(browser)
        users.clock += SESSION_LIFE_S
        assert (await other.send("GET", "/console/inbox"))[0] == 401
        assert LOGIN_LIFE_S < SESSION_LIFE_S
        back = (
            f"/console/login/back?{urlencode({'state': read_query(begun)['state'], 'code': 'c'})}"
        )
        assert (await browser.send("GET", back, **CROSS))[0] == 403


@pytest.mark.parametrize(
    "target",
    [
        "https://evil.example/", "//evil.example", "/\\evil.example", "/console//evil.example",
        "/console/\\evil", "/consoleevil", "/console/../evil", "/console/./x", "javascript:alert(1)",
        "/console/x\r\nset-cookie: a=b", "/console/?x", "/mcp", "/console", "",
    ],
)  # fmt: skip
def test_a_login_leads_to_no_other_site(target):
    """Ours: open redirection; the first page in place of what is no page of the console."""
    assert check_target(target, "/console") == "/console/"


async def test_a_login_leads_to_the_page_that_was_asked_for(tmp_path):
    """Ours: links of clients lead to a card, also for whoever has to sign in first."""
    async with SignedInUsers(tmp_path) as users:
        _, head, _ = await users.sign_in(users.open_browser(), target="/console/inbox/q-1~%20x")
        _, foreign, _ = await users.sign_in(users.open_browser(), target="//evil.example")

    assert head["location"] == "/console/inbox/q-1~%20x"
    assert foreign["location"] == "/console/"


async def test_a_user_who_says_no_is_told_so(tmp_path):
    """Ours: and is not signed in."""
    async with SignedInUsers(tmp_path) as users:
        browser = users.open_browser()
        asked = read_query(await users.begin(browser))
        no = {"state": asked["state"], "error": "access_denied", "iss": users.issuer}
        status, _, text = await browser.send("GET", f"/console/login/back?{urlencode(no)}", **CROSS)

    assert status == 403
    assert "access_denied" in text


async def test_an_issuer_that_cannot_be_asked_is_named(tmp_path):
    """Ours: with the reason; nobody is signed in."""
    async with SignedInUsers(tmp_path) as users:
        users.login._flow._login.authorization_server = "http://127.0.0.1:9"
        status, _, text = await users.open_browser().send("GET", "/console/login/begin")

    assert status == 503
    assert "127.0.0.1:9" in text


async def test_other_logins_have_no_such_steps(tmp_path):
    """Ours: and a form cannot take them."""
    async with SignedInUsers(tmp_path) as users:
        browser = users.open_browser()
        answers = [
            await browser.send("POST", "/console/login/begin"),
            await browser.send("GET", "/console/login/other"),
            await browser.send("POST", "/console/login", {"token": "x"}),
        ]

    assert [one[0] for one in answers] == [404, 404, 403]


def test_a_program_that_acts_for_itself_is_no_user():
    """Ours: nor is a user of another issuer."""
    ours = "https://login.example"
    assert is_user(Principal(issuer=ours, subject="ada", client_id="console"), ours)
    assert not is_user(Principal(issuer=ours, subject="job", client_id="job"), ours)
    assert not is_user(Principal(issuer="https://evil.example", subject="ada"), ours)


async def test_a_registered_client_is_used_as_it_is(tmp_path):
    """Ours: an issuer that registers nobody by itself knows the console by an id."""
    client = RegisteredClient(
        client_id="console",
        name="Console",
        redirect_uris=(f"{RESOURCE}/login/back",),
        auth_method="none",
    )
    async with SignedInUsers(tmp_path, [client], client=StaticClient("console")) as users:
        browser = users.open_browser()
        url = await users.begin(browser)
        status, _, _ = await browser.send("GET", await users.agree(url), **CROSS)

    assert read_query(url)["client_id"] == "console"
    assert status == 303
