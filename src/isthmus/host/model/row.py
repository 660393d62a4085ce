"""Audit row: one thing that happened, or is about to happen."""

from typing import Any, Literal, TypeAlias

from msgspec import Struct

RowKind: TypeAlias = Literal[
    "intent",
    "decision",
    "outcome",
    "server",
    "grant",
    "config",
    "oauth",
    "sampling",
    "elicit",
    "roots",
    "app",
    "policy",
]


class AuditRow(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One row of the audit log: something that happened, or is about to.

    Arguments and details go in as they are; the log redacts them and never keeps a secret.

    Attributes:
        kind: what sort of row it is.
        call: the id of the attempt it belongs to.
        parent: the attempt in whose course that came about.
        run: the run.
        principal: who wanted it.
        action: what was wanted.
        server: the server's name, and ``identity`` what it was bound to.
        object: the tool, URI or prompt.
        fingerprint: digest of the tool's definition, in hex.
        era: the revision spoken.
        transport: how the server was reached.
        origin: by which way it came.
        effect: what policy or a person said, by ``rule``, ``grant`` or ``approver``.
        assurance: how sure one can be that it was a person.
        wait: seconds that a person took.
        arguments: what it was wanted with, before redaction.
        result: what came back, before redaction; only its digest and size are kept by default.
        failed: whether the tool, or the call, failed.
        code: the JSON-RPC error code, where there was one.
        error: the class of the error; ``outcome-unknown`` where nobody can tell.
        seconds: how long it took.
        tokens_in: tokens a model read, ``tokens_out`` wrote, ``cost`` in micro-dollars.
        model: which one.
        labels: what the run had consumed.
        policy: the version of the policy.
        detail: anything else, as plain data.
    """

    kind: RowKind
    call: str = ""
    parent: str = ""
    run: str = ""
    principal: str = ""
    action: str = ""
    server: str = ""
    identity: str = ""
    object: str = ""
    fingerprint: str = ""
    era: str = ""
    transport: str = ""
    origin: str = ""
    effect: str = ""
    rule: str = ""
    grant: str = ""
    approver: str = ""
    assurance: str = ""
    wait: float | None = None
    arguments: Any = None
    result: Any = None
    failed: bool | None = None
    code: int | None = None
    error: str = ""
    seconds: float | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost: int | None = None
    model: str = ""
    labels: tuple[str, ...] = ()
    policy: str = ""
    detail: Any = None
