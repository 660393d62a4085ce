"""What servers ask of a host, by each of the three routes, in every revision."""

import asyncio

import pytest
from msgspec import UNSET, Raw, Struct

from isthmus import Accepted, Context, Server, ToolError
from isthmus.errors import IsthmusError, Misbehaved, Refused, UrlRequired
from isthmus.host import Decision, Host, UserDeclined
from isthmus.host.model.entries import Advertise, HostConfig, HostOptions, RootEntry, Timeouts
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.rule_file import read_layers
from isthmus.host.providers.scripted import Scripted
from isthmus.host.sampling.models import Models
from isthmus.revisions import BY_NAME, LEGACY, Feature
from isthmus.testing import VirtualLoop, every_revision
from isthmus.wire import CreateMessageParams, ElicitParams, InputRequest, InputRequiredResult
from isthmus.wire.jsonrpc import encode
from support.client.small_server import SmallServer, any_tool, text_result

CALLS = '[[rule]]\nid = "calls"\neffect = "allow"\nwhen = { action = "tool.call" }\n'
TASKS = ("2025-11-25", "2026-07-28")
MODELS = '[[model]]\nid = "m"\nprovider = "p"\ncontext = 8000\n'


class Seat(Struct):
    row: int


def shop(revision):
    """A server that asks in the course of its calls, and what it heard."""
    server = Server("shop", revisions=[revision])
    server.heard = []

    @server.tool
    async def seat(ctx: Context) -> str:
        """Ask which seat."""
        answer = await ctx.elicit("Which?", Seat)
        if not isinstance(answer, Accepted):
            return type(answer).__name__
        return f"row {answer.value.row}"

    @server.tool
    async def write(ctx: Context) -> str:
        """Have a model write."""
        try:
            reply = await ctx.sample("Write", max_tokens=5)
        except Refused as error:
            server.heard.append(error.code)
            raise ToolError(f"refused: {error.code}") from error
        return reply.text

    @server.tool
    async def where(ctx: Context) -> str:
        """Ask where to work."""
        return ", ".join(root.uri for root in await ctx.roots())

    return server


def make_host(server, person, *, roots=(), **options):
    """A host that allows calls, and asks about everything else."""
    host = Host(
        HostConfig(options=HostOptions(roots=tuple(roots))),
        approver=person,
        policy=Policy.of(read_layers(CALLS, "user")),
        models=Models.parse(MODELS),
        providers={"p": Scripted(["Well."])},
    )
    host.add("shop", server, **{"advertise": Advertise(sampling=True), **options})
    return host


def route(revision):
    """By which route a question comes."""
    return "request" if BY_NAME[revision] in LEGACY else "result"


@every_revision(Feature.ELICITATION_FORM)
@pytest.mark.covers("hostkernel.asked.routes")
async def test_a_form_is_one_question_whichever_way_it_came(revision):
    """Ours: a person sees the same, and it belongs to the call in whose course it was asked."""
    asked = []

    async def person(interaction):
        asked.append(interaction.attempt)
        return Decision(verdict="allow", edited={"row": 3})

    async with make_host(shop(revision), person) as host:
        with host.run() as run:
            result = await host.call("shop__seat", run=run)
        rows = await host.view.audit_tail(50)

    (call,) = {row.call for row in rows if row.action == "tool.call"}
    assert "row 3" == result.text
    assert [("elicit.form", "server:shop", call, run.id, route(revision))] == [
        (one.action, one.principal, one.parent, one.run, one.origin) for one in asked
    ]


@every_revision(Feature.ELICITATION_FORM)
@pytest.mark.parametrize(("verdict", "heard"), [("deny", "Declined"), ("cancel", "Cancelled")])
async def test_a_no_to_a_form_is_an_answer_that_the_server_hears(revision, verdict, heard):
    """Spec 2026-07-28 client/elicitation#response-actions: decline and cancel are answers."""

    async def person(_interaction):
        return Decision(verdict=verdict)

    async with make_host(shop(revision), person) as host:
        assert heard == (await host.call("shop__seat")).text


@every_revision
@pytest.mark.covers("hostkernel.asked.sampling")
async def test_a_model_writes_when_a_person_says_so(revision):
    """Ours: the request is looked at, and so is what was written."""
    asked = []

    async def person(interaction):
        asked.append(interaction.attempt.action)
        return True

    async with make_host(shop(revision), person) as host:
        result = await host.call("shop__write")

    assert "Well." == result.text
    assert ["sampling.request", "sampling.respond"] == asked


@every_revision
@pytest.mark.covers("hostkernel.asked.sampling-refused")
async def test_a_no_to_sampling_is_an_error_for_the_server_or_ends_the_call(revision):
    """Spec 2025-11-25 client/sampling#error-handling: -1; since 2026-07-28 there is no such answer."""
    server = shop(revision)
    async with make_host(server, lambda _interaction: False) as host:
        if route(revision) == "request":
            result = await host.call("shop__write")
            assert [-1] == server.heard
            assert result.is_error
        else:
            with pytest.raises(UserDeclined, match="declined"):
                await host.call("shop__write")
            assert [] == server.heard


@every_revision
async def test_roots_are_told_when_a_person_has_granted_them(revision, tmp_path):
    """Ours: no folder is known to a server that nobody granted it."""
    asked = []

    def person(interaction):
        asked.append(interaction.attempt.action)
        return True

    roots = [RootEntry(path=str(tmp_path))]
    async with make_host(shop(revision), person, roots=roots) as host:
        result = await host.call("shop__where")

    assert tmp_path.as_uri() == result.text
    assert ["roots.expose"] == asked


@every_revision
@pytest.mark.covers("hostkernel.strikes")
async def test_who_asks_what_was_not_offered_is_refused_and_it_is_written_down(revision):
    """Ours: -32601 or -32602 where somebody waits for an answer, and a strike in either case."""
    offered, heard = Advertise(sampling=False), []
    question = CreateMessageParams(messages=[], max_tokens=1)

    async def call(_params, inbound):
        if route(revision) == "result":
            wanted = InputRequest(method="sampling/createMessage", params=Raw(encode(question)))
            return InputRequiredResult(input_requests={"q": wanted}, request_state="s")
        try:
            await inbound.link.call("sampling/createMessage", question, Raw)
        except Refused as error:
            heard.append(error.code)
        return text_result("asked")

    pushy = SmallServer({"tools/call": call}, tools=[any_tool()], revisions=[revision])
    async with make_host(pushy, lambda _: True, advertise=offered) as host:
        if route(revision) == "request":
            await host.call("shop__add")
            assert [-32601] == heard
        else:
            with pytest.raises(Misbehaved):
                await host.call("shop__add")
        rows = await host.view.audit_tail(50)
        (status,) = host.view.servers()

    assert ["sampling/createMessage"] == [row.object for row in rows if row.error == "undeclared"]
    assert 1 == status.strikes


@every_revision(Feature.ELICITATION_FORM)
@pytest.mark.covers("hostkernel.clocks")
def test_no_call_times_out_while_a_person_thinks(revision):
    """Ours: two hours of thinking, and a call that may take a minute, and no more in all."""
    patient = Timeouts(call=60.0, total=60.0, interaction=3 * 3600.0)
    form = ElicitParams(
        message="Which?",
        requested_schema={"type": "object", "properties": {"row": {"type": "integer"}}},
    )

    async def call(call, inbound):
        if route(revision) == "request":
            await inbound.link.call("elicitation/create", form, Raw, timeout=9 * 3600.0)
        elif call.input_responses is UNSET:
            wanted = InputRequest(method="elicitation/create", params=Raw(encode(form)))
            return InputRequiredResult(input_requests={"q": wanted}, request_state="s")
        return text_result("row 3")

    server = SmallServer({"tools/call": call}, tools=[any_tool()], revisions=[revision])

    async def person(_interaction):
        await asyncio.sleep(2 * 3600.0)
        return Decision(verdict="allow", edited={"row": 3})

    async def scene():
        async with make_host(server, person, timeouts=patient) as host:
            return (await host.call("shop__add")).text

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        assert "row 3" == runner.run(scene())


@every_revision(Feature.ELICITATION_URL)
@pytest.mark.covers("hostkernel.asked.page-needed", "hostterminal.elicitation.page-consent")
@pytest.mark.parametrize("agrees", [True, False])
async def test_a_page_that_a_call_needs_first_is_shown_and_nothing_fetches_it(revision, agrees):
    """Spec 2025-11-25 client/elicitation#safe-url-handling: no request before the user agrees."""
    fetched, opened, asked = [], [], []
    server = Server("shop", revisions=[revision])

    async def fetch(_reader, writer):
        fetched.append(list(opened))
        writer.close()

    @server.tool
    async def pay() -> str:
        """Pay at a page."""
        if not opened:
            raise UrlRequired((page, "Pay at your bank."))
        return "paid"

    def visit(url):
        opened.append(url)
        if route(revision) == "request":
            server.notify_elicitation_complete(asked[-1].payload.params.elicitation_id)
        return True

    def person(interaction):
        asked.append(interaction)
        return agrees

    async with await asyncio.start_server(fetch, "127.0.0.1", 0) as listening:
        page = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/pay"
        host = Host(approver=person, policy=Policy.of(read_layers(CALLS, "user")), opener=visit)
        host.add("shop", server)
        async with host:
            if agrees:
                assert "paid" == (await host.call("shop__pay")).text
            else:
                with pytest.raises(IsthmusError):
                    await host.call("shop__pay")

    assert (page, "127.0.0.1") == (asked[0].payload.params.url, asked[0].payload.host)
    assert ([page] if agrees else [], []) == (opened, fetched)
    assert {"elicit.url"} == {one.attempt.action for one in asked}
    assert 1 == len({one.attempt.parent for one in asked})


def workshop(revision):
    """A server whose tool is a task, and asks a form in its course."""
    server = Server("shop", revisions=[revision])

    @server.tool(task="required")
    async def seat(ctx: Context) -> str:
        """Ask which seat."""
        answer = await ctx.elicit("Which?", Seat)
        if not isinstance(answer, Accepted):
            return type(answer).__name__
        return f"row {answer.value.row}"

    @server.tool(task="required")
    async def write(ctx: Context) -> str:
        """Have a model write."""
        return (await ctx.sample("Write", max_tokens=5)).text

    return server


@pytest.mark.parametrize("revision", TASKS)
@pytest.mark.covers("hostkernel.asked.routes", "hostkernel.asked.sampling")
async def test_a_model_writes_for_a_task_as_for_any_other_call(revision):
    """Ours: the request and the answer are looked at, and belong to the call that became a task."""
    asked = []

    def person(interaction):
        asked.append(interaction.attempt)
        return True

    async with make_host(workshop(revision), person) as host:
        assert "Well." == (await host.call("shop__write")).text
        rows = await host.view.audit_tail(50)

    (call,) = {row.call for row in rows if row.action == "tool.call"}
    assert [("sampling.request", call, "task"), ("sampling.respond", "task")] == [
        (asked[0].action, asked[0].parent, asked[0].origin),
        (asked[1].action, asked[1].origin),
    ]


@pytest.mark.parametrize("revision", TASKS)
@pytest.mark.covers("hostkernel.asked.routes")
@pytest.mark.parametrize(
    ("verdict", "heard"), [("allow", "row 3"), ("deny", "Declined"), ("cancel", "Cancelled")]
)
async def test_the_three_answers_reach_a_task_as_they_are(revision, verdict, heard):
    """Spec 2026-07-28 client/elicitation#response-actions: by the third way as by the others."""
    asked = []

    async def person(interaction):
        asked.append(interaction.attempt)
        return Decision(verdict=verdict, edited={"row": 3} if verdict == "allow" else UNSET)

    async with make_host(workshop(revision), person) as host:
        assert heard == (await host.call("shop__seat")).text
        rows = await host.view.audit_tail(50)

    (call,) = {row.call for row in rows if row.action == "tool.call"}
    assert [("elicit.form", call, "task")] == [(o.action, o.parent, o.origin) for o in asked]
