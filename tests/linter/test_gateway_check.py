"""The check of gateways: a good one has nothing wrong, and each fault is found, and nothing beside it."""

import pytest

from isthmus.linter.gateway.rules import GATEWAY_RULES
from support.linter import tested_gateways as gateways
from support.linter.tested_gateways import check_gateway, list_rules, make_good_app

# beside the interop tests: its probes wait for what must not happen, a minute in all
pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.interop,
    pytest.mark.xdist_group("gateway-check"),
]

L, M = "2025-11-25", "2026-07-28"

# the faulty gateway, the rules that find the fault, and the revisions of the clients that meet it
FAULTS = [
    (gateways.make_passing_app, {"gateway.passthrough"}, (M,)),
    (gateways.make_shared_app, {"gateway.crossing"}, (L,)),
    (gateways.make_deciding_app, {"gateway.questions"}, (L, M)),
    (
        gateways.make_hanging_app,
        {"gateway.questions", "gateway.at-once", "gateway.undeclared"},
        (L,),
    ),
    (gateways.make_refusing_app, {"gateway.questions-refused"}, (L, M)),
    (gateways.make_wrong_app, {"gateway.calls"}, (M,)),
    (gateways.make_cheerful_app, {"gateway.upstream-refused", "gateway.dead-told"}, (M,)),
    (gateways.make_still_app, {"gateway.list-changed", "gateway.updated"}, (M,)),
    (gateways.make_replaying_app, {"gateway.once", "gateway.replay"}, (M,)),
    (gateways.make_quiet_app, {"gateway.progress"}, (L,)),
    (gateways.make_deaf_app, {"gateway.cancel"}, (M,)),
    (gateways.make_forgetful_app, {"gateway.lists"}, (M,)),
    (gateways.make_brittle_app, {"gateway.dead-hides"}, (L, M)),
    (gateways.make_open_app, {"http.origin", "http.host"}, (L, M)),
    (gateways.make_legacy_app, {"gateway.eras"}, (L, M)),
    (gateways.make_verbatim_app, {"gateway.state-verbatim"}, (M,)),
    (gateways.make_challenging_app, {"gateway.upstream-challenge"}, (M,)),
]

# those that are found where the gateway is started with another configuration
RESTARTED = {
    gateways.make_renaming_app: "gateway.names",
    gateways.make_circling_app: "gateway.loop",
}

# those that are found where two callers show tokens of their own
CALLERS = {"gateway.session-owner", "gateway.state-owner"}


async def test_a_good_gateway_has_nothing_wrong():
    """Ours: in every revision, started with other configurations too, and nothing was left out."""
    report = await check_gateway(make_good_app, restarts=True)

    assert [] == report.findings
    assert [] == report.skipped
    assert [M, L, "2025-06-18", "2025-03-26"] == report.spoken


@pytest.mark.parametrize(
    ("make_app", "rules", "revisions"), FAULTS, ids=[made.__name__ for made, *_ in FAULTS]
)
async def test_a_fault_is_found_and_nothing_beside_it(make_app, rules, revisions):
    """Ours: a gateway with one fault breaks the rules about it, and no others."""
    waits = make_app in {gateways.make_still_app, gateways.make_deaf_app, gateways.make_hanging_app}
    report = await check_gateway(make_app, *revisions, timeout=2.0 if waits else 4.0)

    assert rules == list_rules(report), report.findings


@pytest.mark.parametrize(("make_app", "rule"), RESTARTED.items())
async def test_a_fault_of_another_configuration_is_found(make_app, rule):
    """Ours: a gateway that can be started again is started with one server, and with itself."""
    report = await check_gateway(make_app, M, restarts=True)

    assert {rule} == list_rules(report), report.findings


async def test_what_is_another_callers_is_not_accepted():
    """Ours: with two tokens, a gateway that knows no callers lets each use what the other was given."""
    report = await check_gateway(make_good_app, L, M, tokens=("first-caller-1", "second-caller-2"))

    assert list_rules(report) == CALLERS


async def test_each_finding_says_where_and_how_it_is_mended():
    """Ours: the report is read by whoever writes the gateway."""
    report = await check_gateway(gateways.make_deciding_app, M)
    finding = report.findings[0]

    assert "elicitation by a form, upstream modern" == finding.where
    assert "was answered cancelled" in finding.said
    assert finding.mend


def test_every_rule_is_broken_by_a_gateway():
    """Ours: a rule that no test breaks may find nothing at all."""
    broken = set().union(*(rules for _, rules, _ in FAULTS), RESTARTED.values(), CALLERS)

    assert broken == set(GATEWAY_RULES)
