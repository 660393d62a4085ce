"""Factory of providers, from the providers of a models file."""

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import TYPE_CHECKING

from isthmus.auth.tokens.secret import Secret
from isthmus.host.model.errors import ConfigError
from isthmus.host.providers.provider import (
    BadCredentials,
    Completion,
    Delta,
    Done,
    Offered,
    Provider,
)

if TYPE_CHECKING:
    from isthmus.host.providers.manual import AskPerson
    from isthmus.host.providers.provider import ProviderEntry
    from isthmus.host.state.secrets import UserSecrets

NO_DELTAS: tuple[Delta, ...] = ()
KEY_REFERENCE = re.compile(r"\$\{(env|secret):([^}]+)\}")


def make_providers(
    entries: "Mapping[str, ProviderEntry]",
    *,
    environ: Mapping[str, str],
    secrets: "UserSecrets | None" = None,
    ask: "AskPerson | None" = None,
    source: str = "models.toml",
) -> dict[str, Provider]:
    """Make the providers by name; one whose key is missing says so when it is asked for something.

    Args:
        entries: how each is reached.
        environ: where ``${env:NAME}`` is looked up.
        secrets: where ``${secret:NAME}`` is.
        ask: puts a question to a person, for a provider that is ``manual``.
        source: the file, for messages.

    Raises:
        ConfigError: an entry says what cannot be, or has a key in it.
    """
    found: dict[str, Provider] = {}
    for name, entry in entries.items():
        where = f"{source}: providers.{name}"
        try:
            key = find_key(where, entry.key, environ, secrets)
            found[name] = make_provider(where, name, entry, key, ask)
        except BadCredentials as error:
            found[name] = KeylessProvider(name, str(error))
    return found


def find_key(
    where: str, reference: str, environ: Mapping[str, str], secrets: "UserSecrets | None"
) -> Secret | None:
    """Find the key that an entry points to.

    Raises:
        BadCredentials: there is nothing there.
        ConfigError: the entry does not point, it has the key itself.
    """
    if not reference:
        return None
    match = KEY_REFERENCE.fullmatch(reference.strip())
    if match is None:
        raise ConfigError(
            f"{where}, key: a key must not be in the file: write ${{env:NAME}} or "
            "${secret:NAME}, and put the key there"
        )
    kind, name = match[1], match[2]
    if kind == "env":
        text = environ.get(name, "")
        if text:
            return Secret(text)
        raise BadCredentials(f"{where}: the variable {name} with the key is not set")
    key = None if secrets is None else secrets.get(name)
    if key:
        return key
    raise BadCredentials(f"{where}: there is no secret {name!r} with the key")


def make_provider(
    where: str, name: str, entry: "ProviderEntry", key: Secret | None, ask: "AskPerson | None"
) -> Provider:
    """Make the provider of an entry; its module is loaded now and not before.

    Raises:
        BadCredentials: it needs a key and has none.
        ConfigError: the entry does not say enough.
    """
    if entry.kind == "manual":
        if ask is None:
            raise ConfigError(f"{where}: a manual provider needs a person to ask")
        from isthmus.host.providers.manual import Manual

        return Manual(ask, name=name)
    if entry.kind == "anthropic":
        if key is None:
            raise BadCredentials(f'{where}: it needs a key: key = "${{env:NAME}}"')
        from isthmus.host.providers.anthropic import Anthropic

        return Anthropic(key, name=name, base_url=entry.base_url, timeout=entry.timeout)
    if not entry.base_url.startswith(("http://", "https://")):
        raise ConfigError(
            f'{where}, base_url: it must be a URL such as "http://127.0.0.1:11434/v1", not '
            f"{entry.base_url!r}"
        )
    from isthmus.host.providers.openai_compatible import OpenAICompatible

    return OpenAICompatible(entry.base_url, key, name=name, timeout=entry.timeout)


class KeylessProvider:
    """A provider that cannot be reached, since its key is missing.

    Args:
        name: the provider's.
        why: what is missing, and where.
    """

    def __init__(self, name: str, why: str) -> None:
        self.name = name
        self._why = why

    async def complete(self, completion: Completion) -> AsyncGenerator[Delta | Done, None]:  # noqa: ARG002 - as all providers
        """Never anything.

        Raises:
            BadCredentials: always.
        """
        for piece in NO_DELTAS:  # as all providers, this is a generator
            yield piece
        raise BadCredentials(self._why, provider=self.name)

    async def models(self) -> Sequence[Offered]:
        """Never anything.

        Raises:
            BadCredentials: always.
        """
        raise BadCredentials(self._why, provider=self.name)

    async def close(self) -> None:
        """Nothing to close."""
