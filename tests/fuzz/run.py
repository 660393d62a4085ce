"""Fuzz the pure core: ``python tests/fuzz/run.py [TARGET ...] [--seconds 60]``.

Each target runs under atheris, which steers by coverage, in a process of its own: bounded in
time, in memory (growth is a finding) and in the time of one input (a hang is a finding). What it
found is kept under ``.fuzz/`` with the bytes that show it. Ends with 0 where nothing was found,
1 where something was, and 77 where atheris cannot be had.
"""

import argparse
import importlib.util
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
KEPT = HERE.parents[1] / ".fuzz"
SKIPPED = 77
LONGEST_INPUT = 4096  # bytes
LONGEST_RUN = 5  # seconds one input may take
MEMORY = 600  # MiB a target may grow to


def one(name: str, seconds: int, seed: int) -> None:
    """Fuzz one target in this process; never returns."""
    import atheris

    sys.path.insert(0, str(HERE.parent))
    with atheris.instrument_imports(include=["isthmus"]):
        from fuzz.targets import TARGETS
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


def watched(name: str, seconds: int, seed: int) -> bool:
    """Fuzz one target in a process of its own, and say how it went."""
    command = [sys.executable, __file__, name, "--inside", "--seconds", str(seconds)]
    command += ["--seed", str(seed)]
    log = KEPT / f"{name}.log"
    with log.open("wb") as out:
        status = subprocess.run(
            command, stdout=out, stderr=subprocess.STDOUT, check=False, timeout=seconds * 3 + 120
        ).returncode
    text = log.read_text(errors="replace")
    stats = dict(
        line.removeprefix("stat::").split(":") for line in text.splitlines() if "stat::" in line
    )
    runs, peak = (
        stats.get(key, "?").strip() for key in ("number_of_executed_units", "peak_rss_mb")
    )
    print(f"{name:10} {'nothing found' if not status else 'FOUND'}: {runs} runs, {peak} MiB")
    if status:
        print(text[-4000:])
    return not status


def names() -> list[str]:
    """Every target."""
    sys.path.insert(0, str(HERE.parent))
    from fuzz.targets import TARGETS

    return list(TARGETS)


def main() -> int:
    """Run the targets asked for, two at a time."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="*", help="by name; all of them without any")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--seed", type=int, default=1, help="another one looks elsewhere first")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if importlib.util.find_spec("atheris") is None:
        print(
            "skipped: atheris is not installed here: it has wheels for Python 3.11 to 3.13 on Linux"
        )
        return SKIPPED
    if asked.inside:
        one(asked.targets[0], asked.seconds, asked.seed)
    KEPT.mkdir(exist_ok=True)
    with ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        went = list(
            pool.map(
                lambda name: watched(name, asked.seconds, asked.seed), asked.targets or names()
            )
        )
    return 0 if all(went) else 1


if __name__ == "__main__":
    raise SystemExit(main())
