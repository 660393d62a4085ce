"""A context for a model: gathered through the pipeline, agreed to, within its budget, accounted for."""

import msgspec
import pytest

from isthmus import Command, Context, Server
from isthmus.host import Host
from isthmus.host.chat.conversation import Conversation
from isthmus.host.host import HostConfig
from isthmus.host.model.entries import Advertise, Labels
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.rule_file import read_layers
from isthmus.host.providers.scripted import Scripted
from isthmus.host.sampling.models import Models
from isthmus.types import Annotations, CallToolResult, ResourceLink, TextContent
from support.host.sampling_desk import LARGE, SMALL

READING = """
[[rule]]
id = "reading"
effect = "allow"
when = { action = ["resource.read", "prompt.get", "tool.call", "sampling.*"] }
unless = { uri = "notes://asked*" }
obligations = { review = "none" }
"""
SHARING = """
[[rule]]
id = "sharing"
effect = "allow"
when = { action = "context.share" }
"""
SECRET = "sk-" + "proj-4f8a9b2c7d1e6f3a8b5c9d2e7f1a4b6c8d3e"
TO = "scripted/m"


def notes():
    """A server with notes of all kinds."""
    server = Server("notes", instructions="Ask before you write.")

    def note(name, text, **annotations):
        said = Annotations(**annotations) if annotations else None

        @server.resource(f"notes://{name}", name=name, **({"annotations": said} if said else {}))
        def read() -> str:
            return text

    note("boats", "Boats are sailed.")
    note("garden", "Gardens are dug.", priority=1.0)
    note("user", "For eyes alone.", audience=["user"])
    note("secret", f"the key is {SECRET}")
    note("asked", "Only by permission.")

    @server.resource("notes://day/{day}")
    def day(day: str) -> str:
        """A day."""
        return f"What was on {day}."

    @server.prompt
    def ask(what: str) -> str:
        """Ask."""
        return f"Have you {what}?"

    @server.tool
    def link() -> CallToolResult:
        """Link."""
        return CallToolResult(content=[ResourceLink(uri="notes://linked", name="linked")])

    note("linked", "Behind a link.")

    @server.tool
    async def ponder(ctx: Context) -> str:
        """Ponder."""
        wants = {"include_context": "allServers"}
        return (await ctx.sample("Well?", max_tokens=50, **wants)).text

    return server


def other(text="Nothing to see."):
    """Another server, with one page."""
    server = Server("other")

    @server.resource("other://page")
    def page() -> str:
        """A page."""
        return text

    return server


def make_host(policy=READING + SHARING, approver=None, **more):
    """A host with the two servers."""
    host = Host(HostConfig(), approver=approver, policy=Policy(read_layers(policy, "user")), **more)
    host.add("notes", notes(), labels=Labels(reads=("private",)))
    host.add("other", other())
    return host


def text_of(built):
    """All that a model would read."""
    return "\n".join(part.text for message in built.messages for part in message.content)


def became(built):
    """What became of each candidate, by its URI, and why."""
    return {one.uri: (one.state, one.reason) for one in built.manifest.placed}


@pytest.mark.covers("hostcontext.context.manifest", "hostcontext.context.frame")
async def test_what_was_asked_for_is_there_in_frames():
    """We demand: what is pinned first, then the rest; each with the server that it is of."""
    async with make_host() as host:
        built = await host.context.build(
            budget_tokens=2000,
            to=TO,
            pins=["notes+notes://boats"],
            templates={"notes+notes://day/{day}": {"day": "May 1"}},
            prompts={"notes__ask": {"what": "tea"}},
        )

    text = text_of(built)
    assert ["notes://boats", "notes://day/May%201"] == [
        one.uri for one in built.manifest.placed[:2]
    ]
    assert all(
        words in text
        for words in ("Boats are sailed.", "What was on May 1.", "Have you tea?", "Ask before you")
    )
    assert 4 == text.count("[untrusted data from server notes: ")
    assert built.manifest.tokens <= 2000


@pytest.mark.covers("hostcontext.context.audience", "hostcontext.context.unasked")
async def test_what_nobody_named_is_read_only_where_nobody_is_asked():
    """We demand: a resource that policy would ask about, or that is for people, is dropped with the reason."""
    asked = []
    async with make_host(approver=lambda one: asked.append(one) or True) as host:
        built = await host.context.build("garden", budget_tokens=2000, to=TO, resources=True)

    found = became(built)
    assert "included" == found["notes://garden"][0]
    assert ("dropped", "its server means it for the user alone") == found["notes://user"]
    assert found["notes://asked"][1].startswith("policy would ask")
    assert [] == asked


async def test_a_person_is_asked_about_what_is_pinned():
    """We demand: whoever names a resource is asked where policy says so."""
    asked = []
    async with make_host(approver=lambda one: asked.append(one.attempt.object) or True) as host:
        built = await host.context.build(budget_tokens=900, to=TO, pins=["notes://asked"])

    assert ["notes://asked"] == asked
    assert "Only by permission." in text_of(built)


@pytest.mark.covers("hostcontext.context.bad-server")
async def test_what_cannot_be_had_is_dropped_and_costs_the_others_nothing():
    """We demand: a resource that is not there, a prompt nobody has, a server that is no server."""
    host = make_host()
    host.add("broken", Command("/nowhere/at/all"))
    async with host:
        built = await host.context.build(
            budget_tokens=2000,
            to=TO,
            pins=["notes+notes://nothing", "nobody+x://y", "broken+x://y", "notes://boats"],
            prompts={"notes__nothing": {}},
            templates={"notes+notes://{": {}},
        )

    found = became(built)
    gone = ("notes://nothing", "nobody+x://y", "x://y", "notes__nothing", "notes://{")
    assert "Boats are sailed." in text_of(built)
    assert {"dropped"} == {found[uri][0] for uri in gone}
    assert all(found[uri][1] for uri in gone)


@pytest.mark.covers("hostcontext.context.secrets")
async def test_secrets_are_not_in_it():
    """We demand: what looks like a key is taken out before anything is chosen, of addresses, too."""
    async with make_host() as host:
        built = await host.context.build(
            budget_tokens=900,
            to=TO,
            pins=["notes://secret"],
            templates={"notes+notes://day/{day}": {"day": SECRET}},
        )

    assert "the key is [redacted]" in text_of(built)
    assert "What was on [redacted]" in text_of(built)
    assert SECRET not in text_of(built) + str(built.manifest)


@pytest.mark.covers("hostcontext.context.consent")
async def test_a_person_agrees_once_to_everything():
    """We demand: one question, with whom and with every piece; each server has its row in the log."""
    asked = []
    async with make_host(READING, approver=lambda one: asked.append(one) or True) as host:
        with host.run() as run:
            built = await host.context.build(
                budget_tokens=2000, to=TO, run=run, pins=["notes://boats", "other://page"]
            )
        rows = [r for r in await host.view.audit_tail() if r.action == "context.share"]

    (question,) = asked
    assert (TO, 3) == (question.payload.to, len(question.payload.what))
    assert question.payload.what[-1].startswith("other: other://page")
    assert {"notes", "other"} == {row.server for row in rows if row.kind == "outcome"}
    assert "Boats are sailed." in text_of(built)


@pytest.mark.covers("hostcontext.context.denied")
@pytest.mark.parametrize("approver", [lambda _: False, None])
async def test_a_no_leaves_nothing_of_it(approver):
    """We demand: a person's, and that of nobody being there; the manifest says why."""
    async with make_host(READING, approver=approver) as host:
        built = await host.context.build(budget_tokens=900, to=TO, pins=["notes://boats"])

    assert ((), 0) == (built.messages, built.manifest.tokens)
    assert {"dropped"} == {state for state, _ in became(built).values()}
    assert "context.share" in became(built)["notes://boats"][1]


@pytest.mark.covers("hostcontext.context.denied")
async def test_policy_keeps_a_server_to_itself():
    """We demand: a rule about one server leaves out what it gave, and takes none of the budget."""
    rule = """
[[rule]]
id = "stays"
effect = "deny"
when = { action = "context.share", server = "notes" }
"""
    async with make_host(READING + SHARING + rule) as host:
        built = await host.context.build(
            budget_tokens=900, to=TO, pins=["notes://boats", "other://page"]
        )

    assert "Nothing to see." in text_of(built)
    assert "Boats" not in text_of(built)
    assert "stays" in became(built)["notes://boats"][1]


@pytest.mark.covers("hostcontext.context.labels")
async def test_what_is_included_labels_the_run():
    """We demand: also where nothing was read but what a server says of itself."""
    async with make_host() as host:
        with host.run() as run:
            await host.context.build(budget_tokens=900, to=TO, run=run)
            labels = run.labels

    assert {"private", "untrusted"} == labels


@pytest.mark.covers("hostcontext.context.links")
async def test_links_that_tools_gave_are_candidates_in_their_run():
    """We demand: in that run, of that server, and in no other run."""
    async with make_host() as host:
        with host.run() as run, host.run() as another:
            await host.call("notes__link", run=run)
            mine = await host.context.build(budget_tokens=900, to=TO, run=run)
            theirs = await host.context.build(budget_tokens=900, to=TO, run=another)

    assert "Behind a link." in text_of(mine)
    assert "Behind a link." not in text_of(theirs)


@pytest.mark.parametrize(
    ("instructions", "said"),
    [
        (True, "Ask before you write."),
        (False, ""),
        ({"notes": False}, ""),
        ({"notes": "Never write."}, "Never write."),
    ],
)
async def test_what_servers_say_of_themselves_can_be_left_out_or_replaced(instructions, said):
    """We demand: of all, of none, of one; or the user's own words in its place."""
    async with make_host() as host:
        built = await host.context.build(budget_tokens=900, to=TO, instructions=instructions)

    assert [said] == [part.split("\n")[1] if part else "" for part in [text_of(built)]]


@pytest.mark.covers("hostcontext.context.sampling")
@pytest.mark.parametrize(
    ("rules", "said"),
    [
        (READING + SHARING, ["Boats are sailed.", "Nothing to see."]),
        (READING, []),
        (
            READING
            + SHARING
            + '[[rule]]\nid = "x"\neffect = "deny"\n'
            + 'when = { action = "context.share", server = "other" }\n',
            ["Boats are sailed."],
        ),
    ],
)
async def test_a_server_that_asks_for_context_gets_what_policy_lets_it_have(rules, said):
    """We demand: by a rule, and without what another rule keeps from being shared."""
    provider = Scripted("Well.")
    host = make_host(
        rules,
        approver=lambda _: True,
        models=Models([SMALL, LARGE]),
        providers={"scripted": provider},
    )
    host.add("asking", notes(), advertise=Advertise(sampling=True, sampling_context=True))
    async with host:
        await host.catalog.load()
        await host.call("asking__ponder")

    asked = msgspec.json.encode(provider.asked[0].messages).decode()
    assert said == [one for one in ("Boats are sailed.", "Nothing to see.") if one in asked]


@pytest.mark.covers("hostcontext.context.estimate")
async def test_the_estimate_follows_what_a_provider_reports():
    """We demand: texts are counted as the model that gets them counted before."""
    async with make_host() as host:
        before = host.estimators.of(TO).ratio
        for _ in range(30):
            host.estimators.of(TO).learn(1000, 500)
        built = await host.context.build(budget_tokens=900, to=TO, pins=["notes://boats"])

    assert before > host.estimators.of(TO).ratio
    assert "2.0" in built.manifest.counter


async def test_a_context_goes_along_with_the_users_words():
    """We demand: what was built stands before what the user says next, once."""
    provider = Scripted(["Yes."])
    async with make_host() as host:
        talk = Conversation(host, provider, "m")
        built = await host.context.build(
            budget_tokens=900, to=talk.voice, run=talk.run, pins=["notes://boats"]
        )
        talk.enclose(built.messages)
        _ = [event async for event in talk.say("And?")]

    first = provider.asked[0].messages[0].content
    assert "And?" == first[-1].text
    assert "Boats are sailed." in first[0].text
    assert isinstance(first[-1], TextContent)
