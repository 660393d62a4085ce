"""Whether a tool is what it was."""

import msgspec
import pytest

from isthmus.host.approvals.fingerprints import Fingerprints, ToolChange, compute_fingerprint
from isthmus.host.model.errors import Exhausted
from isthmus.host.state.database import HostState
from isthmus.wire import Icon, Tool, ToolExecution
from support.host.policies import READS, make_tool

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}
TURNED = {"properties": {"b": {"type": "integer"}, "a": {"type": "string"}}, "type": "object"}


@pytest.fixture
async def state():
    made = HostState(None)
    yield made
    await made.close()


@pytest.fixture
async def known(state):
    made = Fingerprints(state)
    await made.load()
    return made


@pytest.mark.covers("hostpolicy.fingerprints.change")
def test_the_order_of_members_is_no_difference():
    """Ours: a server that writes its schema another way round has not changed it."""
    assert compute_fingerprint(make_tool(input_schema=SCHEMA)) == compute_fingerprint(
        make_tool(input_schema=TURNED)
    )
    assert 64 == len(compute_fingerprint(make_tool()))


@pytest.mark.parametrize(
    "other",
    [{"description": "y"}, {"title": "t"}, {"input_schema": SCHEMA}, {"output_schema": SCHEMA}, {"annotations": READS},
     {"meta": {"ui": {"resourceUri": "ui://a"}}}, {"name": "re\u0430d"}, {"description": "x\u200b"}],
)  # fmt: skip
@pytest.mark.covers("hostpolicy.fingerprints.change", "hostpolicy.names.exact")
def test_whatever_a_model_reads_of_a_tool_or_it_claims_is_in_its_fingerprint(other):
    """Ours: a word, a schema, a hint, a page."""
    assert compute_fingerprint(make_tool(description="x")) != compute_fingerprint(
        make_tool(**({"description": "x"} | other))
    )


def test_a_tool_stays_the_same_when_its_server_speaks_a_newer_revision():
    """Ours: only 2025-11-25 lists whether a tool may run as a task."""
    assert compute_fingerprint(make_tool()) == compute_fingerprint(
        make_tool(execution=ToolExecution(task_support="required"))
    )


def test_what_nobody_reads_is_not():
    """Ours: other metadata and pictures change without a change of the tool."""
    assert compute_fingerprint(make_tool()) == compute_fingerprint(make_tool(meta={"build": 7}))
    assert compute_fingerprint(make_tool()) == compute_fingerprint(
        make_tool(icons=[Icon(src="https://a.example/i.png")])
    )


@pytest.mark.covers("hostpolicy.fingerprints.change")
async def test_a_tool_is_known_from_its_first_sight_on(known, state):
    """Ours: also in another life of the host, and for another server it is another tool."""
    first = make_tool(description="x")
    assert known.check("s", "id", first) is None

    learned = await known.learn("s", "id", first)
    again = Fingerprints(state)
    await again.load()
    for one in (known, again):
        assert (
            learned
            == compute_fingerprint(first)
            == one.check("s", "id", make_tool(description="x"))
        )
        assert one.check("s", "another program", first) is None
        assert one.check("t", "id", first) is None


@pytest.mark.covers("hostpolicy.fingerprints.change")
async def test_a_tool_that_was_gone_is_held_to_what_it_was(known):
    """Ours: to go away and come back is no way to another definition."""
    await known.learn("s", "id", make_tool(description="x"))
    change = known.check("s", "id", make_tool(description="y"))

    assert isinstance(change, ToolChange)
    assert ("s", "id", "read") == (change.server, change.identity, change.tool)
    assert (
        compute_fingerprint(make_tool(description="x")),
        compute_fingerprint(make_tool(description="y")),
    ) == (
        change.known,
        change.fingerprint,
    )
    assert "x" == msgspec.json.decode(change.before)["description"]
    assert change == await known.learn("s", "id", make_tool(description="y"))
    assert known.check("s", "id", make_tool(description="x")) == change.known


@pytest.mark.covers("hostpolicy.fingerprints.change")
async def test_a_released_change_is_what_is_known(known, state):
    """Ours: and what was known before is a change from then on."""
    await known.learn("s", "id", make_tool(description="x"))
    now = await known.release(known.check("s", "id", make_tool(description="y")))
    again = Fingerprints(state)
    await again.load()

    for one in (known, again):
        assert now == one.check("s", "id", make_tool(description="y"))
        assert isinstance(one.check("s", "id", make_tool(description="x")), ToolChange)


async def test_of_two_that_learn_at_once_the_first_counts(state):
    """Ours: a second process does not overwrite what the first one saw."""
    one, two = Fingerprints(state), Fingerprints(state)
    await one.learn("s", "id", make_tool(description="x"))

    assert isinstance(await two.learn("s", "id", make_tool(description="y")), ToolChange)


@pytest.mark.parametrize(
    "name", ["__proto__", "<script>", "\u202egnp.exe", "", "a" * 10_000, "\x00", "Read"]
)
@pytest.mark.covers("hostpolicy.names.exact")
async def test_odd_names_are_kept_apart(known, name):
    """Ours: whatever a name holds, it is a name."""
    await known.learn("s", "id", make_tool())
    assert known.check("s", "id", make_tool(name)) is None

    assert compute_fingerprint(make_tool(name)) == await known.learn("s", "id", make_tool(name))


@pytest.mark.covers("hostpolicy.fingerprints.diff")
async def test_a_huge_definition_is_kept_by_its_beginning(known):
    """Ours: ten megabytes are compared by digest, and shown by their first lines."""
    huge = Tool(name="read", input_schema=SCHEMA, description="word \n" * 1_700_000)
    await known.learn("s", "id", huge)
    change = known.check("s", "id", make_tool(description="short", input_schema=SCHEMA))

    assert compute_fingerprint(huge) == change.known
    assert len(change.before) < 256 * 1024
    before = msgspec.json.decode(change.before)
    assert "more characters" in before["description"]
    assert ("read", SCHEMA) == (before["name"], before["inputSchema"])
    assert len(change.diff()) < 300


async def test_a_server_that_made_up_names_is_stopped_after_a_restart_too(state, monkeypatch):
    """Ours: what it made up before counts; all servers together have an end as well."""
    first = Fingerprints(state)
    await first.load()
    for name in ("a", "b"):
        await first.learn("s", "id", make_tool(name))
    again = Fingerprints(state)
    await again.load()

    monkeypatch.setattr("isthmus.host.approvals.fingerprints.MAX_TOOLS_OF_SERVER", 2)
    with pytest.raises(Exhausted, match="'s'"):
        await again.learn("s", "id", make_tool("c"))
    monkeypatch.setattr("isthmus.host.approvals.fingerprints.MAX_TOOLS", 2)
    with pytest.raises(Exhausted, match="'t'"):
        await again.learn("t", "id", make_tool("c"))


async def test_a_server_that_makes_up_names_is_stopped(known, monkeypatch):
    """Ours: everything has an end, and what is known already goes on."""
    monkeypatch.setattr("isthmus.host.approvals.fingerprints.MAX_TOOLS_OF_SERVER", 1)
    await known.learn("s", "id", make_tool("a"))

    with pytest.raises(Exhausted, match="'s'"):
        await known.learn("s", "id", make_tool("b"))
    assert compute_fingerprint(make_tool("a")) == await known.learn("s", "id", make_tool("a"))
    assert compute_fingerprint(make_tool("b")) == await known.learn("t", "id", make_tool("b"))


@pytest.mark.covers("hostpolicy.fingerprints.change")
async def test_of_two_processes_the_first_sight_counts(tmp_path):
    """Ours: a process that sees another definition later holds it back, whatever it showed to a model."""
    states = [HostState(tmp_path), HostState(tmp_path)]
    first, second = (Fingerprints(state) for state in states)
    await first.load()
    await second.load()
    approved, other = make_tool(description="x"), make_tool(description="y")
    await first.learn("s", "id", approved)

    assert not second.hides("s", "id", other)  # nobody knows yet
    assert second.check("s", "id", other) is None
    assert compute_fingerprint(approved) == (await second.learn("s", "id", other)).known
    assert second.hides("s", "id", other)
    for state in states:
        await state.close()


async def test_what_another_process_has_released_is_no_change(tmp_path):
    """Ours: a person is not asked twice about the same definition."""
    states = [HostState(tmp_path), HostState(tmp_path)]
    first, second = (Fingerprints(state) for state in states)
    await first.learn("s", "id", make_tool(description="x"))
    await second.load()
    changed = make_tool(description="y")
    await first.release(await first.learn("s", "id", changed))

    assert compute_fingerprint(changed) == await second.learn("s", "id", changed)
    for state in states:
        await state.close()
