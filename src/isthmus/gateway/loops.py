"""Loops of gateways: a request says which gateways it came through, and none takes one that was there before.

A gateway has a mark, made of the servers that it is configured with: processes with one configuration have
one mark, so that a gateway that launches itself, or is reached through a balancer, knows itself again. What
has no mark, as a proxy of isthmus, is counted.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

from msgspec import DecodeError, Raw, UnsetType, json

from isthmus.bridge.proxy import make_loop_refusal
from isthmus.bridge.upstream import HOPS_KEY
from isthmus.client.connection import PASSED_META
from isthmus.errors import Refuse
from isthmus.host.model.entries import HostConfig

MAX_HOPS = 4  # gateways and proxies that one request may pass

# member of ``_meta`` with the marks of the gateways that a request came through, the first one
# first
MARKS_KEY = "io.github.isthmus/gateways"

MARK_CHARS = 16
MAX_MARK_CHARS = 64  # of a mark that somebody else made

KEY_PREFIX = HOPS_KEY.partition("/")[0].encode()

_decode_meta = json.Decoder(dict[str, Raw]).decode
_decode_hops = json.Decoder(int).decode
_decode_marks = json.Decoder(list[str]).decode


class GatewayMark:
    """The mark of a gateway, as its configuration makes it now."""

    def __init__(self) -> None:
        self._config: HostConfig | None = None
        self._mark = ""
        self._own = os.urandom(16).hex()

    def make(self, config: HostConfig) -> str:
        """The mark of a gateway with this configuration; the same until it is another one."""
        if config is not self._config:
            self._config, self._mark = config, make_mark(config, self._own)
        return self._mark


def make_mark(config: HostConfig, own: str) -> str:
    """Make the mark of a gateway: a digest of the servers that stand in its files.

    A gateway that reaches another one with the same servers reaches that one's servers again, and so on
    without end. Servers that a program has added say nothing about where they are: with one of these a
    mark is of one gateway only.

    Args:
        config: the configuration of its host.
        own: what no other gateway has.
    """
    entries = sorted(
        (one.name, one.url, *one.command) if one.url or one.command else (one.name, own)
        for one in config.servers.values()
    )
    return sha256(json.encode(entries or own)).hexdigest()[:MARK_CHARS]


def read_trail(meta: Mapping[str, Any] | Raw | UnsetType) -> tuple[int, tuple[str, ...]]:
    """The number of gateways and proxies that a request came through, and the marks of the gateways.

    Args:
        meta: the ``_meta`` of the request, as it came or decoded.
    """
    if not meta or (isinstance(meta, Raw) and KEY_PREFIX not in bytes(meta)):
        return 0, ()
    found: Mapping[str, Any] = _decode_meta(meta) if isinstance(meta, Raw) else meta
    hops, marks = (
        _read(found.get(HOPS_KEY), _decode_hops),
        _read(found.get(MARKS_KEY), _decode_marks),
    )
    known = [str(mark)[:MAX_MARK_CHARS] for mark in marks] if isinstance(marks, list) else []
    count = hops if isinstance(hops, int) and hops > 0 else 0
    return max(count, len(known)), tuple(known[:MAX_HOPS])


def _read(member: Any, decode: Any) -> Any:
    if not isinstance(member, Raw):
        return member
    try:
        return decode(member)
    except DecodeError:  # nobody of ours wrote it
        return None


def extend_trail(meta: Mapping[str, Any] | Raw | UnsetType, mark: str) -> dict[str, Any]:
    """Extend the trail of a request by this gateway.

    Args:
        meta: the ``_meta`` of the request.
        mark: the mark of this gateway.

    Returns:
        The members of ``_meta`` for what is asked of servers in its course.

    Raises:
        Refuse: it came through this gateway before, or through too many.
    """
    hops, marks = read_trail(meta)
    if mark in marks:
        raise Refuse(
            -32603,
            "This gateway is reached through itself: one of its servers is this very gateway, or leads "
            "back to it. Take that server out of its configuration; isthmus gateway check names it",
        )
    if hops >= MAX_HOPS:
        raise make_loop_refusal(hops)
    return {HOPS_KEY: hops + 1, MARKS_KEY: [*marks, mark]}


@contextmanager
def passing_on(trail: Mapping[str, Any]) -> Iterator[None]:
    """Have all that is asked of servers meanwhile say which gateways it came through."""
    token = PASSED_META.set(trail)
    try:
        yield
    finally:
        PASSED_META.reset(token)
