"""No secret stands in the audit log: not in a table, not in an index, not beside it, not in an export."""

import asyncio
import hashlib
import tempfile
from base64 import b64encode, urlsafe_b64encode
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.auth.tokens.secret import Secret
from isthmus.core.redaction.live_secrets import spell_secret
from isthmus.host.audit.log import AuditLog
from isthmus.host.audit.queries import open_log, read_lines
from isthmus.host.model.row import AuditRow, RowKind
from isthmus.host.state.database import HostState
from support.examples import count_examples


def drawn(number, size=32):
    """Bytes as if by chance, always the same ones."""
    return hashlib.blake2b(b"%d" % number, digest_size=size).digest()


def letters(number):
    return (
        urlsafe_b64encode(drawn(number, 48))
        .decode()
        .rstrip("=")
        .replace("-", "a")
        .replace("_", "B")
    )


LOOKS = {
    "jwt": lambda n: f"eyJhbGciOiJIUzI1NiJ9.{letters(n)}.{letters(n + 1)}",
    "sk": lambda n: f"sk-proj-{letters(n)[:24]}",
    "aws": lambda n: "AKIA" + "".join(c for c in letters(n).upper() if c.isalnum())[:16],
    "github": lambda n: f"ghp_{letters(n)[:36]}",
    "slack": lambda n: f"xoxb-{n}-{letters(n)[:20]}",
    "pem": lambda n: (
        f"-----BEGIN PRIVATE KEY-----\n{b64encode(drawn(n)).decode()}\n-----END PRIVATE KEY-----"
    ),
    "hex": lambda n: drawn(n).hex(),
    "chance": letters,
}
"""What is known by its look."""

PLACES = {
    "value": lambda s: {"text": s},
    "within": lambda s: {"text": f"before {s} after"},
    "key": lambda s: {s: "x"},
    "deep": lambda s: {"a": [{"b": (s, 1)}]},
    "url": lambda s: {"url": f"https://ada:{s}@git.example/x".replace("\n", "")},
    "query": lambda s: {"url": f"https://x.example/?a=1&t={s}&b=2"},
    "json": lambda s: {"text": msgspec.json.encode({"inner": s}).decode()},
    "argv": lambda s: ["run", "--verbose", f"--header=x:{s}", s],
    "header": lambda s: {"headers": {"X-Thing": f"Bearer {s}"}},
}
"""Where it stands."""

TEXT_FIELDS = [field.name for field in msgspec.structs.fields(AuditRow) if field.type is str]


def row(kind, field, value, place):
    """A row of this kind with a secret in one of its members."""
    base = {"kind": kind, "call": "c1", "action": "tool.call", "server": "s"}
    if field in TEXT_FIELDS:
        return AuditRow(**{**base, field: value})
    if field == "labels":
        return AuditRow(**base, labels=(value,))
    return AuditRow(**base, **{field: PLACES[place](value)})


async def leaks(rows, secret):
    """The files, or the export, in which a secret stands in any spelling."""
    spelt = [form.encode("utf-8", "surrogatepass") for form in spell_secret(secret)]
    found = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        state = HostState(folder)
        log = AuditLog(state, bodies="full")
        for one in rows:
            log.note(one)
        await log.flush()
        with open_log(folder) as db:
            told = [msgspec.json.encode(line) for line in read_lines(db)]
            list(db.execute("SELECT 1 FROM event"))
        await state.read(lambda db: None)
        found += within(folder, spelt)
        found += ["export" for line in told if any(form in line for form in spelt)]
        await log.close()
        await state.close()
    return found


def within(folder, spelt):
    """The files of a state, the WAL among them, in which one of some spellings stands."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path.name for path in files if any(form in path.read_bytes() for form in spelt)]


FIELDS = ["arguments", "result", "detail", "object", "error", "labels"]


@pytest.mark.covers("hostaudit.redaction.canaries")
@settings(max_examples=count_examples(50))
@given(
    look=st.sampled_from(sorted(LOOKS)),
    number=st.integers(0, 10**6),
    kind=st.sampled_from(get_args(RowKind)),
    field=st.sampled_from(FIELDS),
    place=st.sampled_from(sorted(PLACES)),
)
def test_what_looks_like_a_secret_stands_nowhere(look, number, kind, field, place):
    """Ours: in rows of every kind, in whatever member others fill in; bodies are encrypted."""
    secret = LOOKS[look](number)

    assert [] == asyncio.run(leaks([row(kind, field, secret, place)], secret))


@pytest.mark.covers("hostaudit.redaction.canaries", "hostaudit.redaction.live")
@settings(max_examples=count_examples(50))
@given(
    secret=st.text(st.characters(exclude_categories=["Cs"]), min_size=6, max_size=30),
    kind=st.sampled_from(get_args(RowKind)),
    field=st.sampled_from([*FIELDS, *(name for name in TEXT_FIELDS if name != "kind")]),
    place=st.sampled_from(sorted(PLACES)),
)
def test_what_this_process_holds_as_a_secret_stands_nowhere(secret, kind, field, place):
    """Ours: whatever it looks like, in every member."""
    canary = f"~{secret}~{hashlib.blake2b(secret.encode(), digest_size=4).hexdigest()}"
    held = Secret(canary)
    found = asyncio.run(leaks([row(kind, field, canary, place)], canary))

    assert held == canary
    assert [] == found
