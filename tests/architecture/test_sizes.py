"""Files, functions and halves: small enough to read, with no list of exemptions."""

import statistics

FILE, LONGEST, P95, MEDIAN = 800, 60, 35, 8


def test_no_file_is_too_long(sources):
    """Ours: a file fits in one sitting."""
    long = [(s.name, n) for s in sources if (n := s.text.count("\n")) > FILE]

    assert [] == long, f"files are at most {FILE} lines"


def test_no_function_is_too_long(sources):
    """Ours: a function fits on one screen."""
    long = [(where, n) for s in sources for where, n in s.functions() if n > LONGEST]

    assert [] == long, f"functions are at most {LONGEST} lines"


def test_most_functions_are_short(sources):
    """Ours: half of all functions have few lines, and nearly all of them not many."""
    lengths = [n for s in sources for _, n in s.functions()]
    median = statistics.median(lengths)
    p95 = statistics.quantiles(lengths, n=20)[-1]
    files = [s.text.count("\n") for s in sources]
    print(  # noqa: T201 - the numbers themselves are worth reading: `pytest -s`
        f"\n{len(files)} files, {sum(files)} lines, longest {max(files)}, "
        f"median {statistics.median(files):g}\n{len(lengths)} functions, longest {max(lengths)}, "
        f"p95 {p95:g}, median {median:g}"
    )

    assert median <= MEDIAN
    assert p95 <= P95
