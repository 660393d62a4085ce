"""Users with passwords, in a file of their own.

Passwords are kept as Argon2id hashes; one made with other parameters than today's is made anew
when its user next logs in. Hashing takes tens of milliseconds and as many megabytes, so it is done
in few threads, and whoever comes when too many wait already is asked to try again.
"""

import asyncio
import unicodedata
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from isthmus.auth.arguments import require_library
from isthmus.auth.authorization_server.storage.store import LOCK_TIMEOUT_S, StoreLocked, is_locked
from isthmus.auth.authorization_server.users.users import (
    LoginPage,
    LoginRequest,
    User,
    fold_account,
)
from isthmus.auth.tokens.secret import Secret
from isthmus.errors import UsageError
from isthmus.store.files import restrict_to_owner

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from argon2 import PasswordHasher

T = TypeVar("T")

MIN_PASSWORD_CHARS = 12
MAX_PASSWORD_CHARS = 1024
MAX_ACCOUNT_CHARS = 128
HASHING_THREADS = 2
MAX_WAITING_LOGINS = 32
WRONG_LOGIN_TEXT = "The user name or the password is wrong."
BUSY_LOGIN_TEXT = "Too many people are signing in at this moment. Try again in a few seconds."

USER_TABLE = """
CREATE TABLE IF NOT EXISTS user (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    hash TEXT NOT NULL,
    disabled INTEGER NOT NULL DEFAULT 0
)
"""


class PasswordUsers:
    """Users who log in with a password, kept in an SQLite file.

    A user's id is the account name, in lower case. There is no deleting, as an id that is given
    to somebody else would inherit what the first one granted; users are disabled instead.

    Args:
        path: the file; made, readable by its owner only, when the first user is added.
        memory: kibibytes that one hash takes.
        rounds: passes over them.
        lanes: threads that one hash could use.
    """

    def __init__(
        self, path: str | Path, *, memory: int = 65536, rounds: int = 3, lanes: int = 4
    ) -> None:
        self.path = Path(path)
        self._cost = (rounds, memory, lanes)
        self._made: PasswordHasher | None = None
        self._nobody = ""
        self._threads: ThreadPoolExecutor | None = None
        self._inside = 0
        self._owned = False

    # What a UserBackend does

    async def begin(self, request: LoginRequest) -> LoginPage:  # noqa: ARG002 - all get the same
        """The page with the form for a name and a password; ``request`` is the login that begins.

        Args:
            request: the login that begins.
        """
        return LoginPage()

    async def submit(
        self,
        request: LoginRequest,  # noqa: ARG002 - how often an address may try is counted before
        form: Mapping[str, str],
    ) -> User | LoginPage:
        """Check the name and the password that a user sent.

        Takes the same time and says the same whether the name, the password or the user is bad.

        Args:
            request: the login.
            form: the fields of the form.

        Returns:
            The user; or the form again, with the reason.
        """
        if self._inside >= MAX_WAITING_LOGINS:
            return LoginPage(notice=BUSY_LOGIN_TEXT, status=503, retry_after=5)
        account, password = form.get("account", ""), Secret(form.get("password", ""))
        self._inside += 1
        try:
            user = await self._run_in_thread(lambda: self.check(account, password))
        finally:
            self._inside -= 1
        return user or LoginPage(notice=WRONG_LOGIN_TEXT, account=account, status=403)

    async def get(self, user_id: str) -> User | None:
        """The user ``user_id`` as they are now; None if there is none.

        Args:
            user_id: the id of the user.
        """
        return await asyncio.to_thread(self.find, user_id)

    # What the command line does, which may take its time

    def find(self, user_id: str) -> User | None:
        """The user ``user_id``, or None; blocks for as long as the disk does.

        Args:
            user_id: the id of the user.
        """
        with self._open_rows() as rows:
            row = rows.execute("SELECT id, name, disabled FROM user WHERE id = ?", (user_id,))
            found = row.fetchone()
        return None if found is None else _make_user(*found)

    def all(self) -> list[User]:
        """All users, by id; blocks for as long as the disk does."""
        with self._open_rows() as rows:
            found = rows.execute("SELECT id, name, disabled FROM user ORDER BY id").fetchall()
        return [_make_user(*row) for row in found]

    def add(
        self, account: str, password: Secret | str, name: str = "", *, replace: bool = False
    ) -> User:
        """Add a user, or give one another password.

        Args:
            account: the name to log in with.
            password: at least 12 characters.
            name: what pages call the user.
            replace: the user is there already: change the password, and let them in again.

        Raises:
            UsageError: the account name or the password will not do, or the name is taken.
        """
        user = User(id=_check_account(account), name=name)
        hashed = self._hasher().hash(_check_password(Secret(password)))
        with self._open_rows() as rows:
            taken = rows.execute("SELECT name FROM user WHERE id = ?", (user.id,)).fetchone()
            if taken is not None and not replace:
                raise UsageError(f"there is a user {user.id} already: --replace sets the password")
            rows.execute(
                "INSERT INTO user (id, name, hash) VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE "
                "SET hash = excluded.hash, disabled = 0, name = iif(excluded.name = '', name, "
                "excluded.name)",
                (user.id, user.name, hashed),
            )
        return user

    def disable(self, user_id: str) -> bool:
        """Keep the user ``user_id`` from logging in, and end what they granted; False if there is none.

        Args:
            user_id: the id of the user.
        """
        with self._open_rows() as rows:
            done = rows.execute("UPDATE user SET disabled = 1 WHERE id = ?", (user_id,))
            return done.rowcount > 0

    def check(self, account: str, password: Secret) -> User | None:
        """The user with a name and a password, or None; takes as long for either.

        Args:
            account: the name of the account.
            password: the password, in clear.
        """
        with self._open_rows() as rows:
            found = rows.execute(
                "SELECT id, name, disabled, hash FROM user WHERE id = ?", (fold_account(account),)
            ).fetchone()
        hashed = found[3] if found else self._hash_of_nobody()
        if not self._verify_hash(hashed, password) or found is None or found[2]:
            return None
        if self._hasher().check_needs_rehash(hashed):
            self._rehash(found[0], hashed, password)
        return _make_user(*found[:3])

    def _verify_hash(self, hashed: str, password: Secret) -> bool:
        from argon2.exceptions import InvalidHashError, VerificationError

        try:
            self._hasher().verify(hashed, _normalize_password(password)[:MAX_PASSWORD_CHARS])
        except (VerificationError, InvalidHashError):
            return False
        return len(_normalize_password(password)) <= MAX_PASSWORD_CHARS

    def _rehash(self, user_id: str, old: str, password: Secret) -> None:
        new = self._hasher().hash(_normalize_password(password))
        with self._open_rows() as rows:  # unless it was changed in the meantime
            rows.execute("UPDATE user SET hash = ? WHERE id = ? AND hash = ?", (new, user_id, old))

    def _hash_of_nobody(self) -> str:
        if not self._nobody:
            self._nobody = self._hasher().hash(Secret.random().reveal())
        return self._nobody

    def _hasher(self) -> "PasswordHasher":
        if self._made is None:
            require_library("argon2", "Logging in with a password")
            from argon2 import PasswordHasher  # slow to import

            rounds, memory, lanes = self._cost
            self._made = PasswordHasher(rounds, memory, lanes)
        return self._made

    @contextmanager
    def _open_rows(self) -> "Iterator[sqlite3.Connection]":
        """The table, in a transaction of its own; a connection belongs to one thread only."""
        import sqlite3  # slow to import

        if not self._owned or not self.path.exists():
            self._claim_file()
        try:
            with closing(sqlite3.connect(self.path, timeout=LOCK_TIMEOUT_S)) as rows, rows:
                rows.execute(USER_TABLE)
                yield rows
        except sqlite3.Error as error:
            if is_locked(error):
                raise StoreLocked(f"{self.path} is locked by another process") from None
            raise

    def _claim_file(self) -> None:
        """Make the file for its owner only, as the store is."""
        try:
            restrict_to_owner(self.path)
        except OSError as error:
            raise UsageError(f"{self.path} cannot be the file of users: {error.strerror}") from None
        self._owned = True

    async def _run_in_thread(self, work: "Callable[[], T]") -> T:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(HASHING_THREADS, "isthmus-passwords")
            # the first one to ask for somebody unknown would else wait for two hashes
            await asyncio.get_running_loop().run_in_executor(self._threads, self._hash_of_nobody)
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


def _make_user(user_id: str, name: str, disabled: int) -> User:
    return User(id=user_id, name=name, disabled=bool(disabled))


def _check_account(account: str) -> str:
    name = fold_account(account)
    if not name or len(name) > MAX_ACCOUNT_CHARS:
        raise UsageError(f"an account name has 1 to {MAX_ACCOUNT_CHARS} characters")
    if not name.isprintable() or " " in name:
        raise UsageError("an account name has no spaces and no invisible characters")
    return name


def _normalize_password(password: Secret) -> str:
    """A password as it is hashed: keyboards differ in how they compose the same letters."""
    return unicodedata.normalize("NFKC", password.reveal())


def _check_password(password: Secret) -> str:
    spelled = _normalize_password(password)
    if not MIN_PASSWORD_CHARS <= len(spelled) <= MAX_PASSWORD_CHARS:
        raise UsageError(f"a password has {MIN_PASSWORD_CHARS} to {MAX_PASSWORD_CHARS} characters")
    return spelled
