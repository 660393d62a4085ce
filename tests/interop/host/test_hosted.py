"""The whole host with servers that other people wrote: policy, consent, questions, audit."""

import pytest
from msgspec import structs

from isthmus.host.host import Host
from isthmus.host.model.entries import HostOptions, RootEntry
from isthmus.host.model.errors import Denied
from isthmus.host.model.interaction import Decision
from isthmus.host.providers.scripted import Scripted
from isthmus.host.sampling.models import Models

pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]

POLICY = """
[[rule]]
id = "reading"
effect = "allow"
when = { action = ["tool.call", "resource.read"], server = ["time", "git", "filesystem"] }

[[rule]]
id = "no-resets"
effect = "deny"
when = { action = "tool.call", server = "git", tool = "git_reset" }
"""

MODELS = """
[[model]]
id = "small"
provider = "scripted"
context = 8000
max_output = 1000
"""


class Person:
    """Says yes to everything but one tool, fills in forms, and remembers what was asked."""

    name = "person"
    assurance = "local_ui"

    def __init__(self):
        self.asked = []

    async def offer(self, interaction):
        """Answer."""
        self.asked.append(interaction.attempt.action)
        if interaction.attempt.object == "delete_entities":
            return Decision(verdict="deny", by=self.name)
        if interaction.attempt.action == "elicit.form":
            filled = {"name": "Ada", "integer": 42}
            return Decision(verdict="allow", by=self.name, edited=filled)
        return Decision(verdict="allow", by=self.name)


@pytest.fixture
async def hosted(theirs, tmp_path):
    """The five under a host with a policy, a model and somebody who answers; and that person."""
    (tmp_path / "policy.toml").write_text(POLICY, encoding="utf-8")
    options = HostOptions(roots=(RootEntry(path=str(tmp_path / "shared")),))
    person = Person()
    host = Host(
        structs.replace(theirs, options=options),
        approver=person,
        policy=tmp_path / "policy.toml",
        models=Models.parse(MODELS),
        providers={"scripted": Scripted("a sampled answer")},
        state=tmp_path / "state",
    )
    async with host:
        yield host, person


async def text(host, name, **arguments):
    return (await host.call(name, arguments)).text


async def test_policy_lets_through_asks_and_refuses_and_all_of_it_is_written_down(hosted, tmp_path):
    """What a rule allows asks nobody, the rest asks a person, and every row of the log holds."""
    host, person = hosted
    assert "UTC" in await text(host, "time__get_current_time", timezone="UTC")
    log = await text(host, "git__git_log", repo_path=str(tmp_path / "repo"))
    assert "The first notes" in log
    assert ["server.install"] * 2 == person.asked
    with pytest.raises(Denied, match="no-resets"):
        await host.call("git__git_reset", {"repo_path": str(tmp_path / "repo")})
    ada = [{"name": "Ada", "entityType": "person", "observations": ["likes bridges"]}]
    await text(host, "memory__create_entities", entities=ada)
    assert "likes bridges" in await text(host, "memory__read_graph")
    with pytest.raises(Denied, match="person"):
        await host.call("memory__delete_entities", {"entityNames": ["Ada"]})
    assert ["server.install", *["tool.call"] * 3] == person.asked[2:]
    verdict = await host.audit.verify()
    assert (True, True) == (verdict.good, verdict.rows >= 20)


async def test_a_server_gets_its_roots_and_works_within_them(hosted, tmp_path):
    """Server-filesystem asks for roots, the person grants them, and it reads there alone."""
    host, person = hosted
    for _ in range(1000):  # it asks after it has said that it is ready
        if "shared" in await text(host, "filesystem__list_allowed_directories"):
            break
    path = str(tmp_path / "shared" / "list.txt")
    assert "milk" in await text(host, "filesystem__read_text_file", path=path)
    outside = str(tmp_path / "policy.toml")
    assert "denied" in (await text(host, "filesystem__read_text_file", path=outside)).lower()
    assert "roots.expose" in person.asked


async def test_what_server_everything_asks_is_answered_by_model_and_person(hosted):
    """Sampling is looked at before and after, a form is filled in, a resource is read."""
    host, person = hosted
    sampled = await text(host, "everything__trigger-sampling-request", prompt="x")
    assert "a sampled answer" in sampled
    assert "Ada" in await text(host, "everything__trigger-elicitation-request")
    async with host.parts.supervisor.use("everything") as client:
        uri = (await client.list_resources())[0].uri
    assert (await host.read(uri, server="everything")).contents
    assert {"sampling.request", "sampling.respond", "elicit.form", "resource.read"} <= set(
        person.asked
    )
    assert (await host.audit.verify()).good
