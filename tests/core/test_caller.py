"""Who is asking: the facts of an envelope, and envelopes that cannot be served."""

import json

import pytest
from msgspec import Raw

from isthmus.core.caller import Caller, MalformedEnvelope, read_caller, read_envelope
from isthmus.revisions import LATEST, LEGACY, REVISIONS
from isthmus.wire import Implementation

KEY = "io.modelcontextprotocol/"


def envelope(**meta):
    named = {KEY + key: value for key, value in meta.items()}
    return read_envelope(Raw(json.dumps({"_meta": named}).encode()))


def test_an_envelope_states_the_facts():
    """Revision, capabilities, name and log level come from ``_meta`` (spec: basic, _meta)."""
    facts = envelope(
        protocolVersion="2026-07-28",
        clientCapabilities={},
        clientInfo={"name": "c", "version": "1"},
        logLevel="error",
    )
    caller = read_caller(facts, REVISIONS, "ann")

    assert isinstance(caller, Caller)
    assert (LATEST, Implementation(name="c", version="1")) == (caller.revision, caller.info)
    assert ("error", "ann") == (caller.log_level, caller.principal)


@pytest.mark.covers("meta.name.optional")
def test_a_name_is_not_required():
    """``clientInfo`` is a SHOULD (spec: basic, per-request protocol fields)."""
    caller = read_caller(envelope(protocolVersion="2026-07-28", clientCapabilities={}), REVISIONS)

    assert caller.info is None


@pytest.mark.covers("meta.required.refused")
def test_a_missing_fact_is_malformed():
    """-32602 where the revision or the capabilities are missing (spec: a MUST)."""
    for meta in ({"protocolVersion": "2026-07-28"}, {"clientCapabilities": {}}, {}):
        assert -32602 == read_caller(envelope(**meta), REVISIONS).code


@pytest.mark.covers("versions.modern.unsupported")
def test_an_unknown_revision_is_refused_with_those_that_would_do():
    """-32022 with ``supported`` and ``requested`` (spec: protocol version negotiation)."""
    for wanted in ("v999.0.0", "2025-11-25"):
        refusal = read_caller(envelope(protocolVersion=wanted, clientCapabilities={}), REVISIONS)

        assert -32022 == refusal.code
        assert {"supported": ["2026-07-28"], "requested": wanted} == refusal.data


def test_a_server_of_handshakes_alone_does_not_pose_as_a_modern_one():
    """A client takes -32022 for the sign of a modern server (spec: backward compatibility)."""
    refusal = read_caller(
        envelope(protocolVersion="2026-07-28", clientCapabilities={}), tuple(LEGACY)
    )

    assert -32602 == refusal.code
    assert "initialize" in refusal.message


def test_a_malformed_envelope_says_where():
    """Types are checked before anything is served (ours)."""
    bad = read_envelope(Raw(b'{"_meta":{"progressToken":{}}}'))

    assert isinstance(bad, MalformedEnvelope)
    assert "progressToken" in bad.message
