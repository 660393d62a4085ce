"""Which log messages a client gets."""

import pytest
from msgspec import Raw, structs

from both_eras import LEGACY, MODERN, Client, FakeLink
from isthmus.core.caller import Caller
from isthmus.revisions import BY_NAME
from isthmus.runtime.inbound import Inbound
from isthmus.server import Server
from isthmus.server.features.logging import Log, wanted
from isthmus.wire import LOG_LEVELS

OF = {revision: Caller(BY_NAME[revision]) for revision in (LEGACY, MODERN)}


def test_a_request_that_does_not_ask_gets_none():
    """MUST NOT since 2026-07-28 (spec: per-request log level)."""
    assert [] == [level for level in LOG_LEVELS if wanted(OF[MODERN], level)]


def test_a_session_that_never_said_gets_the_usual():
    """The server MAY decide: from info on (spec 2025-11-25: logging)."""
    assert LOG_LEVELS[1:] == tuple(level for level in LOG_LEVELS if wanted(OF[LEGACY], level))


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_a_level_means_it_and_all_above(revision):
    """In the order of RFC 5424 (spec: log levels)."""
    caller = structs.replace(OF[revision], log_level="error")

    assert LOG_LEVELS[4:] == tuple(level for level in LOG_LEVELS if wanted(caller, level))


async def test_a_session_sets_its_level_for_every_later_request():
    """``logging/setLevel`` is kept on the session (spec 2025-11-25: setting log level)."""
    link = FakeLink()
    params = Raw(b'{"level":"alert"}')
    outcome = await Server("x").router.serve(
        Inbound(1, "logging/setLevel", params, OF[LEGACY], link)
    )

    assert b"{}" == outcome
    assert "alert" == link.agreed.log_level
    assert OF[LEGACY].log_level is None


async def test_a_level_there_is_not_is_refused():
    """-32602 (spec: logging, error handling)."""
    error = await Client(Server("x"), LEGACY).once("logging/setLevel", {"level": "loud"})

    assert -32602 == error.code


async def test_the_level_is_not_set_where_requests_say_it():
    """The method is gone since 2026-07-28 (spec: changelog)."""
    error = await Client(Server("x"), MODERN).once("logging/setLevel", {"level": "info"})

    assert -32601 == error.code


def test_every_level_has_its_method():
    """``ctx.log.alert(…)`` and so on (our promise)."""
    said = []
    log = Log(structs.replace(OF[MODERN], log_level="debug"), said.append)
    for level in LOG_LEVELS:
        getattr(log, level)("x", n=1)

    assert list(LOG_LEVELS) == [params.level for params in said]
    assert {"message": "x", "n": 1} == said[0].data
