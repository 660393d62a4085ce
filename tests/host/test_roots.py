"""Where servers may work: declared, granted, told."""

import asyncio
from pathlib import Path

import pytest
from msgspec import structs

from isthmus import Client, Context, Server
from isthmus.host.confinement.roots import RootGrants
from isthmus.host.confinement.sandbox import GrantedFolder, explain_unavailable
from isthmus.host.model.entries import RootEntry, Sandbox, ServerEntry, ServerOptions
from isthmus.host.model.errors import BadArguments
from isthmus.host.questions.answers import ServerQuestion
from isthmus.transports.command import Command
from isthmus.wire import Root
from support.host.consent_desk import open_consent_desk

ENTRY = ServerEntry(name="files", command=("files",))
ALLOW = '[[rule]]\nid = "roots"\neffect = "allow"\nwhen = { action = "roots.expose" }\n'


@pytest.fixture
def work(tmp_path):
    """Two folders."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    return tmp_path


def manager(person, work, *more, names=("a", "b")):
    """What knows of them."""
    entries = [RootEntry(path=str(work / name), name=name) for name in names]
    return RootGrants([*entries, *more], person.state, person.pipeline)


async def list_told_names(roots, entry=ENTRY):
    """The names of the folders that a server is told."""
    return [root.name for root in await roots.answer(ServerQuestion(entry=entry))]


@pytest.mark.covers("hostconfig.roots.consent")
async def test_the_user_is_asked_before_a_server_first_learns_of_a_folder(work):
    """Spec: users are asked before roots are exposed; what they say holds."""
    async with open_consent_desk(("allow",)) as person:
        roots = manager(person, work)
        assert ["a", "b"] == await list_told_names(roots)
        assert ["a", "b"] == await list_told_names(roots)
    (question,) = person.asked

    assert ("roots.expose", "server:files") == (question.attempt.action, question.attempt.principal)
    assert ["a", "b"] == [root.name for root in question.payload.roots]


@pytest.mark.covers("hostconfig.roots.consent")
@pytest.mark.parametrize("answers", [(), (("deny",),), (("cancel",),)])
async def test_without_a_yes_a_server_learns_of_none(work, answers):
    """Ours: an empty list is what it gets; a no is not asked again while the host runs."""
    async with open_consent_desk(*answers) as person:
        roots = manager(person, work)
        assert [] == await list_told_names(roots)
        assert () == roots.list_granted(ENTRY)
        if answers == (("deny",),):
            assert [] == await list_told_names(roots)
    assert len(answers) == len(person.asked)


@pytest.mark.covers("hostconfig.roots.consent")
@pytest.mark.parametrize(("answer", "names"), [("allow", ["a", "b"]), ("deny", [])])
async def test_all_connections_of_a_server_make_one_question(work, answer, names):
    """Ours: however many ask at once, and whatever is said."""
    async with open_consent_desk((answer,)) as person:
        roots = manager(person, work)
        assert [names] * 3 == await asyncio.gather(*(list_told_names(roots) for _ in range(3)))
    assert 1 == len(person.asked)


@pytest.mark.covers("hostconfig.roots.subset")
async def test_the_user_can_give_some(work):
    """Ours: a shorter list is an answer; what was left out stays unknown."""
    async with open_consent_desk(("allow", [Root(uri=(work / "b").as_uri())])) as person:
        roots = manager(person, work)
        assert ["b"] == await list_told_names(roots)
        assert ["b"] == await list_told_names(roots)
    assert 1 == len(person.asked)


@pytest.mark.covers("hostconfig.roots.subset")
async def test_nothing_can_be_put_into_the_answer(work):
    """Ours: a surface cannot grant what was not asked for."""
    async with open_consent_desk(("allow", [{"uri": "file:///etc"}])) as person:
        with pytest.raises(BadArguments, match="no others put in"):
            await list_told_names(manager(person, work))


@pytest.mark.covers("hostconfig.roots.subset")
async def test_folders_are_for_the_servers_that_they_name(work):
    """Ours: what is declared for one server is not told to another."""
    mine = RootEntry(path=str(work / "a"), name="mine", servers=("fi*",))
    other = structs.replace(ENTRY, name="web", command=("web",))
    async with open_consent_desk(("allow",)) as person:
        roots = manager(person, work, mine, names=())
        assert (["mine"], []) == (await list_told_names(roots), await list_told_names(roots, other))
    assert 1 == len(person.asked)


@pytest.mark.covers("hostconfig.roots.per-server")
async def test_what_one_server_was_granted_another_was_not(work):
    """Ours: also not one of the same name with another program."""
    other = structs.replace(ENTRY, command=("evil",))
    async with open_consent_desk(("allow",), ("deny",)) as person:
        roots = manager(person, work)
        assert (["a", "b"], []) == (
            await list_told_names(roots),
            await list_told_names(roots, other),
        )
    assert 2 == len(person.asked)


@pytest.mark.covers("hostconfig.roots.per-server")
async def test_grants_outlive_the_host_and_can_be_taken_back(work):
    """Ours: what is revoked is not asked about again."""
    async with open_consent_desk(("allow",), folder=work / "state") as person:
        await list_told_names(manager(person, work))
    async with open_consent_desk(("allow",), folder=work / "state") as again:
        roots = manager(again, work)
        await roots.load()
        kept = await list_told_names(roots)
        await roots.revoke(ENTRY, [str(work / "a")], "command line")
        assert (["a", "b"], ["b"]) == (kept, await list_told_names(roots))
        await roots.grant(ENTRY, [str(work / "a")], "command line")
        assert ["a", "b"] == await list_told_names(roots)
    assert [] == again.asked


@pytest.mark.covers("hostconfig.roots.policy")
async def test_a_rule_decides_over_what_was_granted(work):
    """Ours: deny wins also over an old yes; allow asks nobody and leaves no grant."""
    async with open_consent_desk(rules=ALLOW) as nobody:
        roots = manager(nobody, work)
        assert ["a", "b"] == await list_told_names(roots)
        rows = await nobody.state.read(lambda db: db.execute("SELECT * FROM root_grant").fetchall())
        assert [] == rows
    async with open_consent_desk(("allow",), rules=ALLOW.replace('"allow"', '"deny"')) as person:
        roots = manager(person, work)
        await roots.grant(ENTRY, [str(work / "a")], "command line")
        assert [] == await list_told_names(roots)


@pytest.mark.covers("hostconfig.roots.link-reasked")
async def test_a_link_that_leads_elsewhere_is_another_folder(work):
    """Ours: what was granted was where it led."""
    link = work / "link"
    link.symlink_to(work / "a")
    async with open_consent_desk(("allow",), ("deny",)) as person:
        roots = manager(person, work, names=("link",))
        assert ["link"] == await list_told_names(roots)
        link.unlink()
        link.symlink_to(work / "b")
        roots.refresh()
        assert () == roots.list_granted(ENTRY)
        assert [] == await list_told_names(roots)
    assert 2 == len(person.asked)


@pytest.mark.covers("hostconfig.roots.link-reasked")
async def test_a_link_that_is_swapped_while_one_reads_grants_nothing(work):
    """Ours: it is looked at again after the wait."""
    link = work / "link"
    link.symlink_to(work / "a")

    def swap(_question):
        link.unlink()
        link.symlink_to(work / "b")

    async with open_consent_desk(("allow",)) as person:
        person.before = swap
        roots = manager(person, work, names=("link",))
        assert [] == await list_told_names(roots)
        assert () == roots.list_granted(ENTRY)


@pytest.mark.covers("hostconfig.roots.changed-told")
async def test_servers_that_were_told_hear_of_changes(work):
    """Spec: a client with listChanged tells of changes; only those that they concern are told."""
    changed = []
    async with open_consent_desk(("allow",)) as person:
        roots = manager(person, work)
        roots.on_change = changed.append
        roots.refresh()
        await list_told_names(roots)
        roots.refresh()
        quiet = list(changed)
        (work / "a").rmdir()
        roots.refresh()
        (work / "a").mkdir()
        roots.refresh()
        await roots.revoke(ENTRY, [str(work / "b")], "command line")
        roots.replace([])

    assert ([], ["files"] * 4) == (quiet, changed)


@pytest.mark.covers("hostconfig.roots.watched")
async def test_folders_are_watched(work):
    """Spec: clients monitor the accessibility of roots; ours see them go, and come back."""
    changed = asyncio.Queue()
    async with open_consent_desk(("allow",)) as person:
        roots = manager(person, work)
        roots.on_change = changed.put_nowait
        await list_told_names(roots)
        watching = asyncio.create_task(roots.watch())
        (work / "a").rmdir()
        await changed.get()
        gone = await list_told_names(roots)
        (work / "a").mkdir()
        await changed.get()
        back = await list_told_names(roots)
        watching.cancel()

    assert (["b"], ["a", "b"]) == (gone, back)


@pytest.mark.covers("hostconfig.roots.watched")
async def test_what_another_process_takes_back_counts_at_once(work):
    """Ours: a command revokes, and the host that runs sees it."""
    changed = asyncio.Queue()
    async with open_consent_desk(("allow",), folder=work / "state") as person:
        roots = manager(person, work)
        roots.on_change = changed.put_nowait
        await list_told_names(roots)
        watching = asyncio.create_task(roots.watch())
        async with open_consent_desk(folder=work / "state") as other:
            await manager(other, work).revoke(ENTRY, [str(work / "a")], "command line")
        await changed.get()
        assert ["b"] == await list_told_names(roots)
        watching.cancel()


@pytest.mark.covers("hostconfig.roots.changed-told")
async def test_a_legacy_session_is_told_and_asks_again(work):
    """Spec 2025-11-25: list_changed is sent; the server then gets the new list."""
    server = Server("files")
    heard = asyncio.Event()

    @server.tool
    async def where(ctx: Context) -> str:
        return " ".join(root.name or "" for root in await ctx.roots())

    async with open_consent_desk(("allow",)) as person:
        roots = manager(person, work)

        async def places():
            return await roots.answer(ServerQuestion(entry=ENTRY))

        async with Client(server, roots=places, revision="2025-11-25") as client:
            first = (await client.call_tool("where")).text

            def on_change(name):
                assert "files" == name
                heard.set()

            roots.on_change = on_change
            await roots.revoke(ENTRY, [str(work / "a")], "command line")
            await heard.wait()
            await client.roots_changed()
            second = (await client.call_tool("where")).text

    assert ("a b", "b") == (first, second)


@pytest.mark.covers("hostconfig.roots.sandbox")
async def test_a_confined_server_is_started_with_what_it_was_granted(work):
    """Ours: the question comes before the start, and a change is one of its sandbox."""
    entry = structs.replace(ENTRY, options=ServerOptions(sandbox=Sandbox()))
    changed = []
    async with open_consent_desk(("allow",)) as person:
        roots = manager(person, work)
        roots.on_change = changed.append
        await roots.prepare(ENTRY)
        assert [] == person.asked
        await roots.prepare(entry)
        await roots.prepare(entry)
        assert (
            GrantedFolder(str(work / "a")),
            GrantedFolder(str(work / "b")),
        ) == roots.list_granted(entry)
        await roots.revoke(entry, [str(work / "a")], "command line")
    assert (1, ["files"]) == (len(person.asked), changed)


@pytest.mark.skipif(bool(explain_unavailable()), reason="no sandbox here")
@pytest.mark.covers("hostconfig.roots.sandbox")
async def test_a_command_is_put_into_a_sandbox_where_one_is_asked_for(work):
    """Ours: with the folders that were granted, and as it stands elsewhere."""
    entry = structs.replace(ENTRY, options=ServerOptions(sandbox=Sandbox()))
    command = Command("cat", "file")
    async with open_consent_desk(("allow",)) as person:
        roots = manager(person, work)
        await roots.prepare(entry)
        inside = roots.confine(entry)(command)
        assert command is roots.confine(ENTRY)(command)

    assert ("bwrap", ["cat", "file"]) == (Path(inside.argv[0]).name, list(inside.argv[-2:]))
    assert str(work / "a") in inside.argv


async def test_without_a_pipeline_only_grants_count(work):
    """Ours: a command that lists roots asks nobody."""
    async with open_consent_desk() as nobody:
        roots = RootGrants([RootEntry(path=str(work / "a"), name="a")], nobody.state)
        assert [] == await list_told_names(roots)
        await roots.grant(ENTRY, [str(work / "a")], "command line")
        assert ["a"] == await list_told_names(roots)
