"""A program written for fastmcp gives the same lists and answers under the library itself and under the façade."""

import sys
from pathlib import Path

import msgspec
import pytest

from isthmus.client import Client
from isthmus.errors import IsthmusError
from isthmus.transports.command import Command
from support.compat.facades import UNDER_FACADE, declare_installed

pytestmark = pytest.mark.interop

PROGRAMS = Path(__file__).parent / "programs"
PROGRAM = PROGRAMS / "fastmcp_tour.py"
LAYERS = PROGRAMS / "fastmcp_layers.py"

CALLS = [
    ("add", {"a": 1}),
    ("add", {"a": "5", "b": 3}),
    ("add", {}),
    ("add", {"a": "x"}),
    ("add", {"a": 1, "unknown": 3}),
    ("named", {"p": {"x": 1}, "mode": "b"}),
    ("named", {"p": {"x": "much"}}),
    ("fails", {"kind": "tool"}),
    ("fails", {"kind": "other"}),
    ("picture", {}),
    ("listed", {"n": 2}),
    ("listed", {"n": 0}),
    ("depends", {"x": "q"}),
    ("depends", {"x": "q", "w": "you"}),
    ("plus_ten", {"number": 3}),
    ("sub_hi", {}),
    ("hidden", {}),
    ("nobody", {}),
    ("given_give", {"n": 2}),
    ("given_give", {"n": "x"}),
    ("given_fail_provided", {}),
    ("give", {}),
]

READS = [
    "data://config",
    "data://t/rows",
    "data://t/rows?limit=7",
    "data://t/rows?limit=x",
    "files://a/b/c",
    "files://../x",
    "data://sub/inner",
    "nobody://x",
    "data://given/provided",
    "data://given/x/of",
    "skill://refunds/SKILL.md",
    "skill://refunds/_manifest",
    "skill://refunds/templates/refunded.md",
    "skill://refunds/templates",
    "skill://refunds/none.md",
    "skill://refunds/../../hello.py",
    "skill://refunds/%2E%2E/%2E%2E/hello.py",
]

PROMPTS = [
    ("ask", {"topic": "t"}),
    ("ask", {"topic": "t", "n": "4"}),
    ("ask", {}),
    ("ask", {"topic": "t", "n": "q"}),
    ("nobody", {}),
    ("given_ask_provided", {"topic": "t"}),
]


LAYERED_CALLS = [
    *(("count_calls", {"n": n}) for n in (1, 1, 2, "x")),
    ("flaky", {}),
    *[("say_seldom", {})] * 3,
    *[("say_once", {})] * 2,
    *(("long", {"n": n}) for n in (5, 10, 400)),
    *(("fail", {"kind": kind}) for kind in ("value", "key", "time", "os")),
    ("nobody", {}),
]

LAYERED_READS = ["data://one", "data://one", "data://broken", "data://none"]


async def record_layers(command):
    """What a server with ready-made middleware answers, and what it has logged of each answer."""
    said = []
    async with Client(command, revision="2025-11-25") as client:
        asks = [
            (client.list_tools, ()),
            *((client.call_tool, one) for one in LAYERED_CALLS),
            *((client.read_resource, (uri,)) for uri in LAYERED_READS),
        ]
        for ask, given in asks:
            try:
                answer = describe_answer(await ask(*given))
            except IsthmusError as error:
                answer = [type(error).__name__, str(error)]
            lines = (await client.call_tool("take_lines")).structured_content
            said.append([given, answer, lines])
    return msgspec.to_builtins(said)


async def record_answers(command, revision):
    """Everything that a server lists and answers."""
    said = {}
    async with Client(command, revision=revision) as client:
        said["info"] = [client.info, client.instructions]
        said["tools"] = await client.list_tools()
        said["resources"] = await client.list_resources()
        said["templates"] = await client.list_resource_templates()
        said["prompts"] = await client.list_prompts()
        asks = [
            *(
                (f"call {number} {name}", client.call_tool, (name, given))
                for number, (name, given) in enumerate(CALLS)
            ),
            *((f"read {uri}", client.read_resource, (uri,)) for uri in READS),
            *(
                (f"prompt {name} {given}", client.get_prompt, (name, given))
                for name, given in PROMPTS
            ),
        ]
        for label, ask, given in asks:
            try:
                said[label] = describe_answer(await ask(*given))
            except IsthmusError as error:
                said[label] = [type(error).__name__, str(error)]
    return msgspec.to_builtins(said)


def describe_answer(answer):
    """An answer as plain data."""
    if hasattr(answer, "structured_content"):
        return [answer.content, answer.structured_content, answer.is_error, answer.meta]
    return answer


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", "2026-07-28"])
async def test_a_program_answers_as_under_fastmcp(python_of, tmp_path, revision):
    """Ours: lists, results and errors are the same to the letter."""
    python = str(python_of("fastmcp"))
    theirs = Command(python, str(PROGRAM))
    ours = Command(
        sys.executable,
        "-c",
        UNDER_FACADE,
        str(PROGRAM),
        declare_installed(tmp_path, python, "fastmcp"),
    )

    expected, found = await record_answers(theirs, revision), await record_answers(ours, revision)

    assert expected == found


async def test_ready_middleware_answers_and_logs_as_under_fastmcp(python_of, tmp_path):
    """Ours: limits, translated failures, retries, cut and kept results, and the lines of loggers are the same."""
    python = str(python_of("fastmcp"))
    theirs = Command(python, str(LAYERS))
    ours = Command(
        sys.executable,
        "-c",
        UNDER_FACADE,
        str(LAYERS),
        declare_installed(tmp_path, python, "fastmcp"),
    )

    expected, found = await record_layers(theirs), await record_layers(ours)

    assert expected == found
