"""Skills over a connection: a folder at the server, verified texts at the client and the host."""

import logging

import pytest

from isthmus import Client, Extension, Server
from isthmus.errors import (
    CapabilityMissing,
    IsthmusError,
    Misbehaved,
    Refused,
    ResourceNotFound,
    UsageError,
)
from isthmus.host import Decision, Denied, Host
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.rule_file import read_layers
from isthmus.skills.entry import ListSkillsParams, ListSkillsResult, ReadDirectoryResult
from isthmus.skills.verification import SkillUnverified
from isthmus.testing import connect, every_transport
from isthmus.wire import ReadResourceResult, TextResourceContents


def write_skill(root, path, *, body="Do it.\n", **files):
    """A skill in a folder; names of files with a dot for ``__`` and a slash for ``___``."""
    folder = root / path
    folder.mkdir(parents=True, exist_ok=True)
    name = path.rpartition("/")[2]
    (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: For {name}.\n---\n{body}")
    for file, text in files.items():
        at = folder / file.replace("___", "/").replace("__", ".")
        at.parent.mkdir(parents=True, exist_ok=True)
        at.write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


@pytest.fixture
def shop(tmp_path):
    """A server with two skills, one of them inside another folder."""
    write_skill(tmp_path, "refunds", templates___a__md="Dear {name}", logo__png=b"\x89PNG\0")
    write_skill(tmp_path, "acme/stock")
    (tmp_path / "secret.txt").write_text("not part of any skill")
    server = Server("shop")
    assert 2 == server.add_skills(tmp_path)
    return server


@every_transport
async def test_skills_are_listed_and_loaded(shop, transport):
    """SEP-2640: an entry for each skill, and each of its files verified."""
    async with connect(shop, transport=transport, revision="2026-07-28") as client:
        stock, refunds = await client.skills()
        assert ["stock", "refunds"] == [stock.name, refunds.name]
        assert "skill://acme/stock/SKILL.md" == stock.uri
        assert ["SKILL.md", "logo.png", "templates/a.md"] == refunds.files
        assert "Do it.\n" == await refunds.load()
        assert "Dear {name}" == await refunds.read("templates/a.md")
        assert b"\x89PNG\0" == await refunds.read("./logo.png")
        children = await refunds.list_directory()
        kinds = {child.name: child.mime_type for child in children}
        assert "inode/directory" == kinds["templates"]
        assert refunds.fingerprint == (await client.skill(refunds.uri)).fingerprint


async def test_files_of_skills_are_resources_in_every_revision(shop):
    """Ours: a client of a revision without extensions reads them as resources."""
    async with Client(shop, revision="2025-11-25") as client:
        listed = {one.uri: one for one in await client.list_resources()}
        assert "For refunds." == listed["skill://refunds/SKILL.md"].description
        assert "text/markdown" == listed["skill://refunds/SKILL.md"].mime_type
        with pytest.raises(CapabilityMissing):
            await client.skills()


@pytest.mark.parametrize(
    "uri",
    [
        "skill://secret.txt",
        "skill://acme/../secret.txt",
        "skill://refunds/..%2fsecret.txt",
        "skill://refunds/../../etc/passwd",
        "skill://refunds/",
        "skill://refunds/templates/",
        "skill://refunds/.hidden",
        "skill://refunds/link.md",
    ],
)
async def test_nothing_outside_a_skill_is_served(shop, tmp_path, uri):
    """Ours: neither by a name, nor by a link, nor as a folder."""
    (tmp_path / "refunds/.hidden").write_text("hidden")
    (tmp_path / "refunds/link.md").symlink_to(tmp_path / "secret.txt")
    async with Client(shop, revision="2026-07-28") as client:
        with pytest.raises(ResourceNotFound):
            await client.read_resource(uri)
        with pytest.raises(Refused, match="no directory"):
            await client.request("resources/directory/read", {"uri": uri}, ReadDirectoryResult)


@pytest.mark.parametrize(
    ("uri", "method"),
    [
        ("skill://nobody/SKILL.md", "skills/get"),
        ("skill://acme", "skills/get"),
        ("skill://secret.txt", "skills/get"),
        ("skill://acme", "resources/directory/read"),
        ("skill://refunds/SKILL.md", "resources/directory/read"),
    ],
)
async def test_a_uri_of_something_else_is_invalid_params(shop, uri, method):
    """SEP-2640: -32602 for what is no skill, and for what is no directory of one."""
    async with Client(shop, revision="2026-07-28") as client:
        with pytest.raises(Refused) as raised:
            await client.request(method, {"uri": uri}, dict)

        assert -32602 == raised.value.code


async def test_pages_hold_whole_entries(tmp_path):
    """SEP-2640 enumeration: an entry is never split across pages, and a made-up cursor is refused."""
    for name in "abc":
        write_skill(tmp_path, name)
    server = Server("pages", page_size=2)
    server.add_skills(tmp_path)
    async with Client(server, revision="2026-07-28") as client:
        assert ["a", "b", "c"] == [skill.name for skill in await client.skills()]
        params = ListSkillsParams(cursor="made up")
        with pytest.raises(Refused):
            await client.request("skills/list", params, ListSkillsResult)


async def test_a_changed_file_is_told_by_another_digest(shop, tmp_path):
    """SEP-2640 integrity: what moved since it was listed fails, and a fresh entry has it."""
    async with Client(shop, revision="2026-07-28") as client:
        skill = await client.skill("skill://refunds/SKILL.md")
        (tmp_path / "refunds/templates/a.md").write_text("Dear all")
        with pytest.raises(SkillUnverified, match="not what the server listed"):
            await skill.read("templates/a.md")
        again = await skill.refresh()
        assert "Dear all" == await again.read("templates/a.md")
        assert again.fingerprint != skill.fingerprint


async def test_a_skill_that_breaks_later_hides_no_other(shop, tmp_path, caplog):
    """Ours: it is left out and logged once."""
    (tmp_path / "acme/stock/SKILL.md").write_text("no frontmatter")
    with caplog.at_level(logging.WARNING):
        async with Client(shop, revision="2026-07-28") as client:
            for _ in range(2):
                assert ["refunds"] == [skill.name for skill in await client.skills()]

    assert 1 == sum("acme/stock" in record.message for record in caplog.records)


def test_a_folder_that_cannot_be_served_is_refused_at_once(tmp_path):
    """Ours: the error names the file and what is wrong with it."""
    with pytest.raises(UsageError, match="there is no skill in"):
        Server("none").add_skills(tmp_path)
    write_skill(tmp_path, "fine").rename(tmp_path / "other")
    with pytest.raises(UsageError, match=r"other.SKILL\.md .*does not end with its name"):
        Server("named").add_skills(tmp_path)


async def test_a_folder_that_is_a_skill_is_served_alone(tmp_path):
    """Ours: its neighbours are not, and a prefix goes before its name."""
    write_skill(tmp_path, "mine")
    write_skill(tmp_path, "neighbour")
    server = Server("one")
    assert 1 == server.add_skills(tmp_path / "mine", "acme")
    async with Client(server, revision="2026-07-28") as client:
        assert ["skill://acme/mine/SKILL.md"] == [one.uri for one in await client.skills()]
        with pytest.raises(ResourceNotFound):
            await client.read_resource("skill://acme/neighbour/SKILL.md")


def make_liar(shop, change):
    """The server, whose answers to reads are changed on their way."""

    async def lie(inbound, call_next):
        result = await call_next(inbound)
        if isinstance(result, ReadResourceResult):
            text = change(result.contents[0].text)
            contents = TextResourceContents(uri=result.contents[0].uri, text=text)
            return ReadResourceResult(contents=[contents])
        return result

    shop.use(lie)
    return shop


@pytest.mark.parametrize("path", ["../stock/SKILL.md", "", "/x", "a\\b", "unlisted.md"])
async def test_no_path_leads_to_another_file(shop, path):
    """SEP-2640 integrity: reads resolve to the files of the entry only."""
    async with Client(shop, revision="2026-07-28") as client:
        skill = await client.skill("skill://refunds/SKILL.md")
        with pytest.raises(SkillUnverified):
            await skill.read(path)


async def test_a_text_that_was_changed_on_its_way_is_not_loaded(shop):
    """SEP-2640 integrity: MUST NOT be used."""
    async with Client(make_liar(shop, str.upper), revision="2026-07-28") as client:
        skill = await client.skill("skill://refunds/SKILL.md")
        with pytest.raises(SkillUnverified):
            await skill.load()


def make_dynamic():
    """A server with a dynamic skill, one that cannot be true, and one for another in its place."""
    server = Server("liar")
    good = {"uri": "skill://a/SKILL.md", "frontmatter": {"name": "a", "description": "d"}}
    bad = {**good, "uri": "skill://b/SKILL.md"}

    @server.method("skills/list", params=dict, result=dict)
    async def list_skills(params: dict) -> dict:
        return {"skills": [{**good, "resources": "dynamic"}, bad]}

    @server.method("skills/get", params=dict, result=dict)
    async def get_skill(params: dict) -> dict:
        return {"skill": {**good, "resources": "dynamic"} if params["uri"] == good["uri"] else bad}

    server.extend(Extension("io.modelcontextprotocol/skills"))
    return server


async def test_entries_that_cannot_be_true_are_left_out():
    """Ours: one of them hides no other; asked for by its URI, it is refused."""
    async with Client(make_dynamic(), revision="2026-07-28") as client:
        (skill,) = await client.skills()
        assert skill.is_dynamic
        with pytest.raises(SkillUnverified, match="dynamic"):
            await skill.load()
        with pytest.raises(CapabilityMissing, match="list the directories"):
            await skill.list_directory()
        with pytest.raises(Misbehaved):
            await client.skill("skill://b/SKILL.md")
        with pytest.raises(Misbehaved, match="sent the entry of"):
            await client.skill("skill://c/SKILL.md")
        with pytest.raises(UsageError, match=r"SKILL\.md"):
            await client.skill("skill://c")


# The host

ASKING = """
[[rule]]
id = "skills"
effect = "ask"
when = { action = "resource.read", uri = ["skill://*"] }
obligations = { remember = ["once", "session"] }
"""


async def test_a_host_names_skills_by_their_server_and_frames_them(shop, tmp_path):
    """SEP-2640 names and security: no skill shadows another, and its server stands at the text."""
    other = Server("other")
    other.add_skills(tmp_path / "refunds")
    host = Host(approver=lambda _asked: True)
    host.add("shop", shop)
    host.add("other", other)
    async with host:
        names = sorted(skill.name for skill in await host.skills.list_all())
        assert ["other/refunds", "shop/refunds", "stock"] == names
        text = await host.skills.load("shop/refunds")
        assert text.startswith("[untrusted data from server shop: skill skill://refunds/SKILL.md")
        assert "Do it." in text
        assert "Dear {name}" in await host.skills.read("other/refunds", "templates/a.md")
        with pytest.raises(IsthmusError, match="there are: other/refunds"):
            await host.skills.load("refunds")


def make_host(shop, tmp_path, decide):
    """A host that asks before a skill is loaded, and the questions that it asked."""
    asked = []

    def approve(question):
        asked.append(question.payload)
        return decide

    host = Host(
        approver=approve,
        policy=Policy.of(read_layers(ASKING, "user")),
        state=tmp_path / "state",
    )
    host.add("shop", shop)
    return host, asked


async def test_a_lasting_yes_to_a_skill_ends_when_a_file_changes(shop, tmp_path):
    """SEP-2640 security: a persisted approval is bound to every file, and revoked by any change."""
    host, asked = make_host(shop, tmp_path, Decision(verdict="allow", remember="session"))
    async with host:
        await host.skills.load("refunds")
        await host.skills.load("refunds")
        assert 1 == len(asked)
        (tmp_path / "refunds/templates/a.md").write_text("Dear all")
        await host.skills.load("refunds")

    assert 2 == len(asked)
    assert "refunds" == asked[0].skill
    assert "For refunds." == asked[0].description
    assert "skill://refunds/templates/a.md" in asked[0].files


async def test_a_person_who_says_no_keeps_a_skill_out(shop, tmp_path):
    """Ours: loading goes through the pipeline, where policy and a person decide."""
    host, _ = make_host(shop, tmp_path, Decision(verdict="deny"))
    async with host:
        with pytest.raises(Denied):
            await host.skills.load("stock")


async def test_a_skill_without_digests_is_not_loaded_by_a_host(tmp_path):
    """SEP-2640 resources: nothing says what would be loaded."""
    host = Host(approver=lambda _asked: True)
    host.add("liar", make_dynamic())
    async with host:
        with pytest.raises(Denied, match="no digests"):
            await host.skills.load("a")
