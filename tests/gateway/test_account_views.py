"""Accounts as a console sees them: from this process, from another, and by one user."""

import pytest

from isthmus.errors import IsthmusError
from isthmus.host.model.view import AuditQuery
from isthmus.host.remote.principal_view import PrincipalView
from support.gateway.account_town import ADA, BOB, Person, open_account_town
from support.host.console_hosts import view_host

pytestmark = pytest.mark.timeout(60)


async def list_states(view, principal=ADA):
    """The states of a principal's accounts."""
    return [(one.server, one.kind, one.state) for one in await view.accounts(principal)]


@pytest.mark.parametrize("way", ["local", "attached"])
async def test_a_login_is_connected_expires_and_is_forgotten(tmp_path, way):
    """Ours: each state is shown, and the audit log says who gave the link and who forgot it."""
    async with (
        open_account_town(state=tmp_path / "state") as town,
        view_host(town.host, way, tmp_path / "state") as view,
    ):
        none = await list_states(view)
        url = await view.connect_account("crm", ADA, by="root")
        assert 200 == (await Person(town.pages, ADA).connect(url)).status
        (connected,) = await view.accounts(ADA)
        await town.hello()
        town.here.revoked |= set(town.here.authority.tokens)
        town.here.authority.refreshes.clear()
        with pytest.raises(IsthmusError):
            await town.hello()
        expired = await list_states(view)
        await Person(town.pages, ADA).connect(await view.connect_account("crm", ADA, by="root"))
        forgotten = await view.forget_account("crm", ADA, by="root")
        again = await view.forget_account("crm", ADA, by="root")
        rows = await view.audit_rows(AuditQuery(kind="oauth", principal=ADA))
        left = await list_states(view)

    assert [("crm", "user-oauth", "none")] == none == left
    assert ("connected", ADA, True) == (connected.state, connected.principal, connected.by_person)
    assert connected.since is not None
    assert [("crm", "user-oauth", "expired")] == expired
    assert (True, False) == (forgotten, again)
    assert [
        ("account.forget", "root"),
        ("account.connect", "root"),
        ("account.connect", "root"),
    ] == [(row.action, row.approver) for row in rows]


@pytest.mark.parametrize("way", ["local", "attached"])
async def test_a_key_that_the_server_does_not_take_is_refused(tmp_path, way):
    """Ours: it is shown so, and is no longer once another key was pasted."""
    async with (
        open_account_town(kind="pasted-key", state=tmp_path / "state") as town,
        view_host(town.host, way, tmp_path / "state") as view,
    ):
        for key in ("key-of-ada", "another-key"):
            town.here.authority.tokens[key] = frozenset({"read"})
        await town.connect(key="key-of-ada")
        await town.hello()
        town.here.revoked.add("key-of-ada")
        with pytest.raises(IsthmusError):
            await town.hello()
        refused = await list_states(view)
        await town.connect(key="another-key")
        connected = await list_states(view)

    assert [("crm", "pasted-key", "refused")] == refused
    assert [("crm", "pasted-key", "connected")] == connected


async def test_a_user_connects_and_forgets_their_own(tmp_path):
    """Ours: in their own name, whatever name they give; another's account is not there."""
    async with open_account_town(state=tmp_path / "state") as town:
        ada, bob = PrincipalView(town.host.view, ADA), PrincipalView(town.host.view, BOB)
        url = await ada.connect_account("crm", BOB, by="bob")
        await Person(town.pages, ADA).connect(url)
        rows = await town.host.view.audit_rows(AuditQuery(kind="oauth"))
        of_bob = await list_states(bob, "")

        assert [("crm", "user-oauth", "connected")] == await list_states(ada, "")
        assert [("crm", "user-oauth", "none")] == of_bob
        assert [(ADA, ADA)] == [
            (row.principal, row.approver) for row in rows if row.action == "account.connect"
        ]
        assert not await bob.forget_account("crm", ADA)
        assert await ada.forget_account("crm", ADA)
