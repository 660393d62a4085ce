"""Task shapes: one record, written in two ways."""

import json

import pytest
from msgspec import Raw, structs

from isthmus.core.caller import Caller
from isthmus.revisions import BY_NAME, REVISIONS
from isthmus.tasks.records import TaskRecord
from isthmus.tasks.shapes import (
    CORE_SHAPE,
    EXTENSION_SHAPE,
    decode_question,
    related_task_meta,
    shape_of,
)
from isthmus.wire import RELATED_TASK, TASKS, ClientCapabilities, InputRequest
from isthmus.wire.jsonrpc import ErrorBody, encode

OLD, NEW = BY_NAME["2025-11-25"], BY_NAME["2026-07-28"]
RECORD = TaskRecord(id="a", tool="t", created=0.0, updated=1.0, ttl=60.0, poll=0.5)
RESULT = Raw(b'{"content":[{"type":"text","text":"x"}],"isError":true}')
DONE = structs.replace(RECORD, status="completed", result=RESULT, is_error=True, message="x")
ASKED = structs.replace(
    RECORD,
    status="input_required",
    questions={
        "q": InputRequest(
            method="elicitation/create",
            params=Raw(
                b'{"mode":"form","message":"?","requestedSchema":{"type":"object","properties":{}},'
                b'"elicitationId":"e","_meta":{"a":1}}'
            ),
        )
    },
)


def plain(value):
    return json.loads(encode(value))


@pytest.mark.parametrize("revision", REVISIONS, ids=str)
@pytest.mark.parametrize("declared", [False, True])
def test_who_sees_tasks_in_which_shape(revision, declared):
    """Spec: the core in 2025-11-25; the extension where a request of 2026-07-28 declares it."""
    extensions = {"extensions": {TASKS: {}}} if declared else {}
    caller = Caller(revision, ClientCapabilities(**extensions))
    expected = {"2025-11-25": CORE_SHAPE, "2026-07-28": EXTENSION_SHAPE if declared else None}

    assert expected.get(revision.name) is shape_of(caller)


def test_a_tool_that_failed_is_a_failed_task_in_one_shape_only():
    """Spec: isError fails a core task, and completes one of the extension."""
    core, extended = (
        plain(CORE_SHAPE.make_get_result(DONE, OLD)),
        plain(EXTENSION_SHAPE.make_get_result(DONE, NEW)),
    )

    assert ("failed", "x", 60_000, 500) == (
        core["status"],
        core["statusMessage"],
        core["ttl"],
        core["pollInterval"],
    )
    assert ("completed", 60_000, 500) == (
        extended["status"],
        extended["ttlMs"],
        extended["pollIntervalMs"],
    )
    assert "result" not in core
    assert {"resultType": "complete", **json.loads(bytes(RESULT))} == extended["result"]


def test_a_task_for_ever_says_null():
    """Spec: null is unlimited."""
    for_ever = structs.replace(RECORD, ttl=None)

    assert plain(CORE_SHAPE.make_get_result(for_ever, OLD))["ttl"] is None
    assert plain(EXTENSION_SHAPE.make_get_result(for_ever, NEW))["ttlMs"] is None


def test_each_status_brings_its_own_member_and_no_other():
    """Spec: inputRequests, result or error, by the status."""
    failed = structs.replace(RECORD, status="failed", error=ErrorBody(code=-1, message="no"))
    cancelled = structs.replace(RECORD, status="cancelled", questions=ASKED.questions)
    brings = {
        record.status: {"inputRequests", "result", "error"}
        & set(plain(EXTENSION_SHAPE.make_get_result(record, NEW)))
        for record in (RECORD, ASKED, DONE, failed, cancelled)
    }

    assert {
        "working": set(),
        "input_required": {"inputRequests"},
        "completed": {"result"},
        "failed": {"error"},
        "cancelled": set(),
    } == brings


def test_questions_are_cut_to_the_revision_they_are_asked_in():
    """Ours: a task may be created in one revision and looked at in another."""
    old = plain(decode_question(ASKED.questions["q"], OLD))
    new = plain(EXTENSION_SHAPE.make_get_result(ASKED, NEW))["inputRequests"]["q"]["params"]

    assert ("e", {"a": 1}) == (old["elicitationId"], old["_meta"])
    assert not {"elicitationId", "_meta"} & set(new)


def test_notifications_say_what_get_says():
    """Spec: the full task; without resultType, which only results have."""
    method, params = CORE_SHAPE.make_notification(DONE, OLD, {})
    other, stated = EXTENSION_SHAPE.make_notification(DONE, NEW, {"s": 1})

    assert ("notifications/tasks/status", plain(CORE_SHAPE.make_get_result(DONE, OLD))) == (
        method,
        plain(params),
    )
    expected = {**plain(EXTENSION_SHAPE.make_get_result(DONE, NEW)), "_meta": {"s": 1}}
    del expected["resultType"]
    assert ("notifications/tasks", expected) == (other, plain(stated))


def test_the_related_task_is_named_by_its_key():
    """Spec: io.modelcontextprotocol/related-task."""
    assert {RELATED_TASK: {"taskId": "a"}} == related_task_meta("a")
