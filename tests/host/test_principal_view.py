"""View for one principal: what is theirs, and nothing that tells of others."""

import asyncio
from typing import get_args

import pytest
from msgspec import structs

from isthmus import Context, Server
from isthmus.errors import UsageError
from isthmus.host.host import Host
from isthmus.host.model.attempt import Attempt
from isthmus.host.model.entries import Advertise, ServerEntry
from isthmus.host.model.errors import HostError, Unknown
from isthmus.host.model.events import AttemptEnded, QuestionAsked
from isthmus.host.model.interaction import Decision, QuestionTaker, find_lack
from isthmus.host.model.view import AuditQuery, TrafficQuery
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.rule_file import read_layers
from isthmus.host.providers.scripted import Scripted
from isthmus.host.questions.answers import ServerQuestion
from isthmus.host.remote.principal_view import REQUEST_SCOPES, PrincipalView
from isthmus.host.remote.protocol import (
    AskAudit,
    AskCall,
    AskDecide,
    AskExplain,
    AskFree,
    AskGrants,
    AskNarrow,
    AskPrompt,
    AskRead,
    AskRevoke,
    AskTake,
    AskTools,
    HostRequest,
)
from isthmus.host.remote.requests import (
    AskAccounts,
    AskAuditRow,
    AskAuditRows,
    AskCallRecord,
    AskCallRows,
    AskConnect,
    AskForget,
    AskMessages,
    AskRuns,
    AskStopCall,
    AskStopRun,
    AskTraffic,
)
from isthmus.host.sampling.models import Models
from support.host.console_hosts import ALLOW_ALL, make_console_host, view_host, wait_for_call
from support.host.sampling_desk import LARGE, SMALL

pytestmark = pytest.mark.timeout(20)

ADA, BOB = "user:ada@local", "user:bob@local"
ASK_ADD = ALLOW_ALL + '[[rule]]\nid = "add"\neffect = "ask"\nwhen = { tool = "add" }\n'
ASK_SAMPLING = (
    ALLOW_ALL
    + """
[[rule]]
id = "sampling"
effect = "ask"
when = { action = "sampling.request" }
obligations = { review = "none", remember = ["once", "session"] }
"""
)
NO = Decision(verdict="deny", by="somebody")

BY_ID = {
    AskDecide: lambda ids: AskDecide(id=1, question=ids["question"], decision=NO),
    AskTake: lambda ids: AskTake(id=1, question=ids["question"], taker=QuestionTaker("me", "me")),
    AskFree: lambda ids: AskFree(id=1, question=ids["question"], holder="me"),
    AskExplain: lambda ids: AskExplain(id=1, question=ids["question"]),
    AskRevoke: lambda ids: AskRevoke(id=1, grant=ids["grant"]),
    AskNarrow: lambda ids: AskNarrow(id=1, grant=ids["grant"], uses=1),
    AskCallRecord: lambda ids: AskCallRecord(id=1, call=ids["call"]),
    AskMessages: lambda ids: AskMessages(id=1, call=ids["call"]),
    AskStopCall: lambda ids: AskStopCall(id=1, call=ids["call"]),
    AskStopRun: lambda ids: AskStopRun(id=1, run=ids["run"]),
    AskCallRows: lambda ids: AskCallRows(id=1, call=ids["call"]),
    AskAuditRow: lambda ids: AskAuditRow(id=1, seq=ids["row"]),
    AskAccounts: lambda ids: AskAccounts(id=1, principal=ids["principal"]),
    AskForget: lambda ids: AskForget(id=1, server="calc", principal=ids["principal"]),
    AskTraffic: lambda ids: AskTraffic(id=1, query=TrafficQuery(principal=ids["principal"])),
    AskAuditRows: lambda ids: AskAuditRows(id=1, query=AuditQuery(principal=ids["principal"])),
}
"""Requests that name something, which may be another principal's."""

LISTS = {
    AskGrants: AskGrants(id=1), AskRuns: AskRuns(id=1), AskAudit: AskAudit(id=1),
    AskTraffic: AskTraffic(id=1), AskAuditRows: AskAuditRows(id=1), AskAccounts: AskAccounts(id=1),
}  # fmt: skip
"""Requests for everything there is."""

AS_THEMSELVES = {AskTools, AskCall, AskRead, AskPrompt, AskConnect}
"""Requests that are made in the name of whoever makes them."""

OWN = [kind for kind, scope in REQUEST_SCOPES.items() if scope == "own"]
NOTHING = {
    "question": "no",
    "grant": "no",
    "call": "no",
    "run": "no",
    "row": 10**9,
    "principal": "user:no",
}


@pytest.fixture
async def host(tmp_path):
    async with make_console_host(tmp_path / "state", ASK_ADD) as host:
        yield host


@pytest.fixture(params=["local", "attached"])
async def view(request, host, tmp_path):
    async with view_host(host, request.param, tmp_path / "state") as view, view.watch():
        yield view


@pytest.fixture
async def of_bob(host, view):
    """Ids of what is Bob's: a call under way in a run, a grant, a question that waits, a row."""
    run = host.run(BOB)
    async with host.view.attend("test"):
        events = host.view.events()
        first = asyncio.ensure_future(
            host.call("calc__add", {"a": 1, "b": 2}, principal=BOB, run=run)
        )
        asked = await next_question(events)
        yes = Decision(verdict="allow", by="operator", remember="session")
        await host.view.decide(asked.id, yes)
        await first
        hanging = asyncio.ensure_future(host.call("calc__hang", {}, principal=BOB, run=run))
        call = await wait_for_call(view, "sent")
        (grant,) = await host.view.grants()
        await host.view.revoke(grant.id)
        asking = asyncio.ensure_future(
            host.call("calc__add", {"a": 3, "b": 2}, principal=BOB, run=run)
        )
        question = await next_question(events)
        rows = await host.view.audit_rows(AuditQuery(principal=BOB))
        yield {
            "question": question.id, "grant": grant.id, "call": call.id, "run": run.id,
            "row": rows[0].seq, "principal": BOB,
        }  # fmt: skip
        for task in (hanging, asking):
            task.cancel()
        await asyncio.gather(hanging, asking, return_exceptions=True)


async def next_question(events):
    async for event in events:
        if isinstance(event, QuestionAsked):
            return event.interaction
    raise AssertionError("nothing is asked")


async def give(view, request):
    """What comes of a request, or the words of the refusal."""
    try:
        return await view.ask(request, object)
    except HostError as error:
        return type(error).__name__, str(error)


def test_every_request_is_in_the_table():
    """Ours: one that is not is refused, and this says so."""
    assert set(get_args(HostRequest)) == set(REQUEST_SCOPES)
    assert set(OWN) == {*BY_ID, *LISTS, *AS_THEMSELVES}


@pytest.mark.parametrize("kind", BY_ID, ids=lambda kind: kind.__name__)
async def test_what_is_anothers_is_as_what_does_not_exist(view, of_bob, kind):
    """Ours: the same answer, in the same words, and nothing has changed."""
    mine, make = PrincipalView(view, ADA), BY_ID[kind]
    before = [await view.runs(), [one.id for one in view.pending()]]

    assert await give(mine, make(of_bob)) == await give(mine, make(NOTHING))
    assert before == [await view.runs(), [one.id for one in view.pending()]]


@pytest.mark.parametrize("kind", LISTS, ids=lambda kind: kind.__name__)
async def test_lists_have_nothing_of_others(view, of_bob, kind):
    """Ours: neither their names nor their ids."""
    found = str(await give(PrincipalView(view, ADA), LISTS[kind]))

    assert "bob" not in found
    assert of_bob["call"] not in found


@pytest.mark.parametrize(
    "kind",
    [kind for kind, scope in REQUEST_SCOPES.items() if scope == "operator"],
    ids=lambda kind: kind.__name__,
)
async def test_what_is_the_operators_is_refused(host, kind):
    """Ours: in words that say nothing of what there is."""
    fields = {name: "calc" for name in kind.__struct_fields__ if name != "id"}

    with pytest.raises(Unknown, match="there is nothing like that here"):
        await PrincipalView(host.view, ADA).ask(kind(id=1, **fields), object)


async def test_a_principal_has_what_is_theirs(view, of_bob, host):
    """Ours: their question, which they answer in their own name; their call, its rows and messages."""
    del of_bob
    mine = PrincipalView(view, ADA)
    events = aiter(mine.events())
    heard = asyncio.ensure_future(anext(events))
    await asyncio.sleep(0)
    calling = asyncio.ensure_future(mine.call("calc__add", {"a": 5, "b": 2}))
    judged = await heard
    await wait_for_call(mine, "question", "add")
    (asked,) = mine.pending()
    assert await mine.explain(asked.id)
    assert await mine.decide(asked.id, Decision(verdict="allow", by="bob", principal=BOB))
    assert "7" == (await calling).text
    (found,) = await mine.traffic()
    rows = await mine.call_rows(found.id)
    seen = [judged]
    while not isinstance(seen[-1], AttemptEnded):
        seen.append(await anext(events))

    assert ADA == found.principal
    assert await mine.wire_messages(found.id)
    assert ADA in [row.approver for row in rows]
    assert {ADA} == {row.principal for row in await mine.audit_rows()}
    assert "bob" not in str(seen)
    assert [] == list(mine.servers())
    with pytest.raises(Unknown, match="there is no run"):
        await mine.call("calc__add", {"a": 5, "b": 2}, run=host.run(BOB).id)
    with pytest.raises(Unknown):
        mine.attend("x")
    with pytest.raises(Unknown):
        mine.watch()


async def test_a_view_of_nobody_is_refused(tmp_path):
    """Ours: an empty principal would be everybody to requests."""
    async with make_console_host(tmp_path / "state") as host:
        with pytest.raises(UsageError):
            PrincipalView(host.view, "")


# Questions of servers


ANSWER = Decision(verdict="allow", by="x", edited={"row": 4})


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("way", ["local", "attached"])
async def test_what_a_server_asks_in_a_call_is_for_its_user(tmp_path, era, way):
    """Ours: who called sees the question and may answer it; others see nothing of it."""
    state = tmp_path / "state"
    async with (
        make_console_host(state, era=era) as host,
        host.view.attend("test"),
        view_host(host, way, state) as view,
        view.watch(),
    ):
        ada, bob = PrincipalView(view, ADA), PrincipalView(view, BOB)
        events = aiter(ada.events())
        heard_by_bob = asyncio.ensure_future(anext(aiter(bob.events())))
        calling = asyncio.ensure_future(host.call("calc__book", {}, principal=ADA))
        asked = await next_question(events)
        (waiting,) = ada.pending()
        (recorded,) = await ada.traffic(TrafficQuery(text="Which seat"))

        assert ("server:calc", ADA) == (asked.attempt.principal, asked.attempt.owner)
        assert asked.id == waiting.id
        assert recorded == await ada.call_record(recorded.id)
        assert [] == list(bob.pending()) + list(await bob.traffic())
        assert await bob.call_record(recorded.id) is None
        assert [] == list(await bob.explain(asked.id))
        assert not await bob.decide(asked.id, ANSWER)
        assert await ada.decide(asked.id, ANSWER)
        assert "row 4" == (await calling).text
        assert ADA in [row.approver for row in await ada.call_rows(asked.attempt.id)]
        assert [] == list(await bob.call_rows(asked.attempt.id))
        assert not heard_by_bob.done()
        heard_by_bob.cancel()


async def test_a_question_that_may_be_of_several_users_is_of_none(tmp_path):
    """Ours: two users call on one connection, and nothing says for whom the server asks."""
    async with (
        make_console_host(tmp_path / "state", era="legacy") as host,
        host.view.attend("test"),
        host.view.watch(),
    ):
        events = host.view.events()
        hanging = asyncio.ensure_future(host.call("calc__hang", {}, principal=BOB))
        await wait_for_call(host.view, "sent")
        calling = asyncio.ensure_future(host.call("calc__book", {}, principal=ADA))
        asked = await next_question(events)

        assert "" == asked.attempt.user
        assert [] == [
            *PrincipalView(host.view, ADA).pending(),
            *PrincipalView(host.view, BOB).pending(),
        ]
        for task in (hanging, calling):
            task.cancel()
        await asyncio.gather(hanging, calling, return_exceptions=True)


def test_a_user_is_no_second_person_to_what_their_call_brings_about():
    """Ours: a rule that wants a second person means one who has not made the call."""
    asked = ServerQuestion(
        entry=ServerEntry(name="calc"),
        parent=Attempt(id="1", action="tool.call", principal=ADA, server="calc"),
    ).attempt("sampling.request")
    yes = Decision(verdict="allow", by="ada", principal=ADA, assurance="second_person")

    assert find_lack(yes, "second_person", asked.owner)
    assert not find_lack(structs.replace(yes, principal=BOB), "second_person", asked.owner)


async def test_a_user_says_nothing_that_lasts_for_a_server():
    """Ours: what a server is granted would hold in the calls of others, too."""
    server = Server("notes")

    @server.tool
    async def summary(ctx: Context) -> str:
        """A summary."""
        return (await ctx.sample("Sum up", max_tokens=50)).text

    policy, models = Policy(read_layers(ASK_SAMPLING, "user")), Models([SMALL, LARGE])
    host = Host(policy=policy, models=models, providers={"scripted": Scripted("short")})
    host.add("notes", server, advertise=Advertise(sampling=True))
    async with host, host.view.attend("test"):
        ada, events = PrincipalView(host.view, ADA), host.view.events()
        calling = asyncio.ensure_future(host.call("notes__summary", {}, principal=ADA))
        asked = await next_question(events)
        yes = Decision(verdict="allow", by="ada", remember="session")

        assert "session" in asked.trace.obligations.remember
        assert await ada.decide(asked.id, yes)
        assert "short" == (await calling).text
        assert [] == list(await host.view.grants())
