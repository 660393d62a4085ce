"""Secrets of the user that configurations name: ``${secret:path}``.

They stand in one file, each encrypted, whose key is in the system's keyring or in
``ISTHMUS_STORE_KEY``, as it is with the tokens of clients. Reading a configuration that names no
secret asks no keyring.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

from isthmus.auth.secret import Secret
from isthmus.errors import IsthmusError
from isthmus.host.errors import ConfigError

if TYPE_CHECKING:
    from isthmus.auth.client.tokens import Key
    from isthmus.auth.client.vault import Sheet, Vault

__all__ = ["SecretsUnusable", "UserSecrets", "check_path"]

T = TypeVar("T")

PATIENCE = 15.0
"""Seconds for the keyring to answer: the user may have to unlock it."""

LONGEST = 64 * 1024
"""Characters of one secret."""

OURS = "isthmus:secret"
"""What stands where tokens have their issuer: no issuer is called so."""

SERVICE, ENTRY = "isthmus", "secrets of the host"
"""What the keyring calls our entry."""

PATH = re.compile(r"[A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)*", re.ASCII)


class SecretsUnusable(ConfigError):
    """The user's secrets cannot be read or kept; the message says what to do."""


def check_path(path: str) -> None:
    """See to it that a secret can be called this.

    Raises:
        ConfigError: it cannot.
    """
    if PATH.fullmatch(path) is None or len(path) > 200:
        raise ConfigError(
            f"{path!r} is no name for a secret: letters, digits, . _ - and / between them, as in "
            "files/token"
        )


class UserSecrets:
    """The user's secrets, in a file that is encrypted.

    Args:
        environ: the environment.
        folder: where the file is; the folder of the user's host by default.
        patience: seconds for the keyring to answer.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        *,
        folder: Path | None = None,
        patience: float = PATIENCE,
    ) -> None:
        self._environ = environ
        self._folder = folder
        self._patience = patience
        self._vault: Vault | None = None

    def __repr__(self) -> str:
        return "UserSecrets()"

    def get(self, path: str) -> Secret | None:
        """A secret; None where there is none of this name, and then no keyring is asked.

        Raises:
            SecretsUnusable: the file, or its key, cannot be had.
        """
        key = key_of(path)
        sealed = self._sheet().records.get(key.text)
        if sealed is None:
            return None
        vault = self._opened(make=False)
        from isthmus.auth.client.vault import StoreBroken

        try:
            record = vault.open(key, sealed, str(self._path()))
        except StoreBroken:
            raise SecretsUnusable(
                f"the secret {path} in {self._path()} was sealed with another key, or changed: "
                f"isthmus config secret set {path}"
            ) from None
        return getattr(record, "secret", None)

    def put(self, path: str, secret: Secret) -> None:
        """Keep a secret, in the place of the one before.

        Raises:
            ConfigError: it cannot be called so, or is too long.
            SecretsUnusable: it cannot be kept.
        """
        check_path(path)
        if not secret or len(secret.reveal()) > LONGEST:
            raise ConfigError(f"a secret has 1 to {LONGEST} characters")
        from isthmus.auth.client.tokens import Registration

        vault, key = self._opened(make=True), key_of(path)
        sealed = vault.seal(key, Registration(issuer=OURS, client_id=path, secret=secret))
        self._change(lambda sheet: sheet.records.update({key.text: sealed}))

    def remove(self, path: str) -> bool:
        """Keep a secret no more; False where there is none of this name.

        Raises:
            SecretsUnusable: the file cannot be changed.
        """
        key = key_of(path)
        if key.text not in self._sheet().records:
            return False
        self._change(lambda sheet: sheet.records.pop(key.text, None))
        return True

    def names(self) -> list[str]:
        """The names of all secrets; no keyring is asked.

        Raises:
            SecretsUnusable: the file cannot be read.
        """
        from isthmus.auth.client.vault import named

        return sorted(named(text).client_id for text in self._sheet().records)

    # The file

    def _given(self) -> list[str]:
        from isthmus.auth.client.keyring_store import VARIABLE

        return self._environ.get(VARIABLE, "").replace(",", " ").split()

    def _path(self) -> Path:
        from isthmus.host.state import user_folder

        name = "secrets-by-variable.json" if self._given() else "secrets.json"
        return (self._folder or user_folder(self._environ)) / name

    def _sheet(self) -> "Sheet":
        from isthmus.auth.client.store import read

        try:
            return read(self._path())
        except IsthmusError as error:
            raise SecretsUnusable(str(error).replace("tokens", "secrets")) from None

    def _change(self, work: "Callable[[Sheet], object]") -> None:
        from isthmus.auth.client.locks import held_by_thread
        from isthmus.auth.client.store import private_folder
        from isthmus.auth.client.vault import write_sheet
        from isthmus.store.files import replace

        path = self._path()
        try:
            private_folder(path.parent)
            with held_by_thread(path.with_name(f"{path.name}.lock"), self._patience):
                sheet = self._sheet()
                work(sheet)
                replace(path.resolve(), write_sheet(sheet))
        except OSError as error:
            raise SecretsUnusable(f"{path} cannot be written: {error.strerror}") from error
        except SecretsUnusable:
            raise
        except IsthmusError as error:
            raise SecretsUnusable(str(error)) from None

    # The key

    def _opened(self, *, make: bool) -> "Vault":
        if self._vault is None:
            from isthmus.auth.client.vault import Vault

            given = self._given()
            keys = [Secret(one) for one in given] or [self._by_keyring(make=make)]
            try:
                self._vault = Vault(keys)
            except IsthmusError as error:
                raise SecretsUnusable(str(error)) from None
        return self._vault

    def _by_keyring(self, *, make: bool) -> Secret:
        try:
            found = in_time(self._patience, lambda: keyring_key(make=make))
        except TimeoutError:
            why = f"the system's keyring did not answer within {self._patience:g} s: is it locked?"
        except IsthmusError as error:
            why = str(error)
        else:
            if found is not None:
                return found
            why = f"the keyring has no key for {self._path()} any more: set the secrets again"
        raise SecretsUnusable(
            f"the user's secrets cannot be had: {why} (ISTHMUS_STORE_KEY can hold the key instead)"
        )


def key_of(path: str) -> "Key":
    """What a secret is kept under."""
    from isthmus.auth.client.tokens import Key

    return Key(OURS, path)


def keyring_key(*, make: bool) -> Secret | None:
    """The key in the system's keyring.

    Args:
        make: whether one is made where there is none.

    Raises:
        IsthmusError: there is no keyring, or it failed.
    """
    from isthmus.auth.client.keyring_store import KeyringUnusable, usable_keyring

    backend = usable_keyring()
    try:
        kept = backend.get_password(SERVICE, ENTRY)
        if kept or not make:
            return Secret(kept) if kept else None
        fresh = Secret.random()
        backend.set_password(SERVICE, ENTRY, fresh.reveal())
        kept = backend.get_password(SERVICE, ENTRY)
    except Exception as error:  # what backends raise is up to them
        raise KeyringUnusable(f"the system's keyring failed ({type(error).__name__})") from error
    if fresh != (kept or ""):
        raise KeyringUnusable("the system's keyring does not keep what it is given")
    return fresh


def in_time(seconds: float, work: Callable[[], T]) -> T:
    """Do in a thread what may never end; one that does not end keeps no program alive.

    Raises:
        TimeoutError: it took longer; what it still does is of no consequence.
    """
    done: list[T] = []
    failed: list[Exception] = []

    def run() -> None:
        try:
            done.append(work())
        except Exception as error:  # noqa: BLE001 - it is raised where it is waited for
            failed.append(error)

    thread = Thread(target=run, name="isthmus-keyring", daemon=True)
    thread.start()
    thread.join(seconds)
    if failed:
        raise failed.pop()
    if not done:
        raise TimeoutError
    return done[0]
