"""Columns of an audit row: a snapshot of the row, redacted and put into the order of the table."""

import hashlib
import re
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import chain
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec import Raw, Struct

from isthmus.auth.tokens.secret import Secret
from isthmus.core.redaction.live_secrets import REDACTED
from isthmus.core.redaction.texts import redact_text
from isthmus.core.redaction.values import Redactor
from isthmus.host.model.row import AuditRow
from isthmus.runtime.sorted_ids import ID_ALPHABET

if TYPE_CHECKING:
    import sqlite3

MAX_JSON_BYTES = 64 * 1024  # of longer ones only shortened texts, or their size
MAX_CUT_CHARS = 1_000
MAX_NAME_CHARS = 4_000

# names and ids: random parts of them stay, other secrets do not
TEXT_COLUMNS = {
    "kind": "kind",
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

FREE_TEXT_COLUMNS = {"object": "object", "error_class": "error"}  # texts of others

NUMBER_COLUMNS = {
    "is_error": "failed",
    "error_code": "code",
    "tokens_in": "tokens_in",
    "tokens_out": "tokens_out",
    "cost_micro": "cost",
}
TIME_COLUMNS = {"wait_ms": ("wait", 1e3), "dur_us": ("seconds", 1e6)}

# the order in which a row is hashed; prev and hash follow in the table
COLUMNS = (
    *("seq", "ts_us", "node", "kind", "call_id", "parent_id", "run_id", "principal", "action"),
    *("server", "identity", "object", "fingerprint", "era", "transport", "origin", "effect"),
    *("rule_id", "grant_id", "approver", "assurance", "wait_ms", "args_hash", "args_redacted"),
    *("result_hash", "result_bytes", "is_error", "error_code", "error_class", "dur_us"),
    *("tokens_in", "tokens_out", "cost_micro", "model", "labels", "policy", "detail"),
)

# places of columns in a row
TEXT_PLACES = tuple(map(COLUMNS.index, TEXT_COLUMNS))
FREE_TEXT_PLACES = tuple((COLUMNS.index(one), name) for one, name in FREE_TEXT_COLUMNS.items())
NUMBER_PLACES = tuple(map(COLUMNS.index, NUMBER_COLUMNS))
TIME_PLACES = tuple((COLUMNS.index(one), *how) for one, how in TIME_COLUMNS.items())
ARGS_HASH, ARGS_REDACTED = COLUMNS.index("args_hash"), COLUMNS.index("args_redacted")
RESULT_HASH, RESULT_BYTES = COLUMNS.index("result_hash"), COLUMNS.index("result_bytes")
CALL = COLUMNS.index("call_id")
LABELS, DETAIL = COLUMNS.index("labels"), COLUMNS.index("detail")
HASH_COLUMNS = (ARGS_HASH, RESULT_HASH)  # the only bytes

# sqlite3 looks for an adapter of each None that it is given, which takes as long as to store a text: the
# columns that nearly no row has are left out of rows without them.
RARE_COLUMNS = (
    *(
        "parent_id",
        "run_id",
        "grant_id",
        "approver",
        "assurance",
        "wait_ms",
        "error_code",
        "error_class",
    ),
    *("tokens_in", "tokens_out", "cost_micro", "model", "labels"),
)
TABLE_COLUMNS = (*COLUMNS, "prev", "hash")
COMMON_PLACES = tuple(at for at, one in enumerate(TABLE_COLUMNS) if one not in RARE_COLUMNS)
RARE_PLACES = tuple(at for at, one in enumerate(TABLE_COLUMNS) if one in RARE_COLUMNS)
NO_RARE_VALUES = (None,) * len(RARE_PLACES)


INSERTED_ROWS = 16  # of one statement: sqlite3 lets go of the interpreter's lock for each


def _write_insert(names: Sequence[str], rows: int = 1) -> str:
    marks = ", ".join([f"({', '.join('?' * len(names))})"] * rows)
    return f"INSERT INTO event ({', '.join(names)}) VALUES {marks}"  # noqa: S608 - names of ours


INSERT_ROW = _write_insert(TABLE_COLUMNS)
COMMON_COLUMNS = [TABLE_COLUMNS[at] for at in COMMON_PLACES]
INSERT_COMMON_ROW = _write_insert(COMMON_COLUMNS)
INSERT_COMMON_ROWS = _write_insert(COMMON_COLUMNS, INSERTED_ROWS)
get_common_values = itemgetter(*COMMON_PLACES)
get_rare_values = itemgetter(*RARE_PLACES)
REQUIRED_PLACES = (COLUMNS.index("principal"), COLUMNS.index("action"))
BODY_FIELDS = ("arguments", "result", "detail")
MAX_INTEGER = 2**63 - 1
MAX_KEPT_DETAIL_BYTES = 1_000
MAX_KEPT_NAMES_CHARS = 2_000  # of all names of a row
MAX_KEPT_TEXT_CHARS = 200
OWN_ID_PATTERN = re.compile(f"0[{ID_ALPHABET}]{{25}}")
PLAIN_REDACTOR = Redactor(secrets=tuple)

# A row whose arguments, result and detail are the JSON that they were at that moment.
RawRow = msgspec.defstruct(
    "RawRow",
    [
        (field.name, Raw, Raw(b"")) if field.name in BODY_FIELDS else (field.name, field.type, field.default)
        for field in msgspec.structs.fields(AuditRow)
        if field.name != "kind"
    ]
    + [("kind", str, "")],
    kw_only=True,
)  # fmt: skip


class RowSnapshot(Struct, frozen=True):
    """A row as it was when it was handed over.

    Attributes:
        data: the whole of it, as JSON.
        at: when, in seconds since the epoch.
        known: the secrets that stood in it, as they were known then.
    """

    data: bytes
    at: float
    known: tuple[str, ...] = ()


def take_snapshot(row: AuditRow, at: float, redactor: Redactor) -> RowSnapshot:
    """Take a snapshot of a row: later changes of its arguments do not matter."""
    try:
        data = ROW_ENCODER.encode(row)
    except Exception:  # noqa: BLE001 - whatever stands in it, it is taken down
        data = ROW_ENCODER.encode(msgspec.structs.replace(row, **{
            name: to_plain_data(getattr(row, name)) for name in row.__struct_fields__ if name != "kind"
        }))  # fmt: skip
    return RowSnapshot(data, at, tuple(redactor.known(data)))


def make_columns(
    snapshot: RowSnapshot, seq: int, node: str, redactor: Redactor, key: bytes
) -> tuple[list[Any], AuditRow]:
    """Make the redacted values of a row in the order of :data:`COLUMNS`, and the decoded row."""
    row = decode_row(snapshot.data)
    known = sorted(snapshot.known, key=len, reverse=True) if snapshot.known else ()
    arguments, result = bytes(row.arguments), bytes(row.result)
    values = _begin_values(row, known)
    values[:3] = seq, int(snapshot.at * 1e6), node
    _fill_places(values, row, redactor, known)
    if arguments:
        values[ARGS_HASH] = digest_body(arguments, key)
        values[ARGS_REDACTED] = redact_json(arguments, redactor, known)
    if result:
        values[RESULT_HASH], values[RESULT_BYTES] = digest_body(result, key), len(result)
    if row.labels:
        values[LABELS] = _encode_json(redactor.without(sorted(row.labels), known))
    if row.detail:
        values[DETAIL] = redact_detail(bytes(row.detail), redactor, known)
    return values, row


def insert_rows(db: "sqlite3.Connection", rows: Sequence[Sequence[Any]]) -> None:
    """Insert rows, each with its values and both hashes in the order of the table."""
    common = [get_common_values(row) for row in rows if get_rare_values(row) == NO_RARE_VALUES]
    whole = len(common) - len(common) % INSERTED_ROWS
    for at in range(0, whole, INSERTED_ROWS):
        values = [*chain.from_iterable(common[at : at + INSERTED_ROWS])]
        db.execute(INSERT_COMMON_ROWS, values)
    db.executemany(INSERT_COMMON_ROW, common[whole:])
    if len(common) < len(rows):
        others = [row for row in rows if get_rare_values(row) != NO_RARE_VALUES]
        db.executemany(INSERT_ROW, others)


def _begin_values(row: AuditRow, known: Sequence[str]) -> list[Any]:
    """The values of a row with all its names; those of a call are the same in many rows but for its id."""
    texts = _get_texts(row)
    if known or sum(map(len, texts)) > MAX_KEPT_NAMES_CHARS:
        values = _place_names(_make_names(texts, known))
    else:
        values = [*_place_kept_names(texts)]
    call = row.call
    # a name that we gave has no secret in it
    own = not known and OWN_ID_PATTERN.fullmatch(call) is not None
    values[CALL] = call if own else _make_name(call, known) if call else None
    return values


def _place_names(names: Sequence[str | None]) -> list[Any]:
    """Values of which the names are in their places."""
    values: list[Any] = [None] * len(COLUMNS)
    for at, text in zip(TEXT_PLACES, names, strict=True):
        values[at] = text
    for at in REQUIRED_PLACES:
        values[at] = values[at] or ""
    return values


@lru_cache(maxsize=512)
def _place_kept_names(texts: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(_place_names(_make_names(texts, ())))


def _fill_places(
    values: list[Any], row: AuditRow, redactor: Redactor, known: Sequence[str]
) -> None:
    """Put free texts and numbers into their places."""
    for at, name in FREE_TEXT_PLACES:
        text = getattr(row, name)
        if not text:
            continue
        if known or len(text) > MAX_KEPT_TEXT_CHARS:
            values[at] = shorten_name(text, partial(redactor.without, known=known)) or None
        else:
            values[at] = _redact_kept_text(text) or None
    for at, number in zip(NUMBER_PLACES, _get_numbers(row), strict=True):
        if number is not None:
            values[at] = _to_integer(number)
    for at, name, scale in TIME_PLACES:
        spent = getattr(row, name)
        if spent is not None:
            values[at] = _to_integer(spent * scale)


def decode_row(data: bytes) -> AuditRow:
    """Decode a snapshot; of a damaged one, every field that can be read."""
    try:
        return cast("AuditRow", ROW_DECODER.decode(data))
    except (msgspec.DecodeError, RecursionError):
        pass  # a log that cannot write one row writes none after it
    pieces = split_members(data)
    found: dict[str, Any] = {"kind": "config"}
    odd: list[str] = []
    for field in msgspec.structs.fields(RawRow):
        try:
            if field.name in pieces:
                piece = pieces[field.name]
                whole = field.name in BODY_FIELDS
                found[field.name] = (
                    Raw(piece) if whole else msgspec.json.decode(piece, type=field.type)
                )
        except (msgspec.DecodeError, RecursionError):
            odd.append(field.name)
    if not found.get("detail"):
        found["detail"] = Raw(msgspec.json.encode({"unreadable": odd or [f"{len(data)} bytes"]}))
    return cast("AuditRow", RawRow(**found))


def split_members(data: bytes) -> dict[str, bytes]:
    """Split a JSON object into its members as they are written, however deep they are."""
    found: dict[str, bytes] = {}
    depth, name, begin = 0, "", 1
    for mark in JSON_MARKS.finditer(data):
        sign = mark[0]
        depth += (sign in b"[{") - (sign in b"]}")
        if depth == 1 and sign == b":":
            name, begin = msgspec.json.decode(data[begin : mark.start()], type=str), mark.end()
        elif (depth == 1 and sign == b",") or not depth:
            found[name], begin = data[begin : mark.start()], mark.end()
    return found


def shorten_name(text: str, clean: Callable[[str], str]) -> str:
    """Clean a name, and cut it where it is longer than anybody reads."""
    if len(text) <= MAX_NAME_CHARS:
        return clean(text)
    # cut after it is clean, since half a secret is not known for one
    return f"{clean(text[:MAX_JSON_BYTES])[:MAX_NAME_CHARS]}… ({len(text)} characters)"


def redact_json(data: bytes, redactor: Redactor, secrets: Sequence[str]) -> str | None:
    """Redact JSON and keep it short; None where there is nothing to keep."""
    if not data or data == b"null":
        return None
    try:
        value = redactor.without(redactor.strip(msgspec.json.decode(data)), secrets)
        text = _encode_json(value)
        if len(text) > MAX_JSON_BYTES:
            text = _encode_json(truncate_texts(value))
    except (msgspec.DecodeError, RecursionError):  # written where there was more of the stack left
        return _encode_json({"unreadable": f"{len(data)} bytes"})
    return text if len(text) <= MAX_JSON_BYTES else _encode_json({"omitted": f"{len(data)} bytes"})


def redact_detail(data: bytes, redactor: Redactor, secrets: Sequence[str]) -> str | None:
    """As :func:`redact_json`, for what is the same in many rows: the circumstances of a call."""
    if secrets or len(data) > MAX_KEPT_DETAIL_BYTES or redactor.has_pointers:
        return redact_json(data, redactor, secrets)
    return _redact_plain_detail(data)


@lru_cache(maxsize=4096)
def _redact_kept_text(text: str) -> str:
    return shorten_name(text, partial(PLAIN_REDACTOR.without, known=()))


@lru_cache(maxsize=1024)
def _redact_plain_detail(data: bytes) -> str | None:
    return redact_json(data, PLAIN_REDACTOR, ())


def truncate_texts(value: Any) -> Any:
    """Truncate every text in plain data; a cut text says how long it was."""
    if isinstance(value, str) and len(value) > MAX_CUT_CHARS:
        return f"{value[:MAX_CUT_CHARS]}… ({len(value)} characters)"
    if isinstance(value, dict):
        return {name: truncate_texts(one) for name, one in value.items()}
    if isinstance(value, list):
        return [truncate_texts(one) for one in value]
    return value


def digest_body(data: bytes, key: bytes) -> bytes:
    """Digest a body with a key: equal bodies have equal digests, which nobody else can guess."""
    return hashlib.blake2b(data, key=key, digest_size=32).digest()


def to_plain_data(value: Any) -> Any:
    """Convert any value to plain data that can be written as JSON."""
    try:
        return _convert_plain(Redactor(secrets=tuple).without(value, ()))
    except Exception as error:  # noqa: BLE001 - an object may do anything when it is looked at
        return f"[{type(value).__name__} that cannot be read: {type(error).__name__}]"


def _convert_plain(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, int) and abs(value) > MAX_INTEGER:
        return str(value) if abs(value) < 10**4000 else "[a long number]"
    if isinstance(value, dict):
        return {_convert_plain(name): _convert_plain(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_convert_plain(one) for one in value]
    return value


# Names come again and again.
_redact_name = lru_cache(maxsize=4096)(partial(redact_text, chance=False))


_get_texts = attrgetter(*TEXT_COLUMNS.values())
_get_numbers = attrgetter(*NUMBER_COLUMNS.values())


def _make_names(texts: Sequence[str], secrets: Sequence[str]) -> list[str | None]:
    if secrets or max(map(len, texts)) > MAX_NAME_CHARS:
        return [_make_name(one, secrets) if one else None for one in texts]
    return [_redact_name(one) if one else None for one in texts]


def _make_name(text: str, secrets: Sequence[str]) -> str | None:
    if not secrets and len(text) <= MAX_NAME_CHARS:
        return _redact_name(text)
    return shorten_name(text, partial(_clean_name, secrets)) or None


def _clean_name(secrets: Sequence[str], text: str) -> str:
    for secret in secrets:
        text = text.replace(secret, REDACTED)
    return _redact_name(text) if len(text) <= MAX_NAME_CHARS else redact_text(text, chance=False)


def _to_integer(value: float | bool) -> int:
    return max(-MAX_INTEGER, min(MAX_INTEGER, int(value)))


def _encode_json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _encode_unknown(value: Any) -> str:
    """Encode what JSON does not have: only its type is told."""
    return REDACTED if isinstance(value, Secret) else f"[{type(value).__name__}]"


ROW_ENCODER = msgspec.json.Encoder(enc_hook=_encode_unknown)
ROW_DECODER = msgspec.json.Decoder(RawRow)
JSON_MARKS = re.compile(rb'"(?:[^"\\\\]|\\\\.)*"|[\[\]{}:,]')
