"""Settings of the audit log in a configuration."""

import pytest

from isthmus.host.audit.log import make_audit_log, parse_audit_settings
from isthmus.host.model.errors import ConfigError
from isthmus.host.state.database import HostState
from support.host.audit_rows import intent_row


def test_durations_are_read_as_people_write_them():
    """Ours: and what is not said is careful."""
    said = parse_audit_settings(
        {"durability": "full", "bodies": "redacted", "retain": "90d", "bodiesLife": 60}
    )

    assert ("full", "redacted", 90 * 86400.0, 60.0) == (
        said.durability, said.bodies, said.retain, said.bodies_life,
    )  # fmt: skip
    assert ("normal", "hash", None, ()) == (
        parse_audit_settings({}).durability, parse_audit_settings({}).bodies, parse_audit_settings({}).retain,
        parse_audit_settings({}).redact,
    )  # fmt: skip


@pytest.mark.parametrize(
    "said", [{"durability": "best"}, {"retain": "soon"}, {"keep": 1}, {"redact": "/a"}]
)
def test_what_cannot_be_is_told(said):
    """Ours: with what there is."""
    with pytest.raises(ConfigError, match=r"host\.audit: .*durability, bodies"):
        parse_audit_settings(said)


async def test_a_log_is_made_as_the_settings_say(tmp_path):
    """Ours: pointers are redacted in every row."""
    state = HostState(tmp_path)
    log = make_audit_log(state, {"durability": "full", "redact": ["/title"]}, node="me")
    await log.intent(intent_row())
    line = (await log.tail())[0]
    await log.close()
    await state.close()

    assert ("full", "me", {"title": "[redacted]"}) == (
        state.database.durability, line.node, line.arguments,
    )  # fmt: skip
