"""Fuzz the pure core: ``python tests/fuzz/run.py [TARGET ...] [--seconds 60]``.

Each target runs under atheris, which steers by coverage, in a process of its own: bounded in
time, in memory (growth is a finding) and in the time of one input (a hang is a finding). What it
found is kept under ``.fuzz/`` with the bytes that show it. Ends with 0 where nothing was found,
1 where something was, and 77 where atheris cannot be had.
"""

import argparse
import importlib.util
import multiprocessing
import os
import sys
import time
from multiprocessing.connection import wait
from pathlib import Path

HERE = Path(__file__).resolve().parent
KEPT = HERE.parents[1] / ".fuzz"
SKIPPED = 77
LONGEST_INPUT = 4096  # bytes
LONGEST_RUN = 5  # seconds one input may take
MEMORY = 600  # MiB a target may grow to


def fuzz_target(name: str, seconds: int, seed: int) -> None:
    """Fuzz one target in this process, with its output in its log; never returns."""
    import atheris

    from fuzz.targets import TARGETS

    with (KEPT / f"{name}.log").open("wb") as out:
        os.dup2(out.fileno(), sys.stdout.fileno())
        os.dup2(out.fileno(), sys.stderr.fileno())
    seeds = KEPT / name / "seeds"
    seeds.mkdir(parents=True, exist_ok=True)
    for number, sample in enumerate(TARGETS[name].seeds()):
        (seeds / f"{number:04}").write_bytes(sample)
    (found := KEPT / name / "corpus").mkdir(exist_ok=True)
    flags = [
        f"-max_total_time={seconds}",
        f"-seed={seed}",
        f"-max_len={LONGEST_INPUT}",
        f"-timeout={LONGEST_RUN}",
        f"-rss_limit_mb={MEMORY}",
        f"-artifact_prefix={KEPT / name}/",
        "-print_final_stats=1",
    ]
    atheris.Setup([sys.argv[0], *flags, str(found), str(seeds)], TARGETS[name].run)
    atheris.Fuzz()


def report_target(name: str, status: int | None) -> bool:
    """Print how a target went; whether nothing was found."""
    text = (KEPT / f"{name}.log").read_text(errors="replace")
    stats = dict(
        line.removeprefix("stat::").split(":") for line in text.splitlines() if "stat::" in line
    )
    runs, peak = (
        stats.get(key, "?").strip() for key in ("number_of_executed_units", "peak_rss_mb")
    )
    word = "nothing found" if status == 0 else "FOUND"
    print(f"{name:10} {word}: {runs} runs, {peak} MiB", flush=True)
    if status != 0:
        print(text[-4000:])
    return status == 0


def import_targets() -> list[str]:
    """Import every target with its coverage counters; their names."""
    import atheris

    sys.path.insert(0, str(HERE.parent))
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 - it names 300 modules
        kept = os.dup(sys.stderr.fileno())
        os.dup2(nowhere.fileno(), sys.stderr.fileno())
        try:
            with atheris.instrument_imports(include=["isthmus"]):
                from fuzz.targets import TARGETS
        finally:
            os.dup2(kept, sys.stderr.fileno())
            os.close(kept)
    return list(TARGETS)


def fuzz_all(names: list[str], seconds: int, seed: int) -> bool:
    """Fuzz targets, so many at a time, in copies of this process; whether nothing was found."""
    copies = multiprocessing.get_context(
        "fork"
    )  # an instrumented import takes seconds: one for all
    limit, waiting, running, went = seconds * 3 + 120, list(names), {}, True
    while waiting or running:
        while waiting and len(running) < min(2, os.cpu_count() or 1):
            name = waiting.pop(0)
            process = copies.Process(target=fuzz_target, args=(name, seconds, seed))
            process.start()
            running[process.sentinel] = (name, process, time.monotonic() + limit)
        ended = set(wait(list(running), timeout=1))
        for sentinel, (name, process, end) in list(running.items()):
            if time.monotonic() > end:
                process.kill()
            elif sentinel not in ended:
                continue
            process.join()
            del running[sentinel]
            went = report_target(name, process.exitcode) and went
    return went


def main() -> int:
    """Run the targets asked for, two at a time."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="*", help="by name; all of them without any")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--seed", type=int, default=1, help="another one looks elsewhere first")
    asked = parser.parse_args()
    if importlib.util.find_spec("atheris") is None:
        print(
            "skipped: atheris is not installed here: it has wheels for Python 3.11 to 3.13 on Linux"
        )
        return SKIPPED
    KEPT.mkdir(exist_ok=True)
    known = import_targets()
    return 0 if fuzz_all(asked.targets or known, asked.seconds, asked.seed) else 1


if __name__ == "__main__":
    raise SystemExit(main())
