"""``python examples/gateway``: clients and servers of different years, and questions both ways."""

import sys

import pytest

from support.docs.blocks import run_command

pytestmark = pytest.mark.timeout(90)


def test_questions_reach_the_client_whose_call_it_is():
    """Ours: a client of 2025 is asked by a server of 2026, and the reverse."""
    said = run_command(f"{sys.executable} gateway").splitlines()

    assert "  Ada is asked: Which row for Playtime? 14" in said
    assert "  cinema__book: row 14 for Playtime" in said
    assert "  Bob is asked: For how many days do you want 'Dune'? 7" in said
    assert "  library__lend: 'Dune' for 7 days" in said
    assert "the cinema alone, at /mcp/cinema: Metropolis, Playtime" == said[-1]
