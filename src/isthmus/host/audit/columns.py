"""From a row to what stands in the table: a snapshot, redacted, in one order, and hashed."""

import hashlib
import re
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from operator import attrgetter
from typing import Any, cast

import msgspec
from msgspec import Raw, Struct

from isthmus.auth.secret import Secret
from isthmus.host.audit.detectors import REDACTED, cleaned
from isthmus.host.audit.redaction import Redactor
from isthmus.host.audit.row import Row

__all__ = ["COLUMNS", "GENESIS", "INSERT", "Snapshot", "chained", "columns", "digest", "snapshot"]

GENESIS = bytes(32)
"""What the first row has in the place of the hash of the one before it."""

LONGEST = 64 * 1024
"""Bytes of arguments or details that are kept; of longer ones only texts cut short, or their size."""

CUT = 1_000
"""Characters that stay of a text where the whole is too long."""

LONGEST_NAME = 4_000
"""Characters of a name, an address or an error that are kept."""

TEXTS = {
    "kind": "kind",
    "call_id": "call",
    "parent_id": "parent",
    "run_id": "run",
    "principal": "principal",
    "action": "action",
    "server": "server",
    "identity": "identity",
    "fingerprint": "fingerprint",
    "era": "era",
    "transport": "transport",
    "origin": "origin",
    "effect": "effect",
    "rule_id": "rule",
    "grant_id": "grant",
    "approver": "approver",
    "assurance": "assurance",
    "model": "model",
    "policy": "policy",
}
"""Names and ids: what is merely random in them stays, other secrets do not."""

FREE_TEXTS = {"object": "object", "error_class": "error"}
"""What others wrote."""

NUMBERS = {
    "is_error": "failed",
    "error_code": "code",
    "tokens_in": "tokens_in",
    "tokens_out": "tokens_out",
    "cost_micro": "cost",
}
TIMES = {"wait_ms": ("wait", 1e3), "dur_us": ("seconds", 1e6)}

COLUMNS = (
    *("seq", "ts_us", "node", "kind", "call_id", "parent_id", "run_id", "principal", "action"),
    *("server", "identity", "object", "fingerprint", "era", "transport", "origin", "effect"),
    *("rule_id", "grant_id", "approver", "assurance", "wait_ms", "args_hash", "args_redacted"),
    *("result_hash", "result_bytes", "is_error", "error_code", "error_class", "dur_us"),
    *("tokens_in", "tokens_out", "cost_micro", "model", "labels", "policy", "detail"),
)
"""The order in which a row is hashed; ``prev`` and ``hash`` follow it in the table."""

INSERT = "INSERT INTO event VALUES (" + ", ".join("?" * (len(COLUMNS) + 2)) + ")"  # noqa: S608 - marks only

NEVER_NULL = {"principal", "action"}
BODIES = ("arguments", "result", "detail")
MOST_INTEGER = 2**63 - 1

# A row whose arguments, result and detail are the JSON that they were at that moment.
RawRow = msgspec.defstruct(
    "RawRow",
    [
        (field.name, Raw, Raw(b"")) if field.name in BODIES else (field.name, field.type, field.default)
        for field in msgspec.structs.fields(Row)
        if field.name != "kind"
    ]
    + [("kind", str, "")],
    kw_only=True,
)  # fmt: skip


class Snapshot(Struct, frozen=True):
    """A row as it was when it was handed over.

    Attributes:
        data: the whole of it, as JSON.
        at: when, in seconds since the epoch.
        known: the secrets that stood in it, as they were known then.
    """

    data: bytes
    at: float
    known: tuple[str, ...] = ()


def snapshot(row: Row, at: float, redactor: Redactor) -> Snapshot:
    """Take down a row; what happens to its arguments afterwards is of no consequence."""
    try:
        data = ENCODER.encode(row)
    except Exception:  # noqa: BLE001 - whatever stands in it, it is taken down
        data = ENCODER.encode(msgspec.structs.replace(row, **{
            name: tame(getattr(row, name)) for name in row.__struct_fields__ if name != "kind"
        }))  # fmt: skip
    return Snapshot(data, at, tuple(redactor.known(data)))


def columns(
    taken: Snapshot, seq: int, node: str, redactor: Redactor, key: bytes
) -> tuple[list[Any], Row]:
    """What of a row is kept, in the order of :data:`COLUMNS`; and the row, with JSON for bodies.

    Args:
        taken: the row.
        seq: its number.
        node: who writes it.
        redactor: takes out what is secret.
        key: for digests.
    """
    row = read(taken.data)
    known = sorted(taken.known, key=len, reverse=True)
    arguments, result = bytes(row.arguments), bytes(row.result)
    values: dict[str, Any] = {"seq": seq, "ts_us": int(taken.at * 1e6), "node": node}
    values |= zip(TEXTS, [_named(one, known) if one else None for one in _texts(row)], strict=True)
    for column, name in FREE_TEXTS.items():
        values[column] = brief(getattr(row, name), partial(redactor.without, known=known)) or None
    for column, name in NUMBERS.items():
        values[column] = _integer(getattr(row, name))
    for column, (name, scale) in TIMES.items():
        spent = getattr(row, name)
        values[column] = None if spent is None else _integer(spent * scale)
    values["args_hash"] = digest(arguments, key) if arguments else None
    values["args_redacted"] = kept(arguments, redactor, known)
    values["result_hash"] = digest(result, key) if result else None
    values["result_bytes"] = len(result) if result else None
    values["labels"] = _json(redactor.without(sorted(row.labels), known)) if row.labels else None
    values["detail"] = kept(bytes(row.detail), redactor, known)
    for column in NEVER_NULL:
        values[column] = values[column] or ""
    return [values[column] for column in COLUMNS], row


def read(data: bytes) -> Row:
    """A row as it was taken down; of one that is not as it should be, everything that is."""
    try:
        return cast("Row", DECODER.decode(data))
    except (msgspec.DecodeError, RecursionError):
        pass  # a log that cannot write one row writes none after it
    pieces = members(data)
    found: dict[str, Any] = {"kind": "config"}
    odd: list[str] = []
    for field in msgspec.structs.fields(RawRow):
        try:
            if field.name in pieces:
                piece = pieces[field.name]
                whole = field.name in BODIES
                found[field.name] = (
                    Raw(piece) if whole else msgspec.json.decode(piece, type=field.type)
                )
        except (msgspec.DecodeError, RecursionError):
            odd.append(field.name)
    if not found.get("detail"):
        found["detail"] = Raw(msgspec.json.encode({"unreadable": odd or [f"{len(data)} bytes"]}))
    return cast("Row", RawRow(**found))


def members(data: bytes) -> dict[str, bytes]:
    """The members of a JSON object as they are written, however deep they are."""
    found: dict[str, bytes] = {}
    depth, name, begin = 0, "", 1
    for mark in MARKS.finditer(data):
        sign = mark[0]
        depth += (sign in b"[{") - (sign in b"]}")
        if depth == 1 and sign == b":":
            name, begin = msgspec.json.decode(data[begin : mark.start()], type=str), mark.end()
        elif (depth == 1 and sign == b",") or not depth:
            found[name], begin = data[begin : mark.start()], mark.end()
    return found


def brief(text: str, clean: Callable[[str], str]) -> str:
    """A text that is clean, or the beginning of one that nobody reads to its end."""
    if len(text) <= LONGEST_NAME:
        return clean(text)
    # cut after it is clean, since half a secret is not known for one
    return f"{clean(text[:LONGEST])[:LONGEST_NAME]}… ({len(text)} characters)"


def kept(data: bytes, redactor: Redactor, known: Sequence[str]) -> str | None:
    """What of some JSON is kept: without secrets, and not too long."""
    if not data or data == b"null":
        return None
    try:
        value = redactor.without(redactor.strip(msgspec.json.decode(data)), known)
        text = _json(value)
        if len(text) > LONGEST:
            text = _json(shortened(value))
    except (msgspec.DecodeError, RecursionError):  # written where there was more of the stack left
        return _json({"unreadable": f"{len(data)} bytes"})
    return text if len(text) <= LONGEST else _json({"omitted": f"{len(data)} bytes"})


def shortened(value: Any) -> Any:
    """The same with texts of a limited length; what is cut says how long it was."""
    if isinstance(value, str) and len(value) > CUT:
        return f"{value[:CUT]}… ({len(value)} characters)"
    if isinstance(value, dict):
        return {name: shortened(one) for name, one in value.items()}
    if isinstance(value, list):
        return [shortened(one) for one in value]
    return value


def chained(values: Sequence[Any], prev: bytes, key: bytes = b"") -> bytes:
    """The hash of a row: keyed BLAKE2b-256 over the hash before it and the row as a JSON array.

    Without a key it is the hash of rows that older versions wrote; anybody can compute that one.

    The array has the values in the order of :data:`COLUMNS`, bytes in hex, nothing in between, and
    no character escaped that JSON lets stand.
    """
    plain = [one.hex() if isinstance(one, bytes) else one for one in values]
    return hashlib.blake2b(prev + msgspec.json.encode(plain), key=key, digest_size=32).digest()


def digest(data: bytes, key: bytes) -> bytes:
    """What is kept of a body: equal ones have equal digests, and without the key nobody can guess."""
    return hashlib.blake2b(data, key=key, digest_size=32).digest()


def tame(value: Any) -> Any:
    """Plain data that can be written as JSON, of whatever there is."""
    try:
        return _tamed(Redactor(secrets=tuple).without(value, ()))
    except Exception as error:  # noqa: BLE001 - an object may do anything when it is looked at
        return f"[{type(value).__name__} that cannot be read: {type(error).__name__}]"


def _tamed(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, int) and abs(value) > MOST_INTEGER:
        return str(value) if abs(value) < 10**4000 else "[a long number]"
    if isinstance(value, dict):
        return {_tamed(name): _tamed(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_tamed(one) for one in value]
    return value


# Names come again and again.
_cleaned = lru_cache(maxsize=4096)(partial(cleaned, chance=False))


_texts = attrgetter(*TEXTS.values())


def _named(text: str, known: Sequence[str]) -> str | None:
    if not known and len(text) <= LONGEST_NAME:
        return _cleaned(text)
    return brief(text, partial(_named_clean, known)) or None


def _named_clean(known: Sequence[str], text: str) -> str:
    for secret in known:
        text = text.replace(secret, REDACTED)
    return _cleaned(text) if len(text) <= LONGEST_NAME else cleaned(text, chance=False)


def _integer(value: float | bool | None) -> int | None:
    return None if value is None else max(-MOST_INTEGER, min(MOST_INTEGER, int(value)))


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _hidden(value: Any) -> str:
    """What no JSON has; nothing is known of it but its type."""
    return REDACTED if isinstance(value, Secret) else f"[{type(value).__name__}]"


ENCODER = msgspec.json.Encoder(enc_hook=_hidden)
DECODER = msgspec.json.Decoder(RawRow)
MARKS = re.compile(rb'"(?:[^"\\\\]|\\\\.)*"|[\[\]{}:,]')
