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

from isthmus.auth.tokens.secret import Secret
from isthmus.errors import IsthmusError
from isthmus.host.model.errors import ConfigError

if TYPE_CHECKING:
    from isthmus.auth.client.store.records import Key
    from isthmus.auth.client.store.vault import RecordVault, TokenFile

T = TypeVar("T")
KEYRING_TIMEOUT_S = 15.0  # the user may have to unlock it
MAX_SECRET_CHARS = 64 * 1024
KEYRING_ISSUER = "isthmus:secret"  # stands where tokens have their issuer: no issuer is called so

SERVICE, ENTRY = "isthmus", "secrets of the host"
"""What the keyring calls our entry."""

SECRET_PATH_PATTERN = re.compile(r"[A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)*", re.ASCII)


class SecretsUnusable(ConfigError):
    """The user's secrets cannot be read or kept; the message says what to do."""


def check_path(path: str) -> None:
    """See to it that a secret can be called this.

    Raises:
        ConfigError: it cannot.
    """
    if SECRET_PATH_PATTERN.fullmatch(path) is None or len(path) > 200:
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
        patience: float = KEYRING_TIMEOUT_S,
    ) -> None:
        self._environ = environ
        self._folder = folder
        self._patience = patience
        self._vault: RecordVault | None = None

    def __repr__(self) -> str:
        return "UserSecrets()"

    def get(self, path: str) -> Secret | None:
        """A secret; None where there is none of this name, and then no keyring is asked.

        Raises:
            SecretsUnusable: the file, or its key, cannot be had.
        """
        key = make_secret_key(path)
        sealed = self._sheet().records.get(key.text)
        if sealed is None:
            return None
        vault = self._opened(make=False)
        from isthmus.auth.client.store.vault import StoreBroken

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
        if not secret or len(secret.reveal()) > MAX_SECRET_CHARS:
            raise ConfigError(f"a secret has 1 to {MAX_SECRET_CHARS} characters")
        from isthmus.auth.client.store.records import Registration

        vault, key = self._opened(make=True), make_secret_key(path)
        sealed = vault.seal(key, Registration(issuer=KEYRING_ISSUER, client_id=path, secret=secret))
        self._change(lambda sheet: sheet.records.update({key.text: sealed}))

    def remove(self, path: str) -> bool:
        """Keep a secret no more; False where there is none of this name.

        Raises:
            SecretsUnusable: the file cannot be changed.
        """
        key = make_secret_key(path)
        if key.text not in self._sheet().records:
            return False
        self._change(lambda sheet: sheet.records.pop(key.text, None))
        return True

    def names(self) -> list[str]:
        """The names of all secrets; no keyring is asked.

        Raises:
            SecretsUnusable: the file cannot be read.
        """
        from isthmus.auth.client.store.vault import parse_record_key

        return sorted(parse_record_key(text).client_id for text in self._sheet().records)

    # The file

    def _given(self) -> list[str]:
        from isthmus.auth.client.store.keyring_store import KEY_VARIABLE

        return self._environ.get(KEY_VARIABLE, "").replace(",", " ").split()

    def _path(self) -> Path:
        from isthmus.host.state.database import find_user_folder

        name = "secrets-by-variable.json" if self._given() else "secrets.json"
        return (self._folder or find_user_folder(self._environ)) / name

    def _sheet(self) -> "TokenFile":
        from isthmus.auth.client.store.file_store import read_token_file

        try:
            return read_token_file(self._path())
        except IsthmusError as error:
            raise SecretsUnusable(str(error).replace("tokens", "secrets")) from None

    def _change(self, work: "Callable[[TokenFile], object]") -> None:
        from isthmus.auth.client.store.file_store import hold_lock_in_thread, make_private_folder
        from isthmus.auth.client.store.vault import format_token_file
        from isthmus.store.files import replace_file

        path = self._path()
        try:
            make_private_folder(path.parent)
            with hold_lock_in_thread(path.with_name(f"{path.name}.lock"), self._patience):
                sheet = self._sheet()
                work(sheet)
                replace_file(path.resolve(), format_token_file(sheet))
        except OSError as error:
            raise SecretsUnusable(f"{path} cannot be written: {error.strerror}") from error
        except SecretsUnusable:
            raise
        except IsthmusError as error:
            raise SecretsUnusable(str(error)) from None

    # The key

    def _opened(self, *, make: bool) -> "RecordVault":
        if self._vault is None:
            from isthmus.auth.client.store.vault import RecordVault

            given = self._given()
            keys = [Secret(one) for one in given] or [self._by_keyring(make=make)]
            try:
                self._vault = RecordVault(keys)
            except IsthmusError as error:
                raise SecretsUnusable(str(error)) from None
        return self._vault

    def _by_keyring(self, *, make: bool) -> Secret:
        try:
            found = run_with_timeout(self._patience, lambda: load_keyring_key(make=make))
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


def make_secret_key(path: str) -> "Key":
    """Make the key that a secret is kept under."""
    from isthmus.auth.client.store.records import Key

    return Key(KEYRING_ISSUER, path)


def load_keyring_key(*, make: bool) -> Secret | None:
    """The key in the system's keyring.

    Args:
        make: whether one is made where there is none.

    Raises:
        IsthmusError: there is no keyring, or it failed.
    """
    from isthmus.auth.client.store.keyring_store import KeyringUnusable, find_keyring

    backend = find_keyring()
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


def run_with_timeout(seconds: float, work: Callable[[], T]) -> T:
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
