"""Projection laws: what comes out fits the revision's schema, and is a fixed point."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import UNSET, structs

from isthmus import wire
from isthmus.revisions import METHODS, REVISIONS, Feature, Revision, accept, project
from isthmus.wire.jsonrpc import encode
from support.examples import count_examples
from support.schemas import official, wire_values

STAMP = {
    "result_type": st.just("complete"),
    "ttl_ms": st.just(0),
    "cache_scope": st.sampled_from(["public", "private"]),
}
MODERN = REVISIONS[-1]
FACTS = {wire.PROTOCOL_VERSION: MODERN.name, wire.CLIENT_CAPABILITIES: {}}

each_revision = pytest.mark.parametrize("revision", REVISIONS, ids=str)
each_sender = pytest.mark.parametrize("sender", ["client", "server"])
many = settings(
    max_examples=count_examples(40),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    database=None,
)


def params_of(revision: Revision, method: str) -> st.SearchStrategy[Any]:
    """Any params an author could build for a method, newest shape."""
    if method == "elicitation/create":
        newer = revision.has(Feature.ELICITATION_URL)
        return wire_values.questions(several=newer, pages=newer)
    row = METHODS[method]
    if revision is MODERN and row.result is not None and "client" in row.senders:
        return wire_values.structs(row.params, meta=wire_values.facts)
    return wire_values.structs(row.params)


def results_of(revision: Revision, method: str) -> st.SearchStrategy[Any]:
    """Any result an author could build for a method, as the router stamps it."""
    shape = METHODS[method].result
    if shape is wire.ElicitResult and not revision.has(Feature.ELICITATION_URL):
        # No question of 2025-06-18 takes a list of choices.
        return wire_values.structs(shape, content=wire_values.plain_answers)
    if revision is not MODERN:
        return wire_values.structs(shape)
    stamp = {name: s for name, s in STAMP.items() if name in shape.__struct_fields__}
    if shape is wire.ListenResult:
        stamp["meta"] = st.just({wire.SUBSCRIPTION_ID: 1})
    return wire_values.structs(shape, **stamp)


def sent_by(revision: Revision, sender: str) -> list[str]:
    """The methods a side may send."""
    return sorted(revision.methods[sender])


def answered_by(revision: Revision, sender: str) -> list[str]:
    """The methods a side is asked and answers with a struct."""
    asking = "client" if sender == "server" else "server"
    rows = [METHODS[name] for name in sent_by(revision, asking)]
    return [r.name for r in rows if r.result not in {None, wire.GetTaskPayloadResult}]


def frame_of(method: str, params: Any) -> bytes:
    """A request or notification."""
    frame = {"jsonrpc": "2.0", "method": method, "params": params}
    return encode(frame if METHODS[method].result is None else {**frame, "id": 1})


def answer_of(result: Any) -> bytes:
    """An answer."""
    return encode({"jsonrpc": "2.0", "id": 1, "result": result})


@pytest.mark.covers("messages.members.of-the-revision")
@each_revision
@each_sender
def test_the_fullest_params_fit_their_revision(revision, sender):
    """Spec: with every member of every struct set, what is sent fits the revision's schema."""
    for method in sent_by(revision, sender):
        modern = revision is MODERN and METHODS[method].result is not None
        for value in wire_values.fullest(METHODS[method].params):
            if getattr(value, "mode", UNSET) == "url" and not revision.has(Feature.ELICITATION_URL):
                continue
            asked = structs.replace(value, meta=FACTS) if modern else value

            sent = project(asked, revision)

            official.validate(frame_of(method, sent), revision.name, sender)


@pytest.mark.covers("messages.members.of-the-revision")
@each_revision
@each_sender
def test_the_fullest_results_fit_their_revision(revision, sender):
    """Spec: with every member of every struct set, what is answered fits the revision's schema."""
    for method in answered_by(revision, sender):
        for value in wire_values.fullest(METHODS[method].result):
            listens = isinstance(value, wire.ListenResult)
            made = structs.replace(value, meta={wire.SUBSCRIPTION_ID: 1}) if listens else value

            sent = project(made, revision)

            official.validate(answer_of(sent), revision.name, sender, answers=method)


@pytest.mark.covers("messages.members.of-the-revision")
@each_revision
@each_sender
@many
@given(data=st.data())
def test_params_fit_their_revision(revision, sender, data):
    """Spec: whatever params are built, what is sent fits the revision's schema."""
    method = data.draw(st.sampled_from(sent_by(revision, sender)))
    value = data.draw(params_of(revision, method))

    sent = project(value, revision)

    official.validate(frame_of(method, sent), revision.name, sender)
    assert project(sent, revision) is sent


@pytest.mark.covers("messages.members.of-the-revision")
@pytest.mark.parametrize(
    ("revision", "sender"),
    [(r, s) for r in REVISIONS for s in ("client", "server") if answered_by(r, s)],
    ids=str,
)
@many
@given(data=st.data())
def test_results_fit_their_revision(revision, sender, data):
    """Spec: whatever result is built, what is sent fits the revision's schema."""
    method = data.draw(st.sampled_from(answered_by(revision, sender)))
    value = data.draw(results_of(revision, method))

    sent = project(value, revision)

    official.validate(answer_of(sent), revision.name, sender, answers=method)
    assert project(sent, revision) is sent


@pytest.mark.parametrize(
    ("definition", "method"),
    [
        ("CreateMessageRequest", "sampling/createMessage"),
        ("ElicitRequest", "elicitation/create"),
        ("ListRootsRequest", "roots/list"),
    ],
)
@many
@given(data=st.data())
def test_questions_fit_the_modern_revision(definition, method, data):
    """Spec: the questions inside a modern result, and their answers, fit its schema."""
    question = project(data.draw(params_of(MODERN, method)), MODERN)
    answer = project(data.draw(wire_values.structs(METHODS[method].result)), MODERN)

    official.validate(encode({"method": method, "params": question}), MODERN.name, definition)
    official.validate(encode(answer), MODERN.name, official.result_of(MODERN.name, method))


@many
@given(value=wire_values.structs(wire.InputRequiredResult))
def test_rounds_fit_the_modern_revision(value):
    """Spec: a result that asks fits its schema."""
    official.validate(encode(project(value, MODERN)), MODERN.name, "InputRequiredResult")


@each_revision
@each_sender
@many
@given(data=st.data())
def test_what_is_accepted_has_no_newer_members(revision, sender, data):
    """Ours: a caller cannot use a member that its revision lacks, whatever it sends."""
    value = data.draw(params_of(revision, data.draw(st.sampled_from(sent_by(revision, sender)))))

    accepted = accept(value, revision)

    known = revision.members[type(value)]
    named = {n for n in value.__struct_fields__ if getattr(value, n) is not UNSET}
    kept = {n for n in accepted.__struct_fields__ if getattr(accepted, n) is not UNSET}
    assert named & known == kept
    assert accept(accepted, revision) is accepted


@each_revision
@each_sender
@many
@given(data=st.data())
def test_what_is_sent_can_be_read(revision, sender, data):
    """Ours: our own decoder reads what our own projection sends, and finds the same."""
    method = data.draw(st.sampled_from(sent_by(revision, sender)))
    sent = encode(project(data.draw(params_of(revision, method)), revision))

    assert sent == encode(METHODS[method].decode_params(sent))
