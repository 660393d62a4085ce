"""What is different between two configurations."""

import hashlib

import msgspec

from isthmus.auth.secret import Secret
from isthmus.host.config.entries import HostConfig, ServerEntry

__all__ = ["ConfigDiff", "difference", "entry_digest"]

UNSAID = frozenset({"layer", "source", "secrets", "written"})
"""What says where an entry stands and what of it is secret, and not what it is."""


class ConfigDiff(msgspec.Struct, frozen=True, kw_only=True):
    """What is different in a new configuration; false where nothing is.

    Attributes:
        added: names of servers that were not there.
        removed: names of those that are not there any more.
        changed: names of those whose entries are different.
        broken: what is wrong with entries that were fine before, by name.
        options: names of the host's own settings that are different.
    """

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed or self.broken or self.options)

    def __str__(self) -> str:
        """As a sentence for a person."""
        parts = [
            f"{word}: {', '.join(names)}"
            for word in ("added", "removed", "changed", "broken", "options")
            if (names := getattr(self, word))
        ]
        return "; ".join(parts) or "nothing is different"


def entry_digest(entry: ServerEntry) -> str:
    """SHA-256, in hex, of all that an entry says; the same wherever it stands."""
    said = {
        member: getattr(entry, member) for member in entry.__struct_fields__ if member not in UNSAID
    }
    return hashlib.sha256(ENCODER.encode(said)).hexdigest()


def revealed(value: object) -> str:
    """A secret, for a digest that cannot be turned back."""
    return value.reveal() if isinstance(value, Secret) else repr(value)


ENCODER = msgspec.json.Encoder(enc_hook=revealed, order="sorted")


def difference(before: HostConfig, now: HostConfig) -> ConfigDiff:
    """What is different; what is only broken now is kept as it was before."""
    old, new = before.servers, now.servers
    options = [
        name
        for name in before.options.__struct_fields__
        if getattr(before.options, name) != getattr(now.options, name)
    ]
    return ConfigDiff(
        added=tuple(name for name in new if name not in old),
        removed=tuple(name for name in old if name not in new and name not in now.broken),
        changed=tuple(
            name
            for name in new
            if name in old and entry_digest(new[name]) != entry_digest(old[name])
        ),
        broken=tuple(name for name in now.broken if now.broken[name] != before.broken.get(name)),
        options=tuple(sorted(options)),
    )
