"""Requests of a console: the same answers from this process and from another."""

import asyncio
import json

import pytest

from isthmus.core.redaction.values import Redactor
from isthmus.host.model.attempt import Attempt
from isthmus.host.model.calling_client import CallingClients
from isthmus.host.model.errors import Denied, HostError, OutcomeUnknown, Unknown
from isthmus.host.model.events import (
    AttemptEnded,
    AttemptJudged,
    AttemptProgressed,
    HostEvents,
    QuestionAsked,
)
from isthmus.host.model.interaction import Decision
from isthmus.host.model.trace import Trace
from isthmus.host.model.view import MAX_QUERY_ROWS, AttemptDraft, AuditQuery, TrafficQuery
from isthmus.host.pipeline.attempt_events import StoppedAttempts
from isthmus.host.remote.attached import AttachedHost
from isthmus.host.remote.control import Control
from isthmus.host.traffic.recorder import MAX_CALLS, TrafficRecorder
from support.host.console_hosts import (
    ALLOW_ALL,
    CANARY,
    make_console_host,
    view_host,
    wait_for_call,
)

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
async def host(tmp_path):
    async with make_console_host(tmp_path / "state") as host:
        yield host


@pytest.fixture(params=["local", "attached"])
async def view(request, host, tmp_path):
    async with view_host(host, request.param, tmp_path / "state") as view:
        yield view


# Traffic


async def test_a_call_is_recorded_while_somebody_watches(host, view):
    """Ours: what was wanted, what decided, and how it ended."""
    async with view.watch():
        await host.call("calc__add", {"a": 1, "b": 2})
        (found,) = await view.traffic()
        one = await view.call_record(found.id)

    assert found == one
    assert ("calc", "add", "tool.call") == (found.server, found.object, found.action)
    assert {"a": 1, "b": 2} == found.arguments
    assert ("ok", "allow", "local") == (found.outcome, found.effect, found.origin)
    assert ["attempt", "rule", "sent", "outcome"] == [step.kind for step in found.steps]
    assert found.revision
    assert found.seconds is not None


async def test_nothing_is_recorded_while_nobody_watches(host, view):
    """Ours: and nothing listens to what happens."""
    listening = len(host.core.events._listeners)
    async with view.watch():
        assert listening + 1 == len(host.core.events._listeners)
    await host.call("calc__add", {"a": 1, "b": 2})

    assert [] == list(await view.traffic())
    assert listening == len(host.core.events._listeners)


async def test_secrets_are_in_no_record(host, view):
    """Ours: neither those in arguments nor those in what a server answers."""
    async with view.watch():
        await host.call("calc__login", {"password": CANARY})
        (found,) = await view.traffic()
        messages = await view.wire_messages(found.id)

    assert CANARY not in str(found)
    assert CANARY not in str(messages)


async def test_calls_are_found_by_filters(host, view):
    """Ours: by server, principal, outcome and words, the newest first, page by page."""
    async with view.watch():
        for number in range(3):
            await host.call("calc__add", {"a": number, "b": 2}, principal="user:ada@local")
        await host.call("calc__fail", {})
        newest = await view.traffic(TrafficQuery(count=1))
        rest = await view.traffic(TrafficQuery(before=newest[0].id))
        failed = await view.traffic(TrafficQuery(outcome="failed"))
        of_ada = await view.traffic(TrafficQuery(principal="user:ada@local", server="calc"))
        none = await view.traffic(TrafficQuery(text="no such words"))

    assert ["fail"] == [one.object for one in newest] == [one.object for one in failed]
    assert (
        [2, 1, 0] == [one.arguments["a"] for one in rest] == [one.arguments["a"] for one in of_ada]
    )
    assert [] == list(none)


async def test_figures_are_counted_by_minute(host, view):
    """Ours: calls, failures and times; errors by server, decisions by rule."""
    async with view.watch():
        await host.call("calc__add", {"a": 1, "b": 2})
        await host.call("calc__fail", {})
        figures = await view.figures(5)

    assert 5 == len(figures.minutes)
    assert (2, 1) == (
        sum(one.calls for one in figures.minutes),
        sum(one.failed for one in figures.minutes),
    )
    assert {"calc": 1} == dict(figures.errors)
    assert 2 == sum(sum(effects.values()) for effects in figures.decisions.values())
    assert any(one.p50 is not None for one in figures.minutes)


async def test_a_call_can_be_stopped(host, view):
    """Ours: whoever waits for it is told by whom, and so is the audit log."""
    async with view.watch():
        calling = asyncio.ensure_future(host.call("calc__hang", {}))
        found = await wait_for_call(view, "sent")
        assert await view.stop_call(found.id, by="ada")
        with pytest.raises(OutcomeUnknown, match="stopped by ada"):
            await calling
        ended = await view.call_record(found.id)
        rows = await view.call_rows(found.id)

    assert "cancelled" == ended.outcome
    assert ["ada"] == [row.approver for row in rows if row.action == "call.stop"]
    assert not await view.stop_call(found.id)
    assert not await view.stop_call("nothing")


async def test_a_run_can_be_stopped(host, view):
    """Ours: what is under way in it is cancelled, and nothing more begins."""
    run = host.run()
    async with view.watch():
        calling = asyncio.ensure_future(host.call("calc__hang", {}, run=run))
        await wait_for_call(view, "sent")
        (line,) = [one for one in await view.runs() if one.run == run.id]
        assert 1 == line.in_flight
        assert await view.stop_run(run.id, by="ada")
        with pytest.raises(OutcomeUnknown):
            await calling

    assert not await view.stop_run(run.id)
    assert run.id not in [one.run for one in await view.runs()]


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_call_with_its_questions_is_one_conversation(tmp_path, era):
    """Ours: in each era the call has the question, the answer, and every message of both."""
    async with make_console_host(tmp_path / "state", era=era) as host:
        view = host.view
        await host.call("calc__add", {"a": 1, "b": 2})  # it is connected before anybody watches
        async with view.watch(), view.attend("test"):
            events = view.events()
            calling = asyncio.ensure_future(host.call("calc__book", {}))
            async for event in events:
                if isinstance(event, QuestionAsked):
                    said = Decision(verdict="allow", by="ada", edited={"row": 3})
                    assert await view.decide(event.interaction.id, said)
                    break
            assert "row 3" == (await calling).text
            (found,) = await view.traffic(TrafficQuery(text="book"))
            (asked,) = await view.traffic(TrafficQuery(server="calc", text="Which seat"))
            messages = await view.wire_messages(found.id)

    kinds = [step.kind for step in found.steps]
    texts = " ".join(message.text for message in messages)
    assert ["question", "answer"] == [one for one in kinds if one in {"question", "answer"}]
    assert (era == "modern") == ("retry" in kinds)
    assert [event.interaction.id] == list(found.questions)
    assert found.id == asked.parent
    assert ["sent", "received", "sent", "received"] == [one.direction for one in messages]
    assert "Which seat?" in texts
    assert "row 3" in texts


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_what_a_person_answers_is_in_no_message(tmp_path, era):
    """Ours: whoever looks at the traffic sees that it was a yes, and no more, as in the audit log."""
    async with make_console_host(tmp_path / "state", era=era) as host:
        view = host.view
        async with view.watch(), view.attend("test"):
            events = view.events()
            calling = asyncio.ensure_future(host.call("calc__book", {}))
            async for event in events:
                if isinstance(event, QuestionAsked):
                    said = Decision(verdict="allow", by="ada", edited={"row": 90210})
                    assert await view.decide(event.interaction.id, said)
                    break
            await calling
            (found,) = await view.traffic(TrafficQuery(text="book"))
            *before, _ = await view.wire_messages(found.id)  # the last is what the tool says

    texts = " ".join(message.text for message in before)
    assert "accept" in texts
    assert "90210" not in texts
    states = [json.loads(one.text) for one in before if "requestState" in one.text]
    assert (era == "modern") == bool(states)
    for one in states:
        holder = one.get("params") or one["result"]
        assert holder["requestState"] == "[the server's state]"


async def test_messages_are_recorded_without_secrets(host, view):
    """Ours: a connection that was open before is listened to, and let go afterwards."""
    await host.call("calc__add", {"a": 1, "b": 2})
    peer = host.servers["calc"].connections[""].client.connection.peer
    channel, known = peer.channel, dict(vars(peer))
    async with view.watch():
        await host.call("calc__login", {"password": CANARY})
        (found,) = await view.traffic()
        messages = await view.wire_messages(found.id)
    await host.call("calc__add", {"a": 1, "b": 2})

    assert ["sent", "received"] == [one.direction for one in messages]
    assert "tools/call" in messages[0].text
    assert not [one for one in messages if CANARY in one.text]
    assert channel is peer.channel
    assert set(known) == set(vars(peer))
    assert 2 == len(await view.wire_messages(found.id))


async def test_what_a_rule_hides_is_in_no_record(tmp_path):
    """Ours: neither in the arguments nor on the wire."""
    rules = ALLOW_ALL + 'obligations = { redact = ["/a"] }\n'
    async with make_console_host(tmp_path / "state", rules) as host, host.view.watch():
        await host.call("calc__add", {"a": 987654321, "b": 2})
        (found,) = await host.view.traffic()
        messages = await host.view.wire_messages(found.id)

    assert messages
    assert "987654321" not in str(found) + str(messages)


async def test_the_recorder_is_bounded():
    """Ours: the oldest calls make room, however many there are."""
    events = HostEvents()
    recorder = TrafficRecorder(events, CallingClients(), StoppedAttempts(), Redactor())
    trace = Trace(effect="allow", rule="r")
    with recorder.watch(dict):
        for number in range(MAX_CALLS + 5):
            attempt = Attempt(
                id=f"{number:06}", action="tool.call", principal=f"user:{number}", server="s"
            )
            events.tell(AttemptJudged(attempt=attempt, trace=trace))
            for step in range(3):
                events.tell(AttemptProgressed(id=attempt.id, progress=float(step)))
            if number != 2:
                events.tell(AttemptEnded(id=attempt.id))

    assert recorder.find("000002") is not None  # it still runs
    assert recorder.find("000003") is None
    assert recorder.find("000005") is not None
    assert MAX_QUERY_ROWS == len(recorder.list(TrafficQuery(count=10_000)))
    assert 1 == sum(recorder.count_running().values())
    assert len(recorder.list_principals()) < MAX_CALLS
    assert not events


# Audit


async def test_audit_rows_are_found_page_by_page(host, view):
    """Ours: the newest first, by filters; one by its number; those of a call together."""
    for number in range(3):
        await host.call("calc__add", {"a": number, "b": 2})
    rows = await view.audit_rows(AuditQuery(server="calc", kind="outcome", count=2))
    more = await view.audit_rows(AuditQuery(server="calc", kind="outcome", before=rows[-1].seq))
    one = await view.audit_row(rows[0].seq)
    of_call = await view.call_rows(rows[0].call)

    assert [2, 1] == [len(rows), len(more)]
    assert rows[0].seq > rows[1].seq > more[0].seq
    assert one == rows[0]
    assert ["intent", "outcome"] == [row.kind for row in of_call]
    assert await view.audit_row(10**9) is None
    assert [] == list(await view.call_rows("nothing"))


async def test_the_audit_log_is_verified(host, view):
    """Ours: it says how many rows were looked at, and what to note down."""
    await host.call("calc__add", {"a": 1, "b": 2})
    verdict = await view.verify_audit()

    assert verdict.verdict in {"proved", "unproved"}
    assert verdict.rows
    assert verdict.head
    assert verdict.text


# Policy


async def test_policy_is_shown_tried_and_replayed(host, view):
    """Ours: layers with hits; a dry run that does nothing; what another policy would have said."""
    async with view.watch():
        await host.call("calc__add", {"a": 1, "b": 2})
        layers = await view.policy_layers()
    rows = len(await view.audit_rows())
    answer = await view.try_policy(
        AttemptDraft(server="calc", object="add", arguments={"a": 1, "b": 2})
    )
    report = await view.replay_policy("locked-down")

    assert 1 == sum(rule.hits for layer in layers for rule in layer.rules)
    assert "allow" == answer.effect
    assert answer.rule == answer.matches[0].rule
    assert rows == len(await view.audit_rows())
    assert 1 == report.attempts
    assert [1] == [change.times for change in report.changes]
    with pytest.raises(Unknown):
        await view.try_policy(AttemptDraft(server="nobody", object="add"))


async def test_a_shadow_policy_is_put_in_force(host, view):
    """Ours: with the layers that are not the user's kept, and a row that says who did it."""
    from isthmus.host.policy.policy import Policy

    assert not await view.promote_shadow(by="ada")
    host.core.pipeline.shadow = Policy.named("locked-down")
    assert await view.promote_shadow(by="ada")
    with pytest.raises(Denied):
        await host.call("calc__add", {"a": 1, "b": 2})
    (row,) = await view.audit_rows(AuditQuery(kind="policy"))

    assert ("policy.promote", "ada") == (row.action, row.approver)


# Access and servers


async def test_who_has_called_is_listed(host, view):
    """Ours: with the number of calls."""
    async with view.watch():
        await host.call("calc__add", {"a": 1, "b": 2}, principal="user:ada@local")
        found = await view.principals()

    assert [("user:ada@local", 1)] == [(one.principal, one.calls) for one in found]
    assert [] == list(await view.profiles())
    assert [] == list(await view.accounts("user:ada@local"))


async def test_tools_have_states(host, view):
    """Ours: known once they were listed; of what is not there nothing is said."""
    await host.call("calc__add", {"a": 1, "b": 2})
    found = {one.tool.name: one for one in await view.server_tools("calc")}

    assert "known" == found["add"].state
    assert "calc__add" == found["add"].name
    assert found["add"].fingerprint
    assert not await view.release_tool("calc", "add", by="ada")
    with pytest.raises(Unknown):
        await view.server_tools("nobody")
    with pytest.raises(Unknown):
        await view.release_tool("calc", "nothing")


async def test_an_address_has_no_secret(host, view):
    """Ours: what the doctor needs, and no more."""
    address = await view.server_address("calc")

    assert ("", (), "memory") == (address.url, address.argv, address.transport)
    with pytest.raises(Unknown):
        await view.server_address("nobody")


@pytest.mark.parametrize("way", ["local", "attached"])
async def test_what_changes_something_says_who_did_it(tmp_path, way):
    """Ours: in the audit log."""
    rules = ALLOW_ALL + '[[rule]]\nid = "add"\neffect = "ask"\nwhen = { tool = "add" }\n'
    async with (
        make_console_host(tmp_path / "state", rules) as host,
        view_host(host, way, tmp_path / "state") as view,
    ):
        grant = await give_grant(host, view)
        revoked = await view.revoke(grant.id, by="ada")
        again = await view.revoke(grant.id, by="ada")
        await view.server_do("calc", "stop", by="ada")
        rows = await view.audit_rows()

    assert (True, False) == (revoked, again)
    assert ["ada"] == [row.approver for row in rows if row.action == "grant.revoke"]
    assert "ada" in [row.approver for row in rows if row.action == "server.stop"]


async def give_grant(host, view):
    """Have a call of add allowed for the session: the grant."""
    async with view.attend("test"):
        events = view.events()
        calling = asyncio.ensure_future(host.call("calc__add", {"a": 1, "b": 2}))
        async for event in events:
            if isinstance(event, QuestionAsked):
                said = Decision(verdict="allow", by="ada", remember="session")
                assert await view.decide(event.interaction.id, said)
                break
        await calling
    (grant,) = await view.grants()
    return grant


# Programs


async def test_a_program_operates_nothing(host, tmp_path):
    """Ours: it calls, and neither sees nor changes what an operator does."""
    async with (
        Control(host.view, tmp_path / "state"),
        AttachedHost(tmp_path / "state", part="program", name="p") as view,
    ):
        for ask in (
            view.traffic,
            view.audit_rows,
            view.promote_shadow,
            view.principals,
            view.policy_layers,
            lambda: view.stop_call("x"),
            lambda: view.server_tools("calc"),
        ):
            with pytest.raises(HostError, match="attaches as a surface"):
                await ask()
        with pytest.raises(HostError, match="attaches as a surface"):
            async with view.watch():
                pass


async def test_a_watch_ends_with_its_connection(host, tmp_path):
    """Ours: whoever goes leaves no recorder behind."""
    async with Control(host.view, tmp_path / "state"):
        view = AttachedHost(tmp_path / "state")
        async with view:
            watching = view.watch()
            await watching.__aenter__()
            assert host.traffic.is_recording
        for _ in range(1_000):
            if not host.traffic.is_recording:
                break
            await asyncio.sleep(0)

    assert not host.traffic.is_recording
