"""Sharing: the parts of a host that several processes have in common, where there is a store."""

import os
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from isthmus.errors import UsageError
from isthmus.host.approvals.fingerprints import Fingerprints
from isthmus.host.approvals.grants import Grants
from isthmus.store.kv import loop_time

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from isthmus.host.accounts.accounts import Accounts
    from isthmus.host.approvals.approval_rows import ApprovalStorage
    from isthmus.host.approvals.shared_questions import SharedQuestions
    from isthmus.host.model.entries import ServerEntry
    from isthmus.host.model.events import HostEvents
    from isthmus.host.pipeline.shared_rules import SharedRules
    from isthmus.host.sampling.usage import UsageStorage
    from isthmus.host.state.database import HostState
    from isthmus.host.state.shared_state import SharedState
    from isthmus.store.store import Store

MIN_HOST_SECRET_BYTES = 16

MakeAccounts: TypeAlias = "Callable[[HostState, SharedState | None], Accounts]"


def check_secrets(secret: bytes | Sequence[bytes] | None) -> tuple[bytes, ...]:
    """The secrets of a host, the one that encrypts first.

    Raises:
        UsageError: one is too short.
    """
    secrets = (secret,) if isinstance(secret, bytes) else tuple(secret or ())
    if any(len(one) < MIN_HOST_SECRET_BYTES for one in secrets):
        raise UsageError(
            f"the secret of a host needs {MIN_HOST_SECRET_BYTES} random bytes or more: make one "
            "with os.urandom(32), and keep it where every process of this host can read it"
        )
    return secrets


def make_shared_state(
    target: "str | Store | None", name: str, secrets: Sequence[bytes]
) -> "SharedState | None":
    """What the processes of the host share; None where it is one process."""
    if target is None:
        return None
    from isthmus.host.state.shared_state import SharedState
    from isthmus.nodes.node import Node
    from isthmus.store.store import open_store

    store = open_store(target)
    node = Node(store, kind="host", name=name, secrets=secrets)
    return SharedState(node, store)


def name_node(shared: "SharedState | None") -> str:
    """The name of this process in its audit log, by which others find it; empty for any name."""
    if shared is None:
        return ""
    return f"{socket.gethostname()}:{os.getpid()}:{shared.node.id}"


def make_grants(state: "HostState", shared: "SharedState | None") -> Grants:
    """The grants of this process, or of all processes of the host."""
    if shared is None:
        return Grants(state)
    from isthmus.host.approvals.grant_records import GrantRecords

    return Grants(state, steady=loop_time, storage=GrantRecords(shared, loop_time))


def make_fingerprints(state: "HostState", shared: "SharedState | None") -> Fingerprints:
    """The fingerprints that this process knows, or all processes of the host."""
    if shared is None:
        return Fingerprints(state)
    from isthmus.host.approvals.fingerprint_storage import FingerprintRecords

    return Fingerprints(state, FingerprintRecords(shared))


def make_accounts(
    entries: "Callable[[], Mapping[str, ServerEntry]]",
    drop: "Callable[[str, str], None]",
    state: "HostState",
    shared: "SharedState | None",
) -> "Accounts":
    """The accounts of this process's state, or those of all processes of the host.

    Args:
        entries: gives the servers of the configuration in force.
        drop: ends the connections that show an account, by server and principal.
        state: where they are kept, unless they are shared.
        shared: keeps those of all processes.
    """
    from isthmus.host.accounts.accounts import Accounts
    from isthmus.host.accounts.storage import AccountFile, AccountRecords, AccountStorage
    from isthmus.host.accounts.vault import AccountVault

    storage: AccountStorage = AccountFile(state) if shared is None else AccountRecords(shared)
    return Accounts(AccountVault(storage, state.clock), entries, drop)


def make_questions(shared: "SharedState | None") -> "SharedQuestions | None":
    """The questions of all processes of the host; None where it is one process."""
    if shared is None:
        return None
    from isthmus.host.approvals.shared_questions import SharedQuestions

    return SharedQuestions(shared)


def make_approvals(
    state: "HostState", shared: "SharedState | None", node: str
) -> "ApprovalStorage":
    """The approvals of a gateway's calls, of this process or of all processes of the host."""
    if shared is None:
        from isthmus.host.approvals.approval_rows import ApprovalTable

        return ApprovalTable(state, node)
    from isthmus.host.approvals.approval_records import ApprovalRecords

    return ApprovalRecords(shared, state.clock)


def make_usage(shared: "SharedState | None") -> "UsageStorage | None":
    """What servers had models read and write, at all processes; None for what the state has."""
    if shared is None:
        return None
    from isthmus.host.sampling.usage import UsageRecords

    return UsageRecords(shared)


def make_rules(
    shared: "SharedState | None", fingerprints: Fingerprints, events: "HostEvents"
) -> "SharedRules | None":
    """The rules of all processes of the host; None where it is one process."""
    if shared is None:
        return None
    from isthmus.host.pipeline.shared_rules import SharedRules

    return SharedRules(shared, fingerprints, events, loop_time)
