"""Asking the user: what a question costs when one call asks up to a hundred."""

import json
from functools import partial
from typing import Any

import wires
from processes import cpu_seconds
from results import ISTHMUS, Column, Table, make_sizes
from talks import HttpTalk, PipeTalk
from turns import Run

ROUNDS = (1, 10, 50, 100)
MODERN, LEGACY = "asking modern", "asking legacy"
TABLES = (
    Table(
        MODERN,
        "Asking, 2026-07-28 over HTTP: server CPU of a question, by the questions of the call",
        {**make_sizes("µs", ROUNDS), "large": Column("3, each answered with 10 KB")},
        compared=False,
    ),
    Table(
        LEGACY,
        "Asking, 2025-06-18 over stdio: server CPU of a question, by the questions of the call",
        make_sizes("µs", ROUNDS),
        compared=False,
    ),
)
QUESTIONS = 200
"""In one turn, over as many calls as it takes."""

YES: dict[str, Any] = {"action": "accept", "content": {}}
ESSAY: dict[str, Any] = {"action": "accept", "content": {"text": "x" * 10_000}}
ESSAYS = 3


def measure(run: Run) -> None:
    """Both eras."""
    with run.open_http(MODERN, "asking", "modern", ISTHMUS) as talks:
        for rounds in ROUNDS:
            works = {
                name: partial(ask_modern, talk, "ask", rounds, YES, str(rounds))
                for name, talk in talks.items()
            }
            run.take_turns(MODERN, works)
        works = {
            name: partial(ask_modern, talk, "ask_texts", ESSAYS, ESSAY, "large")
            for name, talk in talks.items()
        }
        run.take_turns(MODERN, works)
    with run.open_pipes(LEGACY, "asking", ISTHMUS) as talks:
        for rounds in ROUNDS:
            works = {name: partial(ask_legacy, talk, rounds) for name, talk in talks.items()}
            run.take_turns(LEGACY, works)


def ask_modern(
    talk: HttpTalk, tool: str, rounds: int, answer: dict[str, Any], column: str
) -> dict[str, float]:
    """Answer each question by sending the call again; microseconds of server CPU for each."""
    calls, before = max(1, QUESTIONS // rounds), cpu_seconds(talk.pid)
    for _ in range(calls):
        params: dict[str, Any] = {"name": tool, "arguments": {"times": rounds}}
        asked = 0
        while (result := talk.request("tools/call", params)).get("resultType") == "input_required":
            asked += 1
            answers = dict.fromkeys(result["inputRequests"], answer)
            params = params | {"inputResponses": answers, "requestState": result["requestState"]}
        if asked != rounds:
            raise RuntimeError(f"{asked} questions, not {rounds}")
    return {column: (cpu_seconds(talk.pid) - before) / calls / rounds * 1e6}


def ask_legacy(talk: PipeTalk, rounds: int) -> dict[str, float]:
    """Answer each question as the request that it is."""
    calls, before = max(1, QUESTIONS // rounds), cpu_seconds(talk.pid)
    for _ in range(calls):
        talk.last_id += 1
        params = {"name": "ask", "arguments": {"times": rounds}}
        talk.send(wires.write_request("legacy", talk.last_id, "tools/call", params) + b"\n")
        asked = 0
        while (frame := json.loads(talk.read_line())).get("method") == "elicitation/create":
            asked += 1
            answer = {"jsonrpc": "2.0", "id": frame["id"], "result": YES}
            talk.send(json.dumps(answer).encode() + b"\n")
        if asked != rounds or "result" not in frame:
            raise RuntimeError(f"{asked} questions, not {rounds}: {frame}")
    return {str(rounds): (cpu_seconds(talk.pid) - before) / calls / rounds * 1e6}
