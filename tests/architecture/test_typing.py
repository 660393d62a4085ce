"""Typing: what users write is checked strictly, and the checker sees the types they mean."""

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


@pytest.mark.timeout(180)  # without a cache, mypy reads every dependency first
def test_a_strict_checker_sees_in_a_users_code_the_types_its_author_means():
    """Ours: decorators keep a function's type, answers and results have the type asked for."""
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "tests/typing_tests"],
        cwd=TESTS.parent,
        capture_output=True,
        text=True,
        check=False,
    )

    assert "" == done.stdout + done.stderr
