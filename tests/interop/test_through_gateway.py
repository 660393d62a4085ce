"""Clients of other people at our servers of both eras, with a gateway between them."""

import functools
from typing import Any

import pytest

from interop import connections, known
from interop.behaviours import seen_through_gateway
from interop.gateway_processes import gateway_to
from interop.partners import OURS, PARTNERS, has_pages

pytestmark = [pytest.mark.interop, pytest.mark.timeout(240)]

MODERN = "2026-07-28"
SERVERS = ("2025-11-25", MODERN)  # one of each era, with every kind of question


def make_connections():
    """Every (client, transport, revision of the client, revision of the server) that is played.

    Over HTTP the newest revision of each era with both eras, and older ones with a server of the other one.
    Over stdio, where each visit has a gateway of its own, the newest with the other era: what a client says
    in older ones reaches the same server in front as without a gateway. Ours is in test_gateway_pairings.
    """
    return [
        (client, transport, spoken, server)
        for client, partner in PARTNERS.items()
        if client != OURS
        for transport, revisions in partner.visits.items()
        for spoken in revisions
        for server in SERVERS
        if is_played(transport, spoken, server, newest=revisions[-1])
    ]


def is_played(transport: str, spoken: str, server: str, *, newest: str) -> bool:
    """Whether a client's revision is played with one of a server."""
    is_crossing = (spoken < MODERN) == (server >= MODERN)
    if transport == "stdio":
        return spoken == newest and is_crossing
    return transport == "http" and (spoken in SERVERS or is_crossing)


def make_cases():
    """The same with each behaviour."""
    for connection in make_connections():
        client, transport, spoken, server = connection
        pages = has_pages(client, OURS)
        for behaviour in ("revision", *seen_through_gateway(spoken, server, pages=pages)):
            observed = known.find_known(client, OURS, transport, spoken, behaviour)
            marks = [pytest.mark.xdist_group(f"through {client}")]
            if observed is not None:
                marks.append(pytest.mark.xfail(reason=observed.why, strict=not observed.sometimes))
            name = "-".join([*connection, *behaviour.split()])
            yield pytest.param(connection, behaviour, marks=marks, id=name)


@functools.cache
def play_once(
    client: str, transport: str, spoken: str, server: str
) -> dict[str, Any] | connections.Broken:
    """The outcomes of all behaviours, or what went wrong: found out once, whichever it is."""
    try:
        target = gateway_to(OURS, SERVERS).find_target(transport, server)
        key = f"{client} {transport} {spoken} {server}"
        pages = has_pages(client, OURS)
        behaviours = seen_through_gateway(spoken, server, pages=pages)
        return connections.visit(client, target, (transport, spoken), behaviours, key)
    except connections.Broken as error:
        return error


@pytest.mark.parametrize(("connection", "behaviour"), list(make_cases()))
def test_a_client_reaches_a_server_of_either_era(environment, connection, behaviour):
    """Ours: a gateway carries every behaviour, whatever era the two ends are of."""
    client, _, spoken, server = connection
    environment(connections.command, "client", client)
    came = play_once(*connection)
    if isinstance(came, Exception):
        raise came
    behaviours = seen_through_gateway(spoken, server, pages=has_pages(client, OURS))
    expected = spoken if behaviour == "revision" else behaviours[behaviour].expected(spoken)

    assert expected == came[behaviour]
