"""Shared rules: all processes of one host decide by one policy, and know the same tools.

The policy in force is a record in the store. Whoever reads another one from its files puts it in
force everywhere; the others take it over. What was read too long ago decides nothing.
"""

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from isthmus.errors import IsthmusError
from isthmus.host.model.events import HostEvents, HostNotice
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.rule import LayerName, PolicyLayer, format_rules
from isthmus.host.policy.rule_file import read_layers
from isthmus.host.state.shared_state import SharedState
from isthmus.runtime.failures import log_warning

if TYPE_CHECKING:
    from isthmus.host.approvals.fingerprints import Fingerprints

POLICY_KEY, COUNTS_PREFIX = "policy", "counts/"
COUNTS_TTL_S = 86_400.0  # after the last attempt that counts
# together less than the second in which a change counts everywhere
RULES_REFRESH_INTERVAL_S, RULES_STALE_AFTER_S = 0.4, 0.5


class PolicyRecord(Struct, frozen=True):
    """The policy in force.

    Attributes:
        version: a digest of its rules.
        layers: name, rules as text, and source of each.
    """

    version: str
    layers: tuple[tuple[LayerName, str, str], ...]


_decoder = msgspec.json.Decoder(PolicyRecord)
_counts_decoder = msgspec.json.Decoder(dict[str, int])


class SharedRules:
    """The policy and the fingerprints that the processes of a host have in common.

    Args:
        shared: the store.
        fingerprints: those of this process.
        events: told of a policy that comes from another process.
        steady: says seconds that only go forward.
    """

    def __init__(
        self,
        shared: SharedState,
        fingerprints: "Fingerprints",
        events: HostEvents,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._shared = shared
        self._fingerprints = fingerprints
        self._events = events
        self._steady = steady
        self._applied: Policy | None = None
        self._version = ""
        self._read_at = float("-inf")
        self._lock: asyncio.Lock | None = None

    async def join(self, policy: Policy) -> Policy:
        """Agree on a policy with the others: theirs is in force, unless this process is alone.

        Args:
            policy: the one that this process has read.

        Raises:
            StoreUnavailable: the store cannot be used.
        """
        alone = await self._shared.node.list_living() == [self._shared.node.id]
        value, version = await self._shared.get(POLICY_KEY)
        if value is None or alone:
            made = msgspec.json.encode(make_record(policy))
            if await self._shared.cas(POLICY_KEY, made, version) is not None:
                self._applied, self._version = policy, policy.version
                return policy
        self._applied = policy
        return await self.agree(policy)

    async def keep_up(self, refresh: Callable[[], Awaitable[None]]) -> None:
        """Have the rules read again and again, until the end."""
        failing = False
        while True:
            try:
                await refresh()
                failing = False
            except IsthmusError as error:  # whoever calls is refused, and told why
                if not failing:
                    log_warning("the rules of the host cannot be read: %s", error)
                failing = True
            await asyncio.sleep(RULES_REFRESH_INTERVAL_S)

    def is_sure(self, policy: Policy) -> bool:
        """Whether a policy is the one in force, as was read a moment ago."""
        recent = self._steady() - self._read_at <= RULES_STALE_AFTER_S
        return recent and policy is self._applied

    async def agree(self, policy: Policy) -> Policy:
        """Give the policy that is in force everywhere.

        Args:
            policy: what this process goes by; one that it has just read comes into force.

        Raises:
            StoreUnavailable: nobody can tell which is in force, so nothing may be done.
        """
        if self.is_sure(policy):
            return policy
        if self._lock is None:
            self._lock = asyncio.Lock()
        async with self._lock:
            if self.is_sure(policy):
                return policy
            began = self._steady()
            await self._fingerprints.refresh()
            if policy is not self._applied and self._applied is not None:
                await self._shared.put(POLICY_KEY, msgspec.json.encode(make_record(policy)))
                self._applied, self._version = policy, policy.version
            else:
                policy = await self._read(policy)
            self._read_at = began
            return policy

    async def count(self, principal: str, rules: Iterable[str]) -> dict[str, int]:
        """Count one more attempt that rules let through; how many there were, at all processes.

        Raises:
            StoreUnavailable: it is not known to be counted.
        """

        def change(value: bytes | None) -> tuple[bytes, dict[str, int]]:
            counts = {} if value is None else _counts_decoder.decode(value)
            for rule in rules:
                counts[rule] = counts.get(rule, 0) + 1
            return msgspec.json.encode(counts), counts

        who = hashlib.sha256(principal.encode()).hexdigest()
        return await self._shared.update(COUNTS_PREFIX + who, change, COUNTS_TTL_S)

    async def _read(self, policy: Policy) -> Policy:
        value, _ = await self._shared.get(POLICY_KEY)
        if value is None:  # the store has lost it
            await self._shared.cas(POLICY_KEY, msgspec.json.encode(make_record(policy)), 0)
            value, _ = await self._shared.get(POLICY_KEY)
        record = make_record(policy) if value is None else _decoder.decode(value)
        if record.version not in {self._version, policy.version}:
            policy = make_policy(record, policy)
            text = f"another policy is in force at the other hosts of the store: {record.version}"
            self._events.tell(HostNotice(about="policy", text=text))
        self._applied, self._version = policy, record.version
        return policy


def make_record(policy: Policy) -> PolicyRecord:
    """The record of a policy."""
    layers = [(one.name, format_rules(one.rules), one.source) for one in policy.layers]
    return PolicyRecord(policy.version, tuple(layers))


def make_policy(record: PolicyRecord, own: Policy) -> Policy:
    """The policy of a record; what this machine's administrator set holds beside it.

    Args:
        record: from another process.
        own: the policy that this process went by.
    """
    layers: list[PolicyLayer] = []
    for name, text, source in record.layers:
        layers += read_layers(text, name, source=source)
    texts = {(name, text) for name, text, _ in record.layers}
    for one in own.layers:
        if one.name == "managed" and (one.name, format_rules(one.rules)) not in texts:
            layers.append(one)
    return Policy(layers)
