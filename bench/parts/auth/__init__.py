"""Authorization: what a token costs a server and a client, and what refusing costs."""

import base64
import json
import sys
import time
from functools import partial

from load import Job
from processes import HERE
from results import ISTHMUS, MCP, Column, Table
from turns import Run

from isthmus.auth import PrivateKey
from isthmus.auth.tokens.jose import sign_jwt
from parts.auth import authorized, refusing, verifying

sys.path.append(str(HERE / "servers"))

import samples

SERVING = "auth"
TABLES = (
    Table(
        SERVING,
        "A `tools/call` of 2026-07-28 over HTTP by what guards it: server CPU, 64 connections",
        {
            "none": Column("no guard, µs"),
            "static": Column("a fixed token"),
            "static_1000": Column("1,000 fixed tokens"),
            "es256": Column("a signed token (ES256)"),
        },
    ),
    Table(
        "tokens",
        "Verifying an access token (a JWT), the issuer's keys at hand",
        {
            "warm_us": Column("a token that came before, CPU µs"),
            "new_us": Column("a new token, CPU µs"),
        },
        compared=False,
    ),
    Table(
        "refusals",
        "A `tools/call` of 2026-07-28 in process, by who may and who may not",
        {"refusal_us": Column("CPU, µs")},
        compared=False,
    ),
    Table(
        "client auth",
        "A client of a guarded server, CPU of both in one process",
        {
            "wrap_us": Column("added to a request, µs"),
            "call_us": Column("a whole call, µs"),
        },
        compared=False,
    ),
)
FIXED_TOKENS = 1_000


def measure(run: Run) -> None:
    """What is in process, and then servers with and without a guard."""
    seconds = run.effort.seconds / 2
    for table, part, work in (
        ("tokens", verifying, verifying.tokens),
        ("refusals", refusing, refusing.refusals),
        ("client auth", authorized, authorized.clients),
    ):
        run.take_turns(table, {row: partial(work, row, seconds) for row in part.ROWS})
    measure_servers(run)


def measure_servers(run: Run) -> None:
    """The same call behind every kind of guard."""
    key = PrivateKey.generate("ES256", kid="bench")
    shown = base64.urlsafe_b64encode(json.dumps(dict(key.jwk)).encode()).decode()
    many = tuple(map(samples.make_token, range(FIXED_TOKENS)))[:: FIXED_TOKENS // 64]
    kinds = {
        "none": ("add", ("",)),
        "static": ("auth=1", (samples.make_token(0),)),
        "static_1000": (f"auth={FIXED_TOKENS}", many),
        "es256": (f"auth=es256:{shown}", (sign_token(key),)),
    }
    for column, (case, tokens) in kinds.items():
        names = (ISTHMUS,) if column == "es256" else (ISTHMUS, MCP)
        with run.open_http(SERVING, case, "modern", *names) as talks:
            works = {
                name: partial(
                    time_guarded,
                    column,
                    Job(talk.pid, talk.port, talk.wire, 64, run.effort.seconds / 2, tokens=tokens),
                )
                for name, talk in talks.items()
            }
            run.take_turns(SERVING, works)


def time_guarded(column: str, job: Job) -> dict[str, float]:
    """Microseconds of server CPU of a call."""
    return {column: job.run()["cpu_us"]}


def sign_token(key: PrivateKey) -> str:
    """A good token for the guarded servers."""
    claims = {"iss": samples.ISSUER, "aud": samples.RESOURCE, "sub": "ada", "client_id": "bench"}
    return sign_jwt({**claims, "scope": "use", "exp": time.time() + 3600}, key, typ="at+jwt")
