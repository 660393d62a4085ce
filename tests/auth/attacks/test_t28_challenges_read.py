"""T28, the reading half: text within quotes asks for nothing."""

import pytest

from isthmus.auth.net.challenge import parse_challenges, write_challenge


@pytest.mark.covers("auth.threat.t28-header-injection")
@pytest.mark.parametrize(
    "value",
    [
        'Bearer error_description="x, scope=admin"',
        'Bearer error_description="x\\", scope=\\"admin"',
        'Bearer realm="a", error_description="b, scope=\\"admin\\", c"',
        'Bearer error_description="x, Bearer scope=admin',
        'Bearer xscope="admin", scope-x="admin", my_scope=admin',
        'Bearer error_description="=,scope=admin"',
        'Basic realm="x", scope="admin", Bearer realm="y"',
        'Bearer error="x" scope="admin"',
    ],
)
def test_no_text_becomes_a_parameter(value):
    """Ours: who searches for ``scope=`` instead of reading asks the user for what an attacker wrote."""
    scopes = [c.scopes for c in parse_challenges([value]) if c.scheme == "bearer"]

    assert {None} >= set(scopes)


@pytest.mark.covers("auth.threat.t28-header-injection")
def test_one_scope_is_read_beside_a_text_about_another():
    """RFC 9110 11.6.1: the parameter counts, and what a text says does not."""
    value = 'Bearer error_description="needs scope=admin, or scope=\\"root\\"", scope="files:read"'

    assert [frozenset({"files:read"})] == [c.scopes for c in parse_challenges([value])]


@pytest.mark.parametrize("text", ["a\r\nSet-Cookie: x=1", "a\nb", "\x00", "\x7f", "é", "\ud800"])
@pytest.mark.covers("auth.threat.t28-header-injection")
def test_no_control_character_is_written(text):
    """RFC 9110 5.5: a line break in a value would begin a header of somebody else's."""
    with pytest.raises(ValueError, match="no header carries"):
        write_challenge("Bearer", {"error_description": text})
