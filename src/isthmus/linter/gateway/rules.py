"""Rules about gateways: what must hold between the clients before one and the servers behind it."""

from collections.abc import Iterable, Iterator

from isthmus.linter.gateway.visit import GatewayVisit, ProbeState
from isthmus.linter.rules.catalog import RULES
from isthmus.linter.rules.rule import Finding, LintRule, RuleCheck, Violation, make_finding

TOKENS_CLAUSE = (
    "2026-07-28 basic/authorization/security-considerations#access-token-privilege-restriction"
)
SECURITY_CLAUSE = "2025-11-25 basic/security_best_practices#session-hijacking"
STATE_CLAUSE = "2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow"
BAD_STATES: tuple[ProbeState, ...] = ("wrong", "silent", "lost")
FAILED_STATES: tuple[ProbeState, ...] = ("refused", *BAD_STATES)

# Judged by the rules about servers over HTTP
SERVER_RULES = ("http.origin", "http.host")

OFFER_PROBES = (
    "tools/call",
    "resources/read",
    "resources/read of a template",
    "prompts/get",
    "completion/complete",
)


def find_outcomes(*probes: str, states: Iterable[ProbeState] = FAILED_STATES) -> RuleCheck:
    """The check that some probes did not end in some states."""
    wanted, bad = frozenset(probes), frozenset(states)

    def check(visit: GatewayVisit) -> Iterator[Violation]:
        for outcome in visit.outcomes:
            if outcome.probe in wanted and outcome.state in bad:
                yield outcome.as_violation()

    return check


GATEWAY_RULES: dict[str, LintRule] = {
    rule.id: rule
    for rule in (
        LintRule(
            "gateway.passthrough",
            "error",
            TOKENS_CLAUSE,
            "Credentials that a client shows the gateway reach no server behind it.",
            "Build the headers of each upstream request anew; give each upstream credentials of its own.",
            find_outcomes("passthrough"),
        ),
        LintRule(
            "gateway.crossing",
            "error",
            SECURITY_CLAUSE,
            "Answers, questions, progress and logs of one client's call reach no other client.",
            "Tie each upstream connection that asks or notifies to one call or session at a time.",
            find_outcomes("crossing"),
        ),
        LintRule(
            "gateway.at-once",
            "error",
            "ours",
            "Two clients that call at once are both answered.",
            "Answer the second call, or refuse it clearly, while the first waits for its client.",
            find_outcomes("crossing-silent", states=BAD_STATES),
        ),
        LintRule(
            "gateway.session-owner",
            "error",
            SECURITY_CLAUSE,
            "A session belongs to the caller that opened it: another caller's token does not use it.",
            "Keep the owner beside the session id, and answer others as if there were no such session.",
            find_outcomes("session-owner"),
        ),
        LintRule(
            "gateway.eras",
            "warning",
            "ours",
            "A gateway speaks to clients of both eras: by initialize, and by 2026-07-28.",
            "Answer initialize and server/discover at one address.",
            find_outcomes("era"),
        ),
        LintRule(
            "gateway.lists",
            "error",
            "ours",
            "The lists have the items of every upstream, whatever revisions client and upstream speak.",
            "List each upstream in its own revision, and fail loudly rather than leave one out.",
            find_outcomes("list"),
        ),
        LintRule(
            "gateway.calls",
            "error",
            "ours",
            "Calls, reads, prompts and completion that work at the upstream work through the gateway.",
            "Make the request at the upstream in the upstream's revision, and map names both ways.",
            find_outcomes(*OFFER_PROBES),
        ),
        LintRule(
            "gateway.once",
            "error",
            "ours",
            "A call is dispatched to its upstream once.",
            "Do not send a call again by yourself: the upstream may have done it.",
            find_outcomes("once"),
        ),
        LintRule(
            "gateway.questions",
            "error",
            "ours",
            "A question of an upstream reaches the client whose call it is, and the client's answer comes back.",
            "Pass questions on in the client's revision, or refuse the call and say which capability is missing.",
            find_outcomes("question", states=BAD_STATES),
        ),
        LintRule(
            "gateway.questions-refused",
            "note",
            "ours",
            "Calls that ask the client are worth more when its answers are carried over.",
            "Pass the question on; a clear refusal, as here, breaks nothing.",
            find_outcomes("question", states=("refused",)),
        ),
        LintRule(
            "gateway.undeclared",
            "error",
            "2025-11-25 basic/lifecycle#operation",
            "A call that asks a client which declared nothing ends at once, by an error.",
            "Declare to the upstream only what the client declared, or refuse the question.",
            find_outcomes("undeclared", states=("silent", "lost")),
        ),
        LintRule(
            "gateway.state-verbatim",
            "warning",
            STATE_CLAUSE,
            "requestState is the gateway's own: an upstream that sees one caller cannot tell callers apart.",
            "Seal the upstream's state together with its caller, server, method and arguments.",
            find_outcomes("state-verbatim"),
            since="2026-07-28",
        ),
        LintRule(
            "gateway.state-owner",
            "error",
            STATE_CLAUSE,
            "requestState of one caller is not accepted from another.",
            "Bind the state to its caller, and refuse it as if it were unknown.",
            find_outcomes("state-owner"),
            since="2026-07-28",
        ),
        LintRule(
            "gateway.replay",
            "error",
            "ours",
            "An answer that is shown twice does not run the call at an upstream of up to 2025-11-25 twice.",
            "Keep the upstream call while its client answers, and take each answer once.",
            find_outcomes("replay"),
            since="2026-07-28",
        ),
        LintRule(
            "gateway.progress",
            "warning",
            "2025-11-25 basic/utilities/progress",
            "Progress of an upstream's call reaches the client that asked for it.",
            "Ask the upstream for progress where the client did, and pass it on.",
            find_outcomes("progress"),
        ),
        LintRule(
            "gateway.cancel",
            "warning",
            "2025-11-25 basic/utilities/cancellation",
            "A call that its client cancels is cancelled at the upstream.",
            "Send notifications/cancelled, or close the request's stream, at the upstream.",
            find_outcomes("cancel"),
        ),
        LintRule(
            "gateway.list-changed",
            "warning",
            "2025-11-25 server/tools#list-changed-notification",
            "A change of an upstream's list is told to the clients.",
            "Listen at each upstream, and tell list_changed; or do not declare listChanged.",
            find_outcomes("list_changed"),
        ),
        LintRule(
            "gateway.updated",
            "warning",
            "2025-11-25 server/resources#subscriptions",
            "A change of a resource is told to the client that subscribed to it.",
            "Subscribe at the upstream; or do not declare subscribe.",
            find_outcomes("updated"),
        ),
        LintRule(
            "gateway.upstream-refused",
            "error",
            "ours",
            "HTTP errors of an upstream become an error of that call.",
            "Answer by an error or isError that names the upstream.",
            find_outcomes("upstream-status", states=BAD_STATES),
        ),
        LintRule(
            "gateway.upstream-challenge",
            "error",
            TOKENS_CLAUSE,
            "A 401 of an upstream does not become the gateway's own: the client would log in again at the gateway.",
            "Answer by an error of the call, or by a question to connect the account.",
            find_outcomes("upstream-challenge", states=BAD_STATES),
        ),
        LintRule(
            "gateway.dead-hides",
            "error",
            "ours",
            "An upstream that is gone hides nothing of the others.",
            "Leave out what cannot be reached, and answer for the rest in bounded time.",
            find_outcomes("dead-hides"),
        ),
        LintRule(
            "gateway.dead-told",
            "error",
            "ours",
            "A call of an upstream that is gone ends by an error, in bounded time.",
            "Bound connecting to an upstream, and say which one cannot be reached.",
            find_outcomes("dead-told", states=("silent", "wrong")),
        ),
        LintRule(
            "gateway.names",
            "warning",
            "ours",
            "Names of tools and prompts stay the same when a server is added.",
            "Put the server's name before each, also while there is one server only.",
            find_outcomes("names"),
        ),
        LintRule(
            "gateway.loop",
            "error",
            "ours",
            "A gateway that has itself behind it ends each request, in bounded time and with bounded work.",
            "Count the gateways that a request came through, and refuse it at a few.",
            find_outcomes("loop", states=("silent", "wrong")),
        ),
        *(RULES[id] for id in SERVER_RULES),
    )
}


def judge_gateway(visit: GatewayVisit, wanted: Iterable[str]) -> Iterator[Finding]:
    """Find what is wrong with a gateway, as clients of one revision saw it."""
    chosen = frozenset(wanted)
    for rule in GATEWAY_RULES.values():
        if rule.id in chosen and rule.id not in SERVER_RULES and rule.holds_in(visit.revision):
            for fault in rule.check(visit):
                yield make_finding(rule, visit.revision, fault)
