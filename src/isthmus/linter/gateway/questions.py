"""Probes of questions: forms, pages, sampling and roots, in each pairing of eras."""

from isthmus.linter.gateway.caller import (
    CallerIdentity,
    ProbeCaller,
    attempt,
    attempt_call,
    make_token,
)
from isthmus.linter.gateway.offers import OfferedNames
from isthmus.linter.gateway.upstream import ProbeUpstream
from isthmus.linter.gateway.visit import GatewayVisit, ProbeState

QUESTION_KINDS = {
    "form": "elicitation by a form",
    "page": "elicitation by a URL",
    "sample": "sampling",
    "roots": "roots",
}
SHORT_TIMEOUT_S = (
    1.5  # once a question was not answered in time, for the others of the same upstream
)


async def probe_questions(
    caller: ProbeCaller, visit: GatewayVisit, names: OfferedNames, upstream: ProbeUpstream
) -> None:
    """Have an upstream ask every kind of question, of a client that answers them all."""
    timeout = caller.timeout
    for kind, title in QUESTION_KINDS.items():
        token, before = make_token("asks"), len(caller.asked)
        tool = names.find_tool(kind, upstream)
        if tool is None:
            continue
        text, state, said = await attempt_call(caller, tool, {"token": token}, timeout)
        expected = "accepted" if kind == "page" else caller.answer
        if state == "ok" and expected not in text:
            state, said = "wrong", _describe_wrong(text, reached=len(caller.asked) > before)
        visit.note("question", f"{title}, upstream {upstream.name}", state, said)
        times = upstream.begun[token]
        if times > 1 and upstream.name == "legacy":  # where each beginning is a dispatch
            visit.note("once", f"{title}, upstream {upstream.name}", "wrong", _count_times(times))
        if state == "silent":
            timeout = min(SHORT_TIMEOUT_S, timeout)


def _describe_wrong(text: str, *, reached: bool) -> str:
    if reached:
        return f"the client was asked, but its answer is not in the result: {text[:120]!r}"
    return f"answered without the client: {text[:120]!r}"


def _count_times(times: int) -> str:
    return f"the upstream was called {times} times for one call"


async def probe_unasked(
    identity: CallerIdentity, visit: GatewayVisit, names: OfferedNames, upstream: ProbeUpstream
) -> None:
    """Have an upstream ask a client that declared nothing: it must be told so, and not wait."""
    tool = names.find_tool("form", upstream)
    if tool is None:
        return

    async def call() -> tuple[str, ProbeState, str]:
        async with ProbeCaller(identity, visit.revision, answers=False).connect() as caller:
            return await attempt_call(caller, tool, {"token": make_token("asks")})

    outcome, state, said = await attempt(call(), 2 * identity.timeout)
    if outcome is not None:
        _, state, said = outcome
    visit.note(
        "undeclared",
        f"a question to a client that takes none, upstream {upstream.name}",
        state,
        said,
    )
