"""Settings of a Redis server that would lose data: found when the store is opened.

What INFO says is enough, and is permitted also where CONFIG is not, as at most services.
"""

import time

from isthmus.errors import UsageError
from isthmus.runtime.failures import log_warning
from isthmus.store.redis.client import RedisClient
from isthmus.store.store import StoreUnavailable

MIN_VERSION = (6, 2)

MAX_CLOCK_DIFFERENCE_S = 2.0


async def check_settings(client: RedisClient, *, durable: bool) -> None:
    """See that a server keeps what it is given.

    Args:
        client: the server.
        durable: whether what is stored must outlive it.

    Raises:
        UsageError: it would lose data, or is of a kind that this does not work with; the message
            names the setting and the command.
        StoreUnavailable: it does not answer.
    """
    info = await _read_info(client)
    if info:
        _check_kind(client.name, info)
        _check_eviction(client.name, info)
        _check_persistence(client.name, info, durable)
    await _check_clock(client)


async def _read_info(client: RedisClient) -> dict[str, str]:
    """What the server says of itself; nothing where it may not be asked."""
    try:
        text = await client.call("INFO")
    except StoreUnavailable as error:
        if "NOPERM" not in str(error) and "unknown command" not in str(error):
            raise
        log_warning(
            "%s does not say how it is set up (INFO is not permitted): see to it that "
            "maxmemory-policy is noeviction, appendonly is yes and cluster mode is off",
            client.name,
        )
        return {}
    lines = text.decode(errors="replace").splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)


def _check_kind(name: str, info: dict[str, str]) -> None:
    """Version, cluster mode, and whether it may be written.

    Raises:
        UsageError: it is of the wrong kind.
    """
    version = info.get("redis_version", "")
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if numbers and numbers < MIN_VERSION:
        raise UsageError(
            f"{name} is Redis {version}, and isthmus needs {'.'.join(map(str, MIN_VERSION))} or "
            "newer: upgrade it, or use Valkey"
        )
    if info.get("redis_mode") == "cluster" or info.get("cluster_enabled") == "1":
        raise UsageError(
            f"{name} is in cluster mode, and a store is on one server: set 'cluster-enabled no' in "
            "redis.conf and start it again, or name another server"
        )
    if info.get("role") == "slave":
        raise UsageError(
            f"{name} is a replica, which cannot be written: name the primary "
            f"({info.get('master_host', '?')}:{info.get('master_port', '?')}), or make this one a "
            "primary: redis-cli REPLICAOF NO ONE"
        )


def _check_eviction(name: str, info: dict[str, str]) -> None:
    policy = info.get("maxmemory_policy")
    if policy is None:
        log_warning("%s does not say its maxmemory-policy: see to it that it is noeviction", name)
    elif policy != "noeviction":
        raise UsageError(
            f"{name} drops what is stored when its memory is full (maxmemory-policy is {policy}): "
            "redis-cli CONFIG SET maxmemory-policy noeviction, and the same in redis.conf or in "
            "the settings of the service"
        )


def _check_persistence(name: str, info: dict[str, str], durable: bool) -> None:
    if info.get("aof_enabled") != "0":
        return
    if durable:
        raise UsageError(
            f"{name} forgets what is stored when it ends (appendonly is no), and this server has "
            "tools with tasks, which must be kept: redis-cli CONFIG SET appendonly yes, and the "
            "same in redis.conf"
        )
    log_warning(
        "%s forgets what is stored when it ends (appendonly is no), streams and sessions as well: "
        "redis-cli CONFIG SET appendonly yes, and the same in redis.conf",
        name,
    )


async def _check_clock(client: RedisClient) -> None:
    """Warn of clocks that differ: leases follow the server's, but sessions and tokens ours."""
    before = time.time()
    seconds, micros = await client.call("TIME")
    after = time.time()
    there = int(seconds) + int(micros) / 1e6
    apart = max(before - there, there - after)
    if apart > MAX_CLOCK_DIFFERENCE_S:
        log_warning(
            "the clock of this machine and that of %s are %.1f s apart: sessions and tokens may "
            "end too early or too late; have both set by NTP: timedatectl set-ntp true",
            client.name,
            apart,
        )
