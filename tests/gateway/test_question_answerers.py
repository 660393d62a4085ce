"""Answerers of questions: the calling client, the gateway's own surfaces, or a refusal that names both."""

import pytest

from isthmus.client import Client
from isthmus.errors import Refused
from isthmus.gateway import Gateway
from isthmus.host.model.entries import Advertise
from isthmus.host.model.gateway_options import GatewayOptions
from isthmus.host.model.interaction import Decision
from isthmus.wire import ClientCapabilities, ElicitationCapability
from support.gateway.asking_shop import WITH_FORMS, Answers, connect, make_asker, make_host
from support.gateway.line_server import make_command
from support.gateway.small_gateway import ALLOW_ALL, REVISION_NAMES, make_allowing_host

LEGACY, MODERN = "2025-11-25", "2026-07-28"
ONE_OF_EACH = pytest.mark.parametrize(
    ("client", "server"), [(one, other) for one in (LEGACY, MODERN) for other in (LEGACY, MODERN)]
)


async def fill_in(asked):
    """A person at the gateway."""
    return Decision(verdict="allow", by="operator", edited={"value": "gateway"})


@pytest.mark.parametrize("client", REVISION_NAMES)
@pytest.mark.parametrize("server", WITH_FORMS)
async def test_the_gateway_answers_for_a_client_that_cannot(client, server):
    """Ours: a person there fills the form in."""
    async with connect(client, server, host={"approver": fill_in}) as (user, _):
        assert "shoe: gateway" == (await user.call_tool("shop__order", {"item": "shoe"})).text


@ONE_OF_EACH
async def test_the_gateway_may_be_the_first_to_answer(client, server):
    """Ours: host.gateway.answer."""
    ann = Answers()
    first = GatewayOptions(answer=("gateway", "client"))
    async with connect(client, server, options=first, host={"approver": fill_in}, **ann.all) as (
        user,
        _,
    ):
        assert "shoe: gateway" == (await user.call_tool("shop__order", {"item": "shoe"})).text

    assert [] == ann.asked


@ONE_OF_EACH
async def test_the_gateway_may_be_the_only_one_to_answer(client, server):
    """Ours: a client is then not even declared as one that can be asked."""
    ann, only = Answers(), GatewayOptions(answer=("gateway",))
    async with connect(client, server, options=only, **ann.all) as (user, _):
        said = await call(user, "shop__order", {"item": "shoe"})

    assert "elicitation" in said
    assert [] == ann.asked


async def call(user, tool, arguments):
    """Call a tool: its text, or the words of the error."""
    try:
        return (await user.call_tool(tool, arguments)).text
    except Refused as error:
        return f"{error.code} {error.message} {error.data}"


@ONE_OF_EACH
@pytest.mark.parametrize("pages", [False, True])
@pytest.mark.parametrize(
    ("asking", "capability"),
    [
        (("shop__order", {"item": "shoe"}), "elicitation"),
        (("shop__pay", {}), "elicitation"),
        (("shop__think", {"about": "it"}), "sampling"),
        (("shop__look", {}), "roots"),
    ],
)
async def test_what_nobody_can_answer_is_refused_by_its_capability(
    client, server, asking, capability, pages
):
    """Spec 2026-07-28 basic#_meta: -32021 with the capability; up to 2025-11-25 the server says so.

    Pages of approvals take a yes or a no, and nothing that a server asks for.
    """
    async with connect(client, server, pages=pages) as (user, _):
        said = await call(user, *asking)

    assert capability in said
    if server == MODERN:
        assert said.startswith("-32021")
        assert f"'requiredCapabilities': {{'{capability}'" in said


async def test_each_call_declares_what_its_own_client_can_answer():
    """Ours: on one connection to a server since 2026-07-28, for two clients that differ."""
    gateway = Gateway(make_host(ALLOW_ALL, ("shop", make_asker(MODERN), {})))
    async with (
        gateway,
        Client(gateway.server, **Answers("ann").all) as ann,
        Client(gateway.server) as bob,
    ):
        assert "shoe: ann" == await call(ann, "shop__order", {"item": "shoe"})
        assert (await call(bob, "shop__order", {"item": "shoe"})).startswith("-32021")
        assert "shoe: ann" == await call(ann, "shop__order", {"item": "shoe"})


@ONE_OF_EACH
async def test_an_entry_may_keep_the_models_of_clients_back(client, server):
    """Ours: host.advertise.sampling = false."""
    entry = {"advertise": Advertise(sampling=False)}
    gateway = Gateway(make_host(ALLOW_ALL, ("shop", make_asker(server), entry)))
    ann = Answers()
    async with gateway, Client(gateway.server, revision=client, **ann.all) as user:
        assert "sampling" in await call(user, "shop__think", {"about": "it"})

    assert [] == ann.asked


DENY_FORMS = """
[[rule]]
id = "no-forms"
effect = "deny"
when = { action = "elicit.form" }
reason = "no forms here"

[[rule]]
id = "everything"
effect = "allow"
when = { action = "tool.call" }
"""


@ONE_OF_EACH
async def test_policy_comes_before_the_client(client, server):
    """Ours: a question that a rule denies is declined, and the client hears nothing of it."""
    ann = Answers()
    async with connect(client, server, policy=DENY_FORMS, **ann.all) as (user, _):
        assert "shoe: declined" == await call(user, "shop__order", {"item": "shoe"})

    assert [] == ann.asked


ASK = """
[[rule]]
id = "calls"
effect = "allow"
when = {{ action = "tool.call" }}

[[rule]]
id = "forms"
effect = "ask"
when = {{ action = ["elicit.*", "sampling.*", "roots.*"] }}
{more}
"""


@ONE_OF_EACH
async def test_a_rule_that_asks_is_content_with_the_user_of_the_client(client, server):
    """Ours: nobody else is asked whether they may be asked, and nobody has to be there for it."""
    async with connect(client, server, policy=ASK.format(more=""), **Answers().all) as (user, _):
        assert "shoe: ann" == await call(user, "shop__order", {"item": "shoe"})
        assert "written by ann" == await call(user, "shop__think", {"about": "it"})
        assert "file:///home/ann" == await call(user, "shop__look", {})


@ONE_OF_EACH
async def test_a_rule_may_demand_more_assurance_than_a_client_gives(client, server):
    """Ours: a form is then filled in at the gateway, or not at all."""
    rule = ASK.format(more='obligations = { assurance = "local_ui" }')
    ann = Answers()
    async with connect(client, server, policy=rule, **ann.all) as (user, _):
        assert "shoe: declined" == await call(user, "shop__order", {"item": "shoe"})

    assert [] == ann.asked


@ONE_OF_EACH
async def test_pages_of_approvals_are_no_surface_on_which_a_form_is_filled_in(client, server):
    """Ours: a client that opens no pages is refused one, and where a rule wants more, a form is declined at once."""
    modes = ClientCapabilities(elicitation=ElicitationCapability(form={}))
    rule = ASK.format(more='obligations = { assurance = "local_ui" }')
    forms = {"elicit": Answers().elicit, "capabilities": modes}
    async with connect(client, server, pages=True, **forms) as (user, _):
        assert "shoe: ann" == await call(user, "shop__order", {"item": "shoe"})
        assert "elicitation.url" in await call(user, "shop__pay", {})
    async with connect(client, server, pages=True, policy=rule, **Answers().all) as (user, gateway):
        assert "shoe: cancelled" == await call(user, "shop__order", {"item": "shoe"})
        assert [] == gateway.host.view.pending()


@ONE_OF_EACH
async def test_questions_leave_rows_in_the_audit_log(client, server):
    """Ours: with the server, the call, and that the client answered."""
    async with connect(client, server, **Answers().all) as (user, gateway):
        await call(user, "shop__order", {"item": "shoe"})
        rows = await gateway.host.view.audit_tail()

    asked = [row for row in rows if row.action == "elicit.form" and row.kind == "outcome"]
    calls = [row for row in rows if row.action == "tool.call"]
    relays = client == server == "2026-07-28"
    action = "relayed" if relays else "accept"
    assert [("server:shop", {"action": action, "by": "client"})] == [
        (row.principal, row.detail) for row in asked
    ]
    assert asked[0].parent == calls[0].call
    answered = [row.detail["answered"] for row in calls if "answered" in (row.detail or {})]
    assert [{"q1": "accept"}] * relays == answered


async def test_folders_asked_for_outside_of_a_call_are_refused_and_not_none(tmp_path):
    """Ours: "no folders" would be kept for calls of clients that have some (npm server-everything)."""
    log, host = tmp_path / "answers", make_allowing_host()
    host.add("lines", make_command(log, "early"))
    async with Gateway(host) as gateway, Client(gateway.server, roots=[str(tmp_path)]) as user:
        assert await user.list_tools()

    answer = log.read_text(encoding="utf-8").splitlines()[-1]
    assert '"code":-32603' in answer
    assert "outside of a call" in answer
