"""Proof on real servers of PyPI: under ``isthmus run --compat`` they say what their library says.

Prints a table and ends with 0 where at least 18 of 20 servers are the same; with 77 where PyPI
cannot be reached.
"""

import argparse
import asyncio
import logging
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests")]

import peers  # noqa: E402 - tools/peers.py: found through the line above

from support.compat.observation import (  # noqa: E402 - as above
    compare_answers,
    mask_answers,
    observe_server,
)
from support.compat.processes import (  # noqa: E402 - as above
    install_server,
    make_command,
    measure_rates,
    prepare_folder,
)
from support.compat.recipes import SERVERS, Recipe, load_recipes  # noqa: E402 - as above

SKIPPED = 77
REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
MIN_SAME_SHARE = 0.9
MAX_SPAWN_RATIO = 0.6
MIN_RATE_RATIO = 2.0
SERVERS_AT_ONCE = 2
COLUMNS = "{:<30} {:<8} {:>5} {:>6} {:>7} {:>7} {:>6} {:>8} {:>8} {:>6}"


@dataclass
class Comparison:
    """A server under both: where they differ, and how fast each of them is.

    Attributes:
        recipe: of the server.
        failure: the reason why nothing was compared.
        revisions: that both speak.
        answers: how many were compared.
        found: places that differ, by revision, with both values.
        spawns: seconds from the start to the first answer, own and ours.
        rates: calls per second, own and ours.
    """

    recipe: Recipe
    failure: str = ""
    revisions: list[str] = field(default_factory=list)
    answers: int = 0
    found: list[tuple[str, str, Any, Any]] = field(default_factory=list)
    spawns: tuple[list[float], list[float]] = field(default_factory=lambda: ([], []))
    rates: tuple[float, float] = (0.0, 0.0)

    @property
    def same(self) -> bool:
        """Whether nothing differs but what the recipe knows of."""
        return bool(self.revisions) and not self.found and not self.failure

    @property
    def spawn(self) -> tuple[float, float]:
        """The median seconds to the first answer, own and ours."""
        own, ours = self.spawns
        return (statistics.median(own), statistics.median(ours)) if ours else (0.0, 0.0)


def compare_server(recipe: Recipe, revisions: Iterable[str], *, timed: bool) -> Comparison:
    """Observe a server in each revision, own and ours in turn."""
    result = Comparison(recipe)
    try:
        python = install_server(recipe)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            work = Path(folder).resolve() / "work"
            for revision in revisions:
                _compare_revision(result, python, work, revision)
            if timed and not result.failure:
                result.rates = measure_rates(recipe, python, work)
    except peers.Unavailable:
        raise
    except Exception as error:  # noqa: BLE001 - a row says so, and the others are still compared
        result.failure = result.failure or f"{type(error).__name__}: {error}"
    return result


def _compare_revision(result: Comparison, python: Path, work: Path, revision: str) -> None:
    recipe, seen = result.recipe, []
    for compat in (False, True):
        prepare_folder(recipe, work)
        command = make_command(recipe, python, work, compat=compat)
        answers, spawned = asyncio.run(observe_server(command, recipe, revision, str(work)))
        seen.append(mask_answers(answers, recipe.masks))
        if "unopened" not in answers:
            result.spawns[compat].append(spawned)
        elif not compat:
            return  # its own library does not speak this revision
    own, ours = seen
    if "unopened" in ours:
        result.failure = f"{revision}: {ours['unopened']}"
        return
    result.revisions.append(revision)
    result.answers += len(own)
    result.found += (
        (revision, place, left, right)
        for place, left, right in compare_answers(own, ours)
        if not any(known.covers(revision, place, left, right) for known in recipe.differences)
    )


def print_row(result: Comparison) -> None:
    """One line of the table."""
    (own, ours), (slow, fast) = result.spawn, result.rates
    print(
        COLUMNS.format(
            result.recipe.name,
            "same" if result.same else "failed" if result.failure else "differs",
            len(result.revisions),
            result.answers,
            f"{own:.2f}",
            f"{ours:.2f}",
            f"{ours / own:.2f}" if own else "-",
            f"{slow:.0f}",
            f"{fast:.0f}",
            f"{fast / slow:.1f}" if slow else "-",
        ),
        flush=True,
    )


def print_differences(result: Comparison, most: int, width: int) -> None:
    """The places at which a server differs, and its failure."""
    if result.failure:
        print("   ", result.failure[-width * 2 :])
    for revision, place, own, ours in result.found[:most]:
        print(f"    {revision} {place}\n      own  {own!r:.{width}}\n      ours {ours!r:.{width}}")
    if len(result.found) > most:
        print(f"    … and {len(result.found) - most} more")


def judge_results(results: list[Comparison], *, timed: bool) -> int:
    """Print the figures of all, and return 1 where one is below its floor."""
    same = sum(one.same for one in results)
    print(f"the same: {same} of {len(results)}, floor {MIN_SAME_SHARE:.0%}")
    passed = same >= MIN_SAME_SHARE * len(results)
    spawns = [one.spawn[1] / one.spawn[0] for one in results if one.spawn[0]]
    rates = [one.rates[1] / one.rates[0] for one in results if one.rates[0]]
    if timed and spawns and rates:
        spawn, rate = statistics.median(spawns), statistics.median(rates)
        print(f"spawn to answer: {spawn:.2f} x, floor {MAX_SPAWN_RATIO} x (median of all)")
        print(f"calls per second: {rate:.1f} x, floor {MIN_RATE_RATIO} x (median of all)")
        passed = passed and spawn <= MAX_SPAWN_RATIO and rate >= MIN_RATE_RATIO
    return int(not passed)


def main() -> int:
    """Compare the servers named on the command line, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="servers; all by default")
    parser.add_argument("--recipes", type=Path, default=SERVERS, help="a file of other servers")
    parser.add_argument("--revisions", default=",".join(REVISIONS), help="with commas")
    parser.add_argument("--untimed", action="store_true", help="compare answers only")
    parser.add_argument("--show", type=int, default=6, help="differences printed per server")
    parser.add_argument("--width", type=int, default=300, help="letters printed per value")
    given = parser.parse_args()
    logging.getLogger("isthmus").setLevel(logging.CRITICAL)
    recipes = load_recipes(given.recipes)
    chosen = [one for one in recipes if not given.names or one.name in given.names]
    began, results = time.monotonic(), []
    print(
        COLUMNS.format(
            "server", "answers", "revs", "asked", "own s", "ours s", "x", "own /s", "ours /s", "x"
        )
    )
    with ThreadPoolExecutor(SERVERS_AT_ONCE) as pool:
        jobs = [
            pool.submit(compare_server, one, given.revisions.split(","), timed=not given.untimed)
            for one in chosen
        ]
        try:
            for job in jobs:
                results.append(job.result())
                print_row(results[-1])
                print_differences(results[-1], given.show, given.width)
        except peers.Unavailable as why:
            pool.shutdown(cancel_futures=True)
            print(f"the servers are not to be had: {why}")
            return SKIPPED
    status = judge_results(results, timed=not given.untimed)
    print(f"in {time.monotonic() - began:.0f} s")
    return status


if __name__ == "__main__":
    sys.exit(main())
