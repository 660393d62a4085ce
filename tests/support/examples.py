"""Number of examples that a property is tried with: some in every run, all where it is asked for."""

import os

TRIES_ALL = os.environ.get("EXAMPLES") == "all"  # as the step `properties` of .ci/run sets it

PART_OF_ALL = 0.1

FEW_EXAMPLES = 10  # below which there is nothing to save


def count_examples(all: int) -> int:
    """How many examples to try now, of those that are tried where all are asked for."""
    return all if TRIES_ALL or all <= FEW_EXAMPLES else max(FEW_EXAMPLES, round(all * PART_OF_ALL))
