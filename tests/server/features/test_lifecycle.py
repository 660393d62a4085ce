"""How conversations open: handshake, ping and discovery."""

import pytest
from msgspec import Raw

from isthmus.core.caller import Caller
from isthmus.revisions import BY_NAME, REVISIONS
from isthmus.revisions import LEGACY as SESSIONS
from isthmus.runtime.inbound import Inbound
from isthmus.server import Server
from isthmus.server.features.lifecycle import MAX_INITIALIZE_BYTES
from isthmus.wire import Icon
from isthmus.wire.jsonrpc import ErrorBody, decode, encode
from support.server.both_eras import LEGACY, MODERN, EraClient, FakeLink


async def initialize(server, version, capabilities=None):
    params = {
        "protocolVersion": version,
        "capabilities": capabilities or {},
        "clientInfo": {"name": "c", "version": "1"},
    }
    link = FakeLink()
    inbound = Inbound(1, "initialize", Raw(encode(params)), Caller(), link)
    outcome = await server.router.serve(inbound)
    return link.agreed, outcome if isinstance(outcome, ErrorBody) else decode(outcome)


def full(**options):
    server = Server("full", version="2", title="Full", instructions="Use it.", **options)
    server.add_tool(lambda: None, name="t")
    server.add_resource(lambda: "", "a://b", name="r")
    server.add_prompt(lambda x: "", name="p")
    server.completes("p", "x")(list)
    return server


@pytest.mark.covers("versions.negotiation.exact")
@pytest.mark.parametrize("revision", SESSIONS)
async def test_the_revision_asked_for_is_the_one_agreed_on(revision):
    """If the server supports it (spec 2025-11-25: version negotiation)."""
    caller, result = await initialize(full(), revision.name)

    assert revision.name == result["protocolVersion"]
    assert (revision, "c") == (caller.revision, caller.info.name)


@pytest.mark.covers("versions.negotiation.latest-otherwise")
@pytest.mark.parametrize("wanted", [MODERN, "2027-01-01", "", "1.0"])
async def test_another_revision_is_answered_with_our_latest(wanted):
    """MUST answer another it supports, SHOULD be the latest (spec 2025-11-25)."""
    _, result = await initialize(full(), wanted)
    _, older = await initialize(full(revisions=REVISIONS[:2]), wanted)

    assert LEGACY == result["protocolVersion"]
    assert "2025-03-26" == older["protocolVersion"]


async def test_a_server_without_handshake_says_what_it_speaks():
    """SHOULD name its versions in the error (spec 2026-07-28: versioning)."""
    _, error = await initialize(full(revisions=REVISIONS[-1:]), LEGACY)

    assert {"supported": [MODERN], "requested": LEGACY} == error.data
    assert MODERN in error.message


@pytest.mark.covers(
    "capabilities.declared-as-offered",
    "lifecycle.initialize.answered",
    "capabilities.server.logging",
)
async def test_offered_features_are_declared():
    """Capabilities follow from what was registered (architecture 4.5)."""
    _, result = await initialize(full(), LEGACY)
    _, nothing = await initialize(Server("empty"), LEGACY)

    assert {
        "tools": {"listChanged": True},
        "resources": {"subscribe": True, "listChanged": True},
        "prompts": {"listChanged": True},
        "completions": {},
        "logging": {},
    } == result["capabilities"]
    assert {"logging": {}} == nothing["capabilities"]
    assert {"name": "empty", "version": "0"} == nothing["serverInfo"]
    assert "instructions" not in nothing


@pytest.mark.covers("lifecycle.operation.agreed-revision")
async def test_the_answer_is_cut_to_the_revision():
    """Titles are of 2025-06-18, icons of 2025-11-25 (schemas)."""
    server = full(icons=[Icon(src="https://a.example/i.png")], website_url="https://a.example")
    _, old = await initialize(server, "2024-11-05")
    _, new = await initialize(server, LEGACY)

    assert {"name": "full", "version": "2"} == old["serverInfo"]
    assert {"name", "version", "title", "icons", "websiteUrl"} == set(new["serverInfo"])


@pytest.mark.covers("capabilities.never-undeclared")
async def test_capabilities_of_later_revisions_do_not_count():
    """A session of 2025-03-26 cannot elicit, whatever its client says (schemas)."""
    caller, _ = await initialize(full(), "2025-03-26", {"elicitation": {}, "sampling": {}})

    assert not caller.capabilities.elicitation
    assert caller.capabilities.sampling


async def test_a_client_may_not_say_more_of_itself_than_can_be_kept():
    """Ours: sessions are many, and what each of them keeps must be little."""
    large = {"experimental": {"a": {"b": "x" * MAX_INITIALIZE_BYTES}}}

    answer = await EraClient(Server("x"), LEGACY).once(
        "initialize",
        {
            "protocolVersion": LEGACY,
            "capabilities": large,
            "clientInfo": {"name": "a", "version": "1"},
        },
    )

    assert -32602 == answer.code
    assert f"{MAX_INITIALIZE_BYTES} are kept at most" in answer.message


async def test_ping_is_answered():
    """With nothing (spec 2025-11-25: ping)."""
    assert {} == await EraClient(Server("x"), LEGACY).once("ping")


@pytest.mark.covers("capabilities.discovered", "caching.discovery.hinted")
async def test_discovery_tells_what_the_handshake_tells():
    """Versions, capabilities, instructions, identity, hints (spec: server/discover)."""
    result = await EraClient(full(list_ttl_ms=60)).once("server/discover")
    _, session = await initialize(full(), LEGACY)

    assert [MODERN] == result["supportedVersions"]
    assert session["capabilities"] == result["capabilities"]
    assert ("Use it.", 60, "public") == (
        result["instructions"],
        result["ttlMs"],
        result["cacheScope"],
    )
    assert "full" == result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"]


def test_the_revisions_of_a_server_are_in_order():
    """Oldest first, whatever order they were given in (ours)."""
    chosen = [BY_NAME[MODERN], BY_NAME["2024-11-05"]]

    assert [BY_NAME["2024-11-05"], BY_NAME[MODERN]] == list(Server("x", revisions=chosen).revisions)
