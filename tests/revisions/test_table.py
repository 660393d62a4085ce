"""Revisions as values, and how one evolves from another."""

import pytest

from isthmus import wire
from isthmus.revisions import (
    BY_NAME,
    LATEST,
    LATEST_LEGACY,
    LEGACY,
    METHODS,
    MODERN,
    REVISIONS,
    Era,
    Feature,
    http_status,
    resource_not_found_code,
)


def test_revisions_are_in_order():
    """Spec: five revisions, named by their dates."""
    names = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]

    assert names == [str(r) for r in REVISIONS] == list(BY_NAME) == sorted(BY_NAME)
    assert (LATEST_LEGACY.name, LATEST.name) == ("2025-11-25", "2026-07-28")
    assert LEGACY + MODERN == REVISIONS


def test_a_revision_is_itself_only():
    """Ours: revisions are compared and hashed by identity, so that they are cheap keys."""
    twin = LATEST.evolve("2026-07-28")

    assert twin != LATEST
    assert 2 == len({twin, LATEST})
    assert "<Revision 2026-07-28>" == repr(LATEST)


def test_a_changelog_adds_and_takes():
    """Ours: what is not mentioned stays as it was."""
    later = LATEST.evolve(
        "2027-01-01",
        features={Feature.BATCHING},
        without={Feature.EXTENSIONS},
        methods={"client": "ping"},
        without_methods={"server": "notifications/message"},
        fields={wire.Tool: "execution"},
        without_fields={wire.Tool: "title"},
        without_types={wire.Root},
    )

    assert later.has(Feature.BATCHING)
    assert not later.has(Feature.EXTENSIONS)
    assert later.allows("client", "ping")
    assert not later.allows("server", "notifications/message")
    assert {"execution"} == later.members[wire.Tool] - LATEST.members[wire.Tool]
    assert {"title"} == LATEST.members[wire.Tool] - later.members[wire.Tool]
    assert later.knows(wire.Tool)
    assert not later.knows(wire.Root)
    assert Era.MODERN is later.era
    assert not LATEST.has(Feature.BATCHING)


@pytest.mark.covers("rounds.no-requests.server")
def test_servers_ask_directly_in_the_legacy_era_only():
    """Spec: since 2026-07-28 a server sends no requests."""
    for method in ("sampling/createMessage", "elicitation/create", "roots/list", "ping"):
        assert LATEST_LEGACY.allows("server", method)
        assert not LATEST.allows("server", method)


@pytest.mark.parametrize(
    ("feature", "revisions"),
    [
        (Feature.BATCHING, "2025-03-26"),
        (Feature.STREAMABLE_HTTP, "2025-03-26 2025-06-18 2025-11-25 2026-07-28"),
        (Feature.SESSION_HEADER, "2025-03-26 2025-06-18 2025-11-25"),
        (Feature.RESUMPTION, "2025-03-26 2025-06-18 2025-11-25"),
        (Feature.VERSION_HEADER, "2025-06-18 2025-11-25 2026-07-28"),
        (Feature.ROUTING_HEADERS, "2026-07-28"),
        (Feature.STRUCTURED_OUTPUT, "2025-06-18 2025-11-25 2026-07-28"),
        (Feature.ELICITATION_FORM, "2025-06-18 2025-11-25 2026-07-28"),
        (Feature.ELICITATION_URL, "2025-11-25 2026-07-28"),
        (Feature.URL_REQUIRED_ERROR, "2025-11-25"),
        (Feature.SAMPLING_TOOLS, "2025-11-25 2026-07-28"),
        (Feature.TASKS, "2025-11-25"),
        (Feature.EXTENSIONS, "2026-07-28"),
        (Feature.RESULT_TYPE, "2026-07-28"),
        (Feature.CACHE_HINTS, "2026-07-28"),
        (Feature.SERVER_STAMP, "2026-07-28"),
        (Feature.DISCONNECT_CANCELS, "2026-07-28"),
    ],
)
def test_features_are_where_the_specification_has_them(feature, revisions):
    """Spec: what each revision's wire can do."""
    assert revisions.split() == [r.name for r in REVISIONS if r.has(feature)]


@pytest.mark.covers("errors.codes.of-the-specification")
def test_an_unknown_resource_has_a_code_by_revision():
    """Spec: -32002 up to 2025-11-25, -32602 since."""
    assert [-32002] * 4 + [-32602] == [resource_not_found_code(r) for r in REVISIONS]


@pytest.mark.covers("capabilities.missing.-32021")
@pytest.mark.parametrize(
    ("code", "status"),
    [
        (-32700, 400),
        (-32600, 400),
        (-32601, 404),
        (-32602, 400),
        (-32603, 200),
        (-32020, 400),
        (-32021, 400),
        (-32022, 400),
        (-32002, 200),
        (7, 200),
    ],
)
def test_errors_have_a_status(code, status):
    """Spec: 404 for unknown methods, 400 for requests at fault; other errors are answers."""
    assert status == http_status(code)


@pytest.mark.covers("routing.headers.repeated")
def test_requests_are_named_in_a_header():
    """Spec: Mcp-Name comes from params.name, params.uri or, for tasks, params.taskId."""
    named = {name: row.named_by for name, row in METHODS.items() if row.named_by}

    assert named == {
        "tools/call": "name",
        "prompts/get": "name",
        "resources/read": "uri",
        "tasks/get": "task_id",
        "tasks/cancel": "task_id",
        "tasks/update": "task_id",
    }


def test_decoders_are_made_once():
    """Ours: a row's decoder is compiled on first use and kept."""
    row = METHODS["tools/call"]

    assert row.decode_params is row.decode_params
    assert wire.CallToolParams(name="a") == row.decode_params(b'{"name":"a"}')
    assert wire.CallToolResult(content=[]) == row.decode_result(b'{"content":[]}')


def test_notifications_have_no_result():
    """Ours: asking for one is a mistake in our own code, and says so."""
    row = METHODS["notifications/message"]

    with pytest.raises(TypeError, match="notifications/message is a notification"):
        _ = row.decode_result
