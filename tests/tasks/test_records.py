"""Task records as they are written down."""

import msgspec
import pytest
from msgspec import Raw

from isthmus.core.caller import Caller
from isthmus.core.principal import Principal
from isthmus.runtime.channel import Origin
from isthmus.runtime.inbound import Inbound
from isthmus.tasks.records import (
    TaskRecord,
    decode_record,
    encode_record,
    format_timestamp,
    new_task_id,
    record_key,
    task_owner,
)
from isthmus.wire import InputRequest
from isthmus.wire.jsonrpc import ErrorBody


def inbound(by_caller=None, by_origin=None):
    return Inbound(1, "m", None, Caller(principal=by_caller), None, Origin("http", {}, by_origin))


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"status": "input_required", "questions": {"q": InputRequest(method="roots/list")}},
        {"status": "completed", "result": Raw(b'{"content":[]}'), "is_error": True},
        {"status": "failed", "error": ErrorBody(code=-1, message="no", data=[1])},
        {"status": "cancelled", "message": "by request"},
    ],
)
def test_a_record_is_read_as_it_was_written(more):
    """Ours: bytes hold all of it, so that any store can keep it."""
    record = TaskRecord(id="a", tool="t", created=1.5, updated=2.0, ttl=None, poll=1.0, **more)
    again = decode_record(encode_record(record))

    assert encode_record(record) == encode_record(again)
    assert (record.status, record.over) == (again.status, again.over)


def test_records_of_the_future_are_read():
    """Ours: members that this version does not know are no obstacle."""
    record = TaskRecord(id="a", tool="t", created=1.0, updated=1.0, ttl=1.0, poll=1.0)
    more = {**msgspec.json.decode(encode_record(record)), "new": 1}

    assert record == decode_record(msgspec.json.encode(more))


def test_ids_are_not_to_be_guessed():
    """Spec: enough entropy: 24 random bytes, in letters that any header can hold."""
    ids = {new_task_id() for _ in range(1000)}

    assert 1000 == len(ids)
    assert {32} == {len(id) for id in ids}


def test_a_task_belongs_to_who_authenticated():
    """Ours: by the transport or by the facts, the same principal; nobody is nobody."""
    ann = Principal(issuer="https://login.example", subject="ann", scopes=frozenset({"a"}))
    later = msgspec.structs.replace(ann, scopes=frozenset({"a", "b"}), expires_at=9.0)

    assert "" == task_owner(inbound())
    assert task_owner(inbound("ann")) == task_owner(inbound(None, "ann"))
    assert task_owner(inbound(ann)) == task_owner(inbound(later))
    assert task_owner(inbound(ann)) != task_owner(inbound("ann"))
    assert task_owner(inbound("ann")) != task_owner(inbound("bob"))


def test_no_owner_and_no_id_reach_into_another_owners_place():
    """Ours: whatever a client sends for an id, it stays below its own owner."""
    owner = task_owner(inbound("a/b"))

    assert "/" not in owner
    assert record_key("", f"{owner}/x") != record_key(owner, "y/x")
    assert record_key(owner, "x").startswith(f"task/{owner}/")


def test_moments_are_written_as_iso_8601_has_them():
    """Spec: createdAt and lastUpdatedAt."""
    assert "2025-11-25T10:30:00.250Z" == format_timestamp(1764066600.25)
