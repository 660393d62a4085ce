"""Payload: strings and lists of records from 1 KB to 10 MB, in and out, and one large blob."""

import gc
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from processes import HERE, cpu_seconds, read_memory
from results import ISTHMUS, SDK, SERVER, Column, Table, make_sizes
from talks import HttpTalk, PipeTalk, time_answer, time_requests
from turns import Run

sys.path.append(str(HERE / "servers"))

import samples

SIZES = {"1 KB": 1_000, "10 KB": 10_000, "100 KB": 100_000, "1 MB": 1_000_000, "10 MB": 10_000_000}
TIMES = {"1 KB": 300, "10 KB": 100, "100 KB": 20, "1 MB": 3, "10 MB": 1}
"""Calls of one turn; a call of 10 MB takes the slowest some seconds."""

RECORD_BYTES = 112  # a little more than one has, so that 10 MB are not more than that


@dataclass(frozen=True)
class Kind:
    """A kind of payload.

    Attributes:
        title: in words.
        tool: which is called.
        make_arguments: the arguments with which it takes or gives about so many bytes.
        names: who can do that; everybody if left out.
    """

    title: str
    tool: str
    make_arguments: Callable[[int], dict[str, Any]]
    names: tuple[str, ...] = ()


def make_records(size: int) -> dict[str, Any]:
    """A list of records of about so many bytes, as an argument."""
    return {"people": samples.make_people(max(1, size // RECORD_BYTES))}


def count_records(size: int) -> dict[str, Any]:
    """How many records are wanted, so that they have about so many bytes."""
    return {"count": max(1, size // RECORD_BYTES)}


KINDS = {
    "take_text": Kind(
        "a string as argument", "take_text", lambda size: {"text": samples.make_text(size)}
    ),
    "give_text": Kind("a string as result", "give_text", lambda size: {"size": size}),
    "take_document": Kind(
        "a string with line ends and quotes as argument",
        "take_text",
        lambda size: {"text": samples.make_text(size, samples.DOCUMENT)},
    ),
    "give_document": Kind(
        "a string with line ends and quotes as result",
        "give_document",
        lambda size: {"size": size},
    ),
    "take_structs": Kind(
        "a list of records (100 bytes each) as argument", "take_structs", make_records
    ),
    "take_dicts": Kind("a list of objects without a type as argument", "take_dicts", make_records),
    "take_strings": Kind(
        "a list of short strings without a type as argument",
        "take_strings",
        lambda size: {"words": ["word"] * max(1, size // 7)},
    ),
    "give_structs": Kind("a list of records as result, and as text", "give_structs", count_records),
    "give_data": Kind(
        "a list of records as result, without text",
        "give_data",
        count_records,
        (ISTHMUS, SDK, SERVER),
    ),
}
HTTP_KINDS = ("take_text", "give_text", "take_structs", "give_structs")
HTTP_SIZES = ("1 KB", "100 KB", "1 MB")  # more than 4 MiB is refused by default
PEAK, BLOB = "payload peak", "blob"
BLOB_MB = 50
SHORT_SIZES = ("100 KB", "1 MB")
SHORT_KINDS = ("take_text", "take_structs", "give_structs")
TABLES = (
    *(
        Table(
            f"payload {kind}",
            f"Payload over stdio: {how.title}, server CPU of a call",
            make_sizes("ms", SIZES),
        )
        for kind, how in KINDS.items()
    ),
    *(
        Table(
            f"payload http {kind}",
            f"Payload over HTTP (2025-06-18, JSON): {KINDS[kind].title}, server CPU of a call",
            make_sizes("ms", HTTP_SIZES),
        )
        for kind in HTTP_KINDS
    ),
    Table(
        PEAK,
        "The most memory of a server after payloads of up to 10 MB over stdio, MB",
        {kind: Column(how.title, pick="median") for kind, how in KINDS.items()},
    ),
    Table(
        BLOB,
        f"A resource of {BLOB_MB} MB, read over stdio",
        {
            "blob_ms": Column("until it is there, ms"),
            "blob_cpu_ms": Column("server CPU, ms"),
            "blocked_ms": Column("the loop was blocked for, ms"),
            "blob_peak_mb": Column("peak memory, MB", pick="median"),
        },
    ),
)


def measure(run: Run) -> None:
    """Everybody's servers at once; a size at a time."""
    gc.disable()  # the driver holds large texts, and its pauses are nobody's
    try:
        measure_pipes(run)
        if not run.effort.short:
            measure_http(run)
            measure_blobs(run)
    finally:
        gc.enable()


def measure_pipes(run: Run) -> None:
    """All kinds and sizes over stdio, each kind from fresh servers, and what it took of memory."""
    for kind, how in KINDS.items():
        if run.effort.short and kind not in SHORT_KINDS:
            continue
        with run.open_pipes(PEAK, "payload", *how.names) as talks:
            for size in SHORT_SIZES if run.effort.short else SIZES:
                params = {"name": how.tool, "arguments": how.make_arguments(SIZES[size])}
                works = {
                    name: partial(time_payload, talk, params, size) for name, talk in talks.items()
                }
                run.take_turns(f"payload {kind}", works, rounds=2 if size == "10 MB" else 3)
            if not run.effort.short:
                works = {name: partial(read_peak, talk, kind) for name, talk in talks.items()}
                run.take_turns(PEAK, works, rounds=1)


def time_payload(talk: PipeTalk | HttpTalk, params: dict[str, Any], size: str) -> dict[str, float]:
    """Milliseconds of server CPU of a call."""
    ask = talk.make_request("tools/call", params)
    return {size: time_requests(talk, ask, TIMES[size]) * 1e3}


def read_peak(talk: PipeTalk, kind: str) -> dict[str, float]:
    """The most memory the server ever had."""
    return {kind: read_memory(talk.pid, "VmHWM") / 1024}


def measure_http(run: Run) -> None:
    """Some kinds and sizes over HTTP."""
    with run.open_http("payload http take_text", "payload", "legacy json") as talks:
        for kind in HTTP_KINDS:
            for size in HTTP_SIZES:
                params = {
                    "name": kind,
                    "arguments": KINDS[kind].make_arguments(SIZES[size]),
                }
                works = {
                    name: partial(time_payload, talk, params, size) for name, talk in talks.items()
                }
                run.take_turns(f"payload http {kind}", works)


def measure_blobs(run: Run) -> None:
    """A large resource, from fresh servers."""
    with run.open_pipes(BLOB, f"blob={BLOB_MB}") as talks:
        works = {name: partial(read_blob, talk) for name, talk in talks.items()}
        run.take_turns(BLOB, works, rounds=3)


def read_blob(talk: PipeTalk) -> dict[str, float]:
    """Read it once, with a watch on the loop."""
    ask = talk.make_request("resources/read", {"uri": "blob://big"})
    talk.call("watch")
    before = cpu_seconds(talk.pid)
    took = time_answer(ask)
    spent = cpu_seconds(talk.pid) - before
    return {
        "blob_ms": took * 1e3,
        "blob_cpu_ms": spent * 1e3,
        "blocked_ms": float(talk.call("longest_ms")),
        "blob_peak_mb": read_memory(talk.pid, "VmHWM") / 1024,
    }
