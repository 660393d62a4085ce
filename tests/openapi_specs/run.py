"""Proof on public API descriptions: every operation is called, and every request is read again.

Prints a table and ends with 0 where at least 98 of 100 operations are offered, and all that arrived
was what had been sent; with 77 where the documents cannot be had. ``--page`` writes the README.
"""

import argparse
import asyncio
import logging
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests")]

import peers  # noqa: E402 - tools/peers.py: found through the line above

from support.openapi.described_apis import load_api  # noqa: E402 - as above
from support.openapi.proof import Proof, count_reasons, prove  # noqa: E402 - as above
from support.openapi.recipes import FOLDER, fetch_documents, load_recipes, make_page  # noqa: E402

SKIPPED = 77
MIN_OFFERED = 0.98
SHOWN_FAULTS = 5
COLUMNS = "{:<18} {:>5} {:>6} {:>8} {:>7} {:>7} {:>7} {:>7}"


def main() -> int:
    """Prove what is named on the command line, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="documents; all by default")
    parser.add_argument("--page", action="store_true", help="write the README and end")
    parser.add_argument("--reasons", action="store_true", help="print each operation left out")
    given = parser.parse_args()
    if given.page:
        (FOLDER / "README.md").write_text(make_page(), encoding="utf-8")
        return 0
    try:
        paths = fetch_documents()
    except peers.Unavailable as why:
        print(f"the documents are not to be had: {why}")
        return SKIPPED
    logging.getLogger("isthmus").setLevel(logging.CRITICAL)  # what is left out is printed below
    began, total = time.monotonic(), Proof()
    print(
        COLUMNS.format("document", "is", "ops", "offered", "called", "exact", "refused", "read s")
    )
    for recipe in load_recipes():
        if given.names and recipe.name not in given.names:
            continue
        proof = asyncio.run(prove(load_api(paths[recipe.name])))
        print_proof(recipe.name, recipe.version, proof, given.reasons)
        add_proof(total, proof)
    print_proof("all", "", total, with_reasons=False)
    share = total.offered / total.operations
    print(f"offered {share:.2%}, of those called {total.called / total.offered:.2%}, ", end="")
    print(f"faults {len(total.faults)}, in {time.monotonic() - began:.0f} s")
    return int(bool(total.faults) or share < MIN_OFFERED)


def print_proof(name: str, version: str, proof: Proof, with_reasons: bool) -> None:
    """Print a line of the table, and below it what went wrong."""
    counts = (proof.operations, proof.offered, proof.called, proof.exact, proof.refused)
    print(COLUMNS.format(name, version[:3], *counts, f"{proof.seconds:.2f}"), flush=True)
    if not version:
        return
    for fault in proof.faults[: None if with_reasons else SHOWN_FAULTS]:
        print(f"    FAULT {fault}")
    for label, lines in (("left out", proof.left_out), ("never called", proof.mute)):
        if with_reasons:
            for line in lines:
                print(f"    {label}: {line}")
        else:
            for reason, number in count_reasons(lines).most_common(SHOWN_FAULTS):
                print(f"    {label} ({number}): {reason}")


def add_proof(total: Proof, one: Proof) -> None:
    """Add the outcome of a document to that of all."""
    for name in ("operations", "offered", "called", "exact", "refused", "seconds"):
        setattr(total, name, getattr(total, name) + getattr(one, name))
    total.faults += one.faults
    total.left_out += one.left_out
    total.mute += one.mute


if __name__ == "__main__":
    sys.exit(main())
