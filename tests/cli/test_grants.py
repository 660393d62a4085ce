"""``isthmus grants``: what was granted, and how it is taken back while a host runs."""

import json

import pytest

from isthmus.cli.commands.grants import print_grant, print_grants, revoke_grants
from isthmus.cli.main import main
from isthmus.errors import UsageError
from isthmus.host.approvals.grants import Grants
from isthmus.host.audit.queries import read_last_lines
from isthmus.host.model.interaction import Decision
from isthmus.host.state.database import HostState
from support.host.policies import make_attempt, make_facts


@pytest.fixture
async def host(tmp_path):
    """A host's state, with one grant."""
    state = HostState(tmp_path)
    grants = Grants(state)
    await grants.refresh()
    await grants.remember(
        make_attempt("write", {"path": "/code/app/a"}), make_facts(), Decision(verdict="allow", remember="shape", until=4e9, by="terminal"), uses=3
    )  # fmt: skip
    yield state, grants
    await state.close()


async def test_grants_are_listed_and_shown(host, tmp_path, capsys):
    """Ours: a line each, or all about one."""
    (grant,) = host[1].all()
    await print_grants(str(tmp_path), ended=False, as_json=False)
    line = capsys.readouterr().out
    assert line.startswith(f"{grant.id}  user:local tool.call write of files: shape, until 2096-")
    assert line.endswith(", 3 times\n")

    await print_grant(str(tmp_path), grant.id, as_json=False)
    out = capsys.readouterr().out
    assert 'shape        /path under "/code/app"' in out
    assert "by           terminal" in out
    await print_grant(str(tmp_path), grant.id, as_json=True)
    assert grant.id == json.loads(capsys.readouterr().out)["id"]


@pytest.mark.covers("hostpolicy.grants.revoked")
async def test_a_grant_is_taken_back_and_that_is_written_down(host, tmp_path, capsys):
    """Ours: the host that runs asks from its next look on."""
    state, grants = host
    (grant,) = grants.all()

    await revoke_grants(str(tmp_path), [grant.id])
    assert f"revoked {grant.id}\n" == capsys.readouterr().out
    await grants.refresh()
    assert not grants.all()
    (row,) = await state.read(lambda db: read_last_lines(db, 1))
    assert ("grant", grant.id, "revoked", "write") == (row.kind, row.grant, row.effect, row.object)
    await print_grants(str(tmp_path), ended=False, as_json=False)
    assert "nothing is granted\n" == capsys.readouterr().err
    await print_grants(str(tmp_path), ended=True, as_json=False)
    assert capsys.readouterr().out.endswith("[revoked]\n")
    with pytest.raises(UsageError, match="there is no active grant"):
        await revoke_grants(str(tmp_path), [grant.id])
    with pytest.raises(UsageError, match="there is no grant"):
        await print_grant(str(tmp_path), "x", as_json=False)


@pytest.mark.parametrize("words", [("list",), ("show", "x"), ("revoke", "x")])
def test_a_folder_without_a_host_has_no_grants_to_show(tmp_path, capsys, words):
    """Ours: and nothing is made by looking."""
    with pytest.raises(SystemExit) as left:
        main(["grants", *words, "--state", str(tmp_path / "none")])

    assert 2 == left.value.code
    assert "there is no state of a host in" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()
