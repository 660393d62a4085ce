"""What a configuration says of the audit log."""

import pytest

from audit_rows import intent
from isthmus.host.audit.settings import audit_log, audit_settings
from isthmus.host.errors import ConfigError
from isthmus.host.state import HostState


def test_durations_are_read_as_people_write_them():
    """Ours: and what is not said is careful."""
    said = audit_settings(
        {"durability": "full", "bodies": "redacted", "retain": "90d", "bodiesLife": 60}
    )

    assert ("full", "redacted", 90 * 86400.0, 60.0) == (
        said.durability, said.bodies, said.retain, said.bodies_life,
    )  # fmt: skip
    assert ("normal", "hash", None, ()) == (
        audit_settings({}).durability, audit_settings({}).bodies, audit_settings({}).retain,
        audit_settings({}).redact,
    )  # fmt: skip


@pytest.mark.parametrize(
    "said", [{"durability": "best"}, {"retain": "soon"}, {"keep": 1}, {"redact": "/a"}]
)
def test_what_cannot_be_is_told(said):
    """Ours: with what there is."""
    with pytest.raises(ConfigError, match=r"host\.audit: .*durability, bodies"):
        audit_settings(said)


async def test_a_log_is_made_as_the_settings_say(tmp_path):
    """Ours: pointers are redacted in every row."""
    state = HostState(tmp_path)
    log = audit_log(state, {"durability": "full", "redact": ["/title"]}, node="me")
    await log.intent(intent())
    line = (await log.tail())[0]
    await log.close()
    await state.close()

    assert ("full", "me", {"title": "[redacted]"}) == (
        state.database.durability, line.node, line.arguments,
    )  # fmt: skip
