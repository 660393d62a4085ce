"""Configuration of ``isthmus auth``: a small TOML file, and options that win over it."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from isthmus.core.principal import is_scope
from isthmus.errors import UsageError

if TYPE_CHECKING:
    from isthmus.auth.authorization_server.core.requests import Limits
    from isthmus.auth.authorization_server.server import AuthorizationServer
    from isthmus.auth.authorization_server.storage.store import SQLiteAuthStore
    from isthmus.auth.authorization_server.users.passwords import PasswordUsers
    from isthmus.auth.authorization_server.users.users import UserBackend

DEFAULT_CONFIG_FILE = "isthmus-auth.toml"  # read where none is named, if it is there

DEFAULT_LISTEN = "127.0.0.1:9000"


class LoginProxy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A proxy that has logged users in; ``[proxy]`` in the file."""

    header: str
    trusted: tuple[str, ...]
    name_header: str | None = None


class AuthConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file, and what the options made of it.

    Attributes:
        issuer: the public URL; that of ``listen`` where it is left out.
        resources: the URLs of the MCP servers that tokens are for.
        listen: ``HOST:PORT``.
        store: the file with clients, grants and keys.
        users: the file with the passwords; not used where there is a ``proxy``.
        scopes: each scope and the sentence that people read about it.
        consent: ``always`` or ``remember``.
        proxy: logs users in, instead of a password.
        documents: take clients whose id is the URL of a document about them.
        registration: let clients register themselves.
        access_ttl: seconds that an access token lasts.
        refresh_ttl: seconds that a refresh token lasts without being used.
        rotation_grace: seconds in which a refresh token that was just used gives the same next one.
        code_ttl: seconds that a code lasts.
        key_life: seconds after which the signing key changes.
        login_idle: seconds that a login lasts without being used.
        login_life: seconds that it lasts at most.
        request_ttl: seconds that people have to log in and to answer.
        requests_per_minute: requests of one address, but for registrations.
        token_requests_per_minute: token requests of one client.
        registrations_per_hour: clients that one address may register.
        head_limit: bytes of a request's head.
        max_token_bytes: bytes of an access token.
    """

    issuer: str | None = None
    resources: tuple[str, ...] = ()
    listen: str = DEFAULT_LISTEN
    store: str = "auth.db"
    users: str = "users.db"
    scopes: dict[str, str] = {}
    consent: Literal["always", "remember"] = "always"
    proxy: LoginProxy | None = None
    documents: bool = True
    registration: bool = True
    access_ttl: int = 600
    refresh_ttl: int = 30 * 86400
    rotation_grace: float = 30.0
    code_ttl: float = 60.0
    key_life: float = 90 * 86400.0
    login_idle: float = 3600.0
    login_life: float = 12 * 3600.0
    request_ttl: float = 600.0
    requests_per_minute: int = 300
    token_requests_per_minute: int = 1200
    registrations_per_hour: int = 20
    head_limit: int = 32 * 1024
    max_token_bytes: int = 16 * 1024

    def opened_store(self) -> "SQLiteAuthStore":
        """The store; its key is in the environment.

        Raises:
            UsageError: there is no key.
        """
        from isthmus.auth.authorization_server.storage.store import SQLiteAuthStore

        return SQLiteAuthStore(self.store)

    def passwords(self) -> "PasswordUsers":
        """The users with passwords."""
        from isthmus.auth.authorization_server.users.passwords import PasswordUsers

        return PasswordUsers(self.users)

    def backend(self) -> "UserBackend":
        """The users that can log in."""
        if self.proxy is None:
            return self.passwords()
        from isthmus.auth.authorization_server.users.users import HeaderUsers

        return HeaderUsers(
            self.proxy.header,
            trusted_proxies=self.proxy.trusted,
            name_header=self.proxy.name_header,
        )

    def authority(self) -> "AuthorizationServer":
        """The authorization server that all of this describes.

        Raises:
            UsageError: something is missing, or makes no sense.
        """
        from isthmus.auth.arguments import require_library
        from isthmus.auth.authorization_server.core.settings import (
            CimdPolicy,
            DcrPolicy,
            LoginPolicy,
            RegistrationPolicy,
        )
        from isthmus.auth.authorization_server.server import AuthorizationServer

        require_library("authlib", "An authorization server")  # first: no key would help without it
        if not self.resources:
            raise UsageError(
                "no MCP server is named that accepts the tokens: give --resource https://your.server/mcp, or "
                f'resources = ["…"] in {DEFAULT_CONFIG_FILE}'
            )
        return AuthorizationServer(
            issuer=self.issuer or f"http://{self.listen}",
            resources=self.resources,
            scopes=self.scopes,
            users=self.backend(),
            store=self.opened_store(),
            registration=RegistrationPolicy(
                cimd=CimdPolicy(enabled=self.documents), dcr=DcrPolicy(enabled=self.registration)
            ),
            consent=self.consent,
            access_ttl=self.access_ttl,
            refresh_ttl=self.refresh_ttl,
            rotation_grace=self.rotation_grace,
            code_ttl=self.code_ttl,
            key_life=self.key_life,
            login=LoginPolicy(
                idle=self.login_idle, life=self.login_life, request_ttl=self.request_ttl
            ),
            max_token_bytes=self.max_token_bytes,
            limits=self.limits(),
        )

    def limits(self) -> "Limits":
        """The rate limits of the authorization server.

        Raises:
            UsageError: nobody could.
        """
        from isthmus.auth.authorization_server.core.requests import Limits
        from isthmus.store.meter import Rate

        return Limits(
            self.registrations_per_hour,
            per_address=Rate(self.requests_per_minute, seconds=60),
            per_client=Rate(self.token_requests_per_minute, seconds=60),
        )


def load_auth_config(file: str | None, **given: Any) -> AuthConfig:
    """The configuration: a file, and options over it.

    Args:
        file: its path; None reads ``isthmus-auth.toml`` here where there is one.
        **given: fields of :class:`AuthConfig`; None and empty ones were not given.

    Raises:
        UsageError: the file is not there, is no TOML, or says something that is not understood.
    """
    path = Path(file or DEFAULT_CONFIG_FILE)
    told: dict[str, Any] = {}
    if path.is_file():
        try:
            told = tomllib.loads(path.read_text("utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise UsageError(f"{path} is no TOML: {error}") from None
    elif file is not None:
        raise UsageError(f"there is no file {file}")
    told = {**_resolve_paths(told, path.parent), **{k: v for k, v in given.items() if v}}
    try:
        return msgspec.convert(told, AuthConfig)
    except msgspec.ValidationError as error:
        known = ", ".join(AuthConfig.__struct_fields__)
        raise UsageError(f"{path}: {error}; the settings are {known}") from None


def _resolve_paths(told: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Paths in a file are meant from where the file is."""
    moved = {
        name: str(folder / told[name])
        for name in ("store", "users")
        if isinstance(told.get(name), str)
    }
    return {**told, **moved}


def parse_scope_texts(texts: Sequence[str]) -> dict[str, str]:
    """``NAME=TEXT`` as typed; the text may be left out.

    Raises:
        UsageError: the name is none that a scope can have.
    """
    found = {}
    for text in texts:
        name, _, meaning = text.partition("=")
        if not is_scope(name):
            raise UsageError(f"--scope {text}: write NAME=TEXT, as in files:read='Read your files'")
        found[name] = meaning
    return found
