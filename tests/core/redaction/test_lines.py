"""Redaction: the lines of a log, and command lines."""

import pytest

from isthmus.core.redaction.lines import redact_command

SECRET = "hunter2-Zq8"


@pytest.mark.parametrize("name", ["pw", "db2pw", "db_pw", "X-Key", "db2-pass", "userpwd", "Bearer"])
def test_what_a_command_line_calls_secret_is_hidden(name):
    """Ours: as a flag before it, with a sign between, and as a header."""
    flagged = ["serve", f"--{name}", SECRET]
    joined = ["serve", f"--{name}={SECRET}", f"{name}: {SECRET}"]

    assert SECRET not in " ".join(redact_command(flagged))
    assert SECRET not in " ".join(redact_command(joined))
