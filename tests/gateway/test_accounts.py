"""Accounts at servers by principal: kinds, states, renewal, and whose account is shown to whom."""

import pytest

from isthmus.host.accounts.ownership import LOCAL_PRINCIPAL
from isthmus.host.model.errors import ConnectRequired
from support.gateway.account_town import ADA, BOB, Person, open_account_town


@pytest.mark.parametrize("kind", ["user-oauth", ""])
async def test_a_call_without_an_account_says_that_one_is_to_be_connected(kind):
    """Ours: a refusal of the server is a question to connect, and never what a tool said."""
    async with open_account_town(kind=kind) as town:
        with pytest.raises(ConnectRequired, match="crm wants an account there") as caught:
            await town.hello()
        assert (caught.value.server, caught.value.principal) == ("crm", ADA)
        assert "missing" == caught.value.reason == await town.state()


@pytest.mark.parametrize("kind", ["user-oauth", ""])
async def test_each_principal_shows_their_own_account(kind):
    """Ours: what one has connected is shown for nobody else."""
    async with open_account_town(kind=kind) as town:
        with pytest.raises(ConnectRequired):
            await town.hello()
        page = await town.connect()
        assert page.status == 200, page.body
        assert "hello" == await town.hello()
        assert {"Bearer " + one for one in town.here.authority.tokens} == set(town.shown_tokens())
        with pytest.raises(ConnectRequired) as caught:
            await town.hello(BOB)
        assert BOB == caught.value.principal
        await town.connect(BOB)
        assert "hello" == await town.hello(BOB)
        assert 2 == len(set(town.shown_tokens()))
        assert ("connected", "connected") == (await town.state(), await town.state(BOB))


async def test_the_login_of_the_local_user_is_shown_for_nobody_else():
    """Ours: from the first call of somebody else on, only the user of the host uses that login."""
    async with open_account_town(kind="") as town:
        entry = town.host.config.servers["crm"]
        accounts = town.accounts
        assert not accounts.is_personal(entry, LOCAL_PRINCIPAL)
        assert accounts.make_login(entry, "").shown()
        assert not accounts.is_personal(entry, ADA)  # nothing is known of the server yet
        assert not accounts.make_login(entry, "").shown()
        accounts.make_login(entry, "").wanted(None)
        assert accounts.is_personal(entry, ADA)
        assert accounts.is_personal(entry, LOCAL_PRINCIPAL)
        assert accounts.make_login(entry, LOCAL_PRINCIPAL).shown()
        assert f"{ADA} session:3" == accounts.find_isolation(entry, ADA, "session:3")


async def test_tokens_are_renewed_without_anybody():
    """Ours: what the refresh token gives is kept for the same principal."""
    async with open_account_town() as town:
        await town.connect()
        await town.hello()
        town.here.revoked |= set(town.here.authority.tokens)
        assert "hello" == await town.hello()
        assert 1 == town.here.authority.counts["refresh_token"]
        assert "connected" == await town.state()


async def test_a_login_that_is_over_is_cleared_and_connected_again():
    """RFC 6749 5.2: after invalid_grant nothing is left to renew; connecting again makes it good."""
    async with open_account_town() as town:
        await town.connect()
        await town.hello()
        town.here.revoked |= set(town.here.authority.tokens)
        town.here.authority.refreshes.clear()
        with pytest.raises(ConnectRequired, match="your login at crm is over") as caught:
            await town.hello()
        assert "expired" == caught.value.reason == await town.state()
        assert [] == await town.accounts.vault.of(ADA).list_tokens()
        await town.connect()
        assert ("hello", "connected") == (await town.hello(), await town.state())


async def test_an_account_is_forgotten_and_its_connections_end():
    """Ours: nothing of it is left, and the next call asks for another."""
    async with open_account_town() as town:
        await town.connect()
        await town.hello()
        assert await town.accounts.forget(ADA, "crm")
        assert not await town.accounts.forget(ADA, "crm")
        assert "missing" == await town.state()
        while (connection := town.host.servers["crm"].connections[ADA]).state != "idle":
            await connection._wait_for_change()
        with pytest.raises(ConnectRequired):
            await town.hello()


async def test_accounts_outlive_the_host_and_are_encrypted(tmp_path):
    """Ours: a token stands in no file as it is."""
    async with open_account_town(state=tmp_path) as town:
        await town.connect()
        tokens = [one.encode() for one in town.here.authority.tokens]
        assert "connected" == await town.state()
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert tokens
    assert not [one for one in tokens if one in written]


async def test_accounts_are_listed_by_principal():
    """Ours: each sees their own, with what is not connected."""
    async with open_account_town() as town:
        town.here.resource["scopes_supported"] = ["read"]
        await town.connect()
        ours, theirs = await town.accounts.list(ADA), await town.accounts.list(BOB)
        assert [("crm", "connected", ("read",))] == [(a.server, a.state, a.scopes) for a in ours]
        assert town.here.authority.issuer == ours[0].issuer
        assert [("crm", "missing")] == [(a.server, a.state) for a in theirs]


async def test_a_pasted_key_goes_to_its_server_in_the_header_that_is_configured():
    """Ours: the key passes no client; a server that does not take it makes it refused."""
    async with open_account_town(kind="pasted-key") as town:
        with pytest.raises(ConnectRequired) as caught:
            await town.hello()
        assert "missing" == caught.value.reason
        town.here.authority.tokens["key-of-ada"] = frozenset({"read"})
        assert 200 == (await town.connect(key="key-of-ada")).status
        assert ("hello", "connected") == (await town.hello(), await town.state())
        assert {"Bearer key-of-ada"} == set(town.shown_tokens())
        town.here.revoked.add("key-of-ada")
        with pytest.raises(ConnectRequired, match="does not take your account any more"):
            await town.hello()
        assert "refused" == await town.state()
        town.here.authority.tokens["another-key"] = frozenset({"read"})
        await town.connect(key="another-key")
        assert ("hello", "connected") == (await town.hello(), await town.state())


async def test_a_pasted_key_may_have_a_header_of_its_own():
    """Ours: the name and what stands before the key are the entry's."""
    async with open_account_town(kind="pasted-key", header="X-Api-Key") as town:
        await town.connect(key="k-123456789")
        with pytest.raises(ConnectRequired):
            await town.hello()  # the town looks for a bearer token
        shown = [h.get("x-api-key") for _, path, h in town.here.seen if path == "/mcp"]
        assert {"k-123456789"} == set(shown)


async def test_a_text_that_can_be_no_key_is_asked_for_again():
    """Ours: the link is still good then."""
    async with open_account_town(kind="pasted-key") as town:
        person, url = Person(town.pages, ADA), town.accounts.connect(ADA, "crm")
        page = await person.decide(await person.get(url), key="two words")
        assert b"This is not a key" in page.body
        assert b"is connected" in (await person.decide(page, key="oneword")).body
