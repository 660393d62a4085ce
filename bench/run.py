"""Measure isthmus and its peers in one run, and write the ratios to RESULTS.md.

``make bench`` runs all of it in about twenty minutes; ``--short`` is CI's form, which writes nothing
and ends non-zero only when a starred floor is missed. Peers take turns within each round, so that
whatever else the machine does meets them all alike. Needs Linux; two cores are better than one.
"""

import argparse
import os
import sys
import time

from contenders import find_contenders
from figures import write_figures
from floors import find_unmeasured, judge_floors
from parts import PARTS, SHORT_PARTS, TABLES
from processes import LOAD_CORE, raise_file_limit, say
from report import RESULTS, format_report, write_report
from results import MCP, Results
from turns import Effort, Run

SKIPPED = 77  # what .ci/run reads as "could not get what it needs"

SHORT = Effort(short=True, rounds=2, seconds=0.6, endurance=3)
MAX_REPEATS = 3  # of a part that missed what CI holds
FULL = Effort(short=False, rounds=4, seconds=1.0, endurance=10)


def read_arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description="Ratios against other implementations.")
    parser.add_argument("--short", action="store_true", help="CI's form: about two minutes")
    parser.add_argument("--only", action="append", choices=PARTS, help="one part; repeat for more")
    parser.add_argument("--rounds", type=int, help="how often each has its turn")
    parser.add_argument("--turn", type=float, help="seconds of each turn")
    parser.add_argument("--seconds", type=float, help="seconds of stdio at full speed")
    parser.add_argument("--node", action="store_true", help="npm packages in the short form, too")
    return parser.parse_args()


def choose_effort(given: argparse.Namespace) -> Effort:
    """How much the command line wants."""
    usual = SHORT if given.short else FULL
    return Effort(
        short=given.short,
        rounds=given.rounds or usual.rounds,
        seconds=given.turn or usual.seconds,
        endurance=given.seconds or usual.endurance,
    )


def measure_parts(run: Run, names: list[str]) -> None:
    """Measure part after part; one that breaks is named and ends no other."""
    for name in names:
        say(f"part {name}")
        began = time.monotonic()
        try:
            PARTS[name].measure(run)
        except Exception as error:  # noqa: BLE001 - a broken part must not end the run
            run.results.fail(name, "the whole part", error)
            say(f"  {name}: FAILED: {error!r}")
        run.results.seconds[name] = run.results.seconds.get(name, 0) + time.monotonic() - began
        say(f"part {name} took {time.monotonic() - began:.0f} s")


def repeat_missed(run: Run, names: list[str]) -> None:
    """Give what missed a starred floor some more chances: the machine may have been busy just then."""
    for _ in range(MAX_REPEATS):
        judged = judge_floors(run.results)
        tables = {v.floor.table for v in judged if v.floor.starred and not v.met}
        missed = [name for name in names if tables & {table.name for table in PARTS[name].TABLES}]
        if not missed:
            break
        say(f"once more: {', '.join(missed)}")
        measure_parts(run, missed)


def judge(results: Results, *, complete: bool) -> int:
    """1 when a starred floor was missed, or not measured at all in a complete run."""
    missed = [v.floor.measure for v in judge_floors(results) if v.floor.starred and not v.met]
    absent = [floor.measure for floor in find_unmeasured(results)] if complete else []
    for measure in missed:
        say(f"below its floor: {measure}")
    for measure in absent:
        say(f"not measured: {measure}")
    return 1 if missed or absent else 0


def main() -> int:
    """Run what was asked for; the exit code."""
    given = read_arguments()
    effort = choose_effort(given)
    results = Results(TABLES)
    field = find_contenders(node=given.node or not given.short, skip=results.skip)
    for text in results.skipped:
        say(f"takes no part: {text}")
    alone = MCP not in {one.name for one in field}
    if given.short and alone:
        say("skipped, as there is nobody to compare with")
        return SKIPPED
    os.sched_setaffinity(0, {LOAD_CORE})
    raise_file_limit()
    # Installed packages come with their byte code: ours is kept, too, after the first import.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    run = Run(field, effort, results)
    names = given.only or list(SHORT_PARTS if given.short else PARTS)
    measure_parts(run, names)
    if given.short:
        repeat_missed(run, names)
    print(format_report(results))
    if not given.short and not given.only:
        write_report(results, effort)
        for path in write_figures(RESULTS.read_text(encoding="utf-8"), results.tables):
            say(f"drew {path}")
    return judge(results, complete=not given.only and not alone)


if __name__ == "__main__":
    sys.exit(main())
