"""Ids that sort by time: nobody else has them, and later ones sort after earlier ones."""

import os
import subprocess
import sys

import pytest

from isthmus.runtime.sorted_ids import ID_ALPHABET, MAX_SPARE_DRAWS, new_id

FORKED = """
import os
from isthmus.runtime.sorted_ids import new_id
new_id()
if os.fork():
    os.wait()
print(*[new_id() for _ in range(5)], flush=True)
os._exit(0)
"""


def test_ids_differ_and_sort_by_their_time():
    """Ours: rows and lists that are sorted by id are sorted by time."""
    ids = [new_id(lambda at=at: at / 1000) for at in range(3 * MAX_SPARE_DRAWS)]

    assert len(set(ids)) == len(ids)
    assert sorted(ids) == ids
    assert {26} == set(map(len, ids))
    assert set("".join(ids)) <= set(ID_ALPHABET)


def test_ids_of_one_time_differ_in_their_random_part():
    """Ours: nobody guesses an id, or has the same one."""
    ids = {new_id(lambda: 1_790_000_000.123) for _ in range(3 * MAX_SPARE_DRAWS)}

    assert 3 * MAX_SPARE_DRAWS == len({id[10:] for id in ids})
    assert {"01M3250V3V"} == {id[:10] for id in ids}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_process_draws_other_ids_than_its_parent():
    """Ours: random bytes are fetched for many ids at once, and not for two processes."""
    done = subprocess.run(
        [sys.executable, "-c", FORKED], capture_output=True, text=True, check=True
    )

    child, parent = ([id[10:] for id in line.split()] for line in done.stdout.splitlines())
    assert 10 == len({*child, *parent})
