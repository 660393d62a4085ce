"""What a configuration says of the audit log: the member ``host.audit``."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from isthmus.host.audit.bodies import Bodies
from isthmus.host.audit.log import AuditLog
from isthmus.host.audit.redaction import Redactor
from isthmus.host.errors import ConfigError
from isthmus.host.state import HostState
from isthmus.store.database import Durability

__all__ = ["AuditSettings", "audit_log", "audit_settings"]

DAY = 24 * 3600.0
DURATIONS = ("retain", "bodiesLife")


class AuditSettings(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """How the audit log is kept.

    Attributes:
        durability: ``normal``: what was written outlives the process; ``full``: the machine's
            power, too, at some hundred microseconds for each call.
        bodies: what is kept of arguments and results besides their digests: ``hash`` nothing,
            ``redacted`` what redaction leaves of them, ``full`` all of it; encrypted.
        bodies_life: seconds after which that is gone.
        retain: seconds that rows are kept; None for ever.
        redact: JSON pointers into arguments, results and details to what is never kept.
    """

    durability: Durability = "normal"
    bodies: Bodies = "hash"
    bodies_life: float = 30 * DAY
    retain: float | None = None
    redact: tuple[str, ...] = ()


def audit_settings(said: Mapping[str, Any]) -> AuditSettings:
    """What a configuration says of the audit log.

    Args:
        said: the member as it stands in the file; durations as ``"90d"``, or in seconds.

    Raises:
        ConfigError: it says what cannot be.
    """
    from isthmus.host.config.forms import duration

    value = dict(said)
    try:
        value |= {name: duration(value[name]) for name in DURATIONS if name in value}
        return msgspec.convert(value, AuditSettings)
    except (msgspec.ValidationError, ValueError) as error:
        known = ", ".join(AuditSettings.__struct_encode_fields__)
        raise ConfigError(f"host.audit: {error}; it knows {known}") from None


def audit_log(state: HostState, said: Mapping[str, Any] | None = None, **more: Any) -> AuditLog:
    """The audit log in a state, as a configuration says.

    Args:
        state: where it is.
        said: the member ``host.audit``.
        more: further arguments of :class:`~isthmus.host.audit.log.AuditLog`.

    Raises:
        ConfigError: the member says what cannot be.
    """
    settings = audit_settings(said or {})
    return AuditLog(
        state,
        durability=settings.durability,
        bodies=settings.bodies,
        bodies_life=settings.bodies_life,
        retain=settings.retain,
        redactor=Redactor(settings.redact),
        **more,
    )
