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
OVER_STDIO = {"2025-11-25": MODERN, MODERN: "2025-11-25"}  # revisions of the client and the server


def make_connections():
    """Every (client, transport, revision of the client, revision of the server).

    Over HTTP each revision with both eras. Over stdio, where each visit has a gateway of its own, the newest
    of each era with the other one: all lines between a client and its gateway are read by one module.
    """
    return [
        (client, transport, spoken, server)
        for client, partner in PARTNERS.items()
        for transport in ("http", "stdio")
        for spoken in partner.visits.get(transport, ())
        for server in SERVERS
        if transport == "http" or OVER_STDIO.get(spoken) == server
    ]


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
