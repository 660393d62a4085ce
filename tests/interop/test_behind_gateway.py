"""Servers of other people behind a gateway, in every revision they speak; our client of each era in front."""

import functools
from typing import Any

import pytest

from interop import connections, known
from interop.behaviours import seen_through_gateway
from interop.gateway_processes import gateway_to
from interop.partners import OURS, PARTNERS

pytestmark = [pytest.mark.interop, pytest.mark.timeout(240)]

CLIENTS = ("2025-11-25", "2026-07-28")


def make_connections():
    """Every (server, revision of the server, revision of the client); older ones with the other era only."""
    return [
        (server, spoken, client)
        for server, partner in PARTNERS.items()
        for spoken in partner.served.get("http", ())
        for client in CLIENTS
        if server != OURS and (spoken in CLIENTS or client == CLIENTS[-1])
    ]


def find_played(server, spoken, client):
    """The behaviours that are played: not those that are known to keep the client waiting."""
    return {
        name: behaviour
        for name, behaviour in seen_through_gateway(client, spoken, pages=False).items()
        if known.find_known(client, server, "http", spoken, name, table=known.SILENT_BEHIND_GATEWAY)
        is None
    }


def make_cases():
    """The same with each behaviour."""
    for connection in make_connections():
        server, spoken, client = connection
        for behaviour in ("revision", *find_played(*connection)):
            case = client, server, "http", spoken, behaviour
            observed = known.find_known(*case, table=known.BEHIND_GATEWAY)
            marks = [pytest.mark.xdist_group(f"behind {server}")]
            if observed is not None:
                marks.append(pytest.mark.xfail(reason=observed.why, strict=not observed.sometimes))
            name = "-".join([*connection, *behaviour.split()])
            yield pytest.param(connection, behaviour, marks=marks, id=name)


@functools.cache
def play_once(server: str, spoken: str, client: str) -> dict[str, Any] | connections.Broken:
    """The outcomes of all behaviours, or what went wrong: found out once, whichever it is."""
    try:
        gateway = gateway_to(server, PARTNERS[server].served["http"])
        target = gateway.find_target("http", spoken)
        key = f"{server} {spoken} {client}"
        behaviours = find_played(server, spoken, client)
        return connections.visit(OURS, target, ("http", client), behaviours, key)
    except connections.Broken as error:
        return error


@pytest.mark.parametrize(("connection", "behaviour"), list(make_cases()))
def test_a_server_is_reached_by_a_client_of_either_era(environment, connection, behaviour):
    """Ours: a gateway carries every behaviour of a server, whatever era the two ends are of."""
    server, _, client = connection
    environment(connections.command, "server", server)
    came = play_once(*connection)
    if isinstance(came, Exception):
        raise came
    behaviours = find_played(*connection)
    expected = client if behaviour == "revision" else behaviours[behaviour].expected(client)

    assert expected == came[behaviour]
