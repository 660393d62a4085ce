"""Secret of a served file: made once and kept in the user's state folder, so that sessions outlast restarts."""

import os
import sys
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from isthmus.cli.output import print_note

if TYPE_CHECKING:
    from isthmus.server.server import Server

SECRET_BYTES = 32

MAX_STEM_CHARS = 40  # of a secret's file name, for people who look into the folder

DIGEST_CHARS = 16


def use_kept_secret(server: "Server", file: str) -> None:
    """Give a server the secret of its file, unless it has one or a store to agree on one by.

    Where it cannot be kept, the server makes one up, which lasts as long as its process.

    Args:
        server: what the file makes.
        file: ``FILE.py`` or ``FILE.py:OBJECT``.
    """
    if not server.takes_secret:
        return
    from isthmus.auth.client.store.keyring_store import NoHomeFolder, find_state_folder

    try:
        folder = find_state_folder(os.environ, sys.platform) / "servers"
        server.configure(secret=load_secret(make_secret_path(folder, file)))
    except (NoHomeFolder, OSError) as error:
        print_note(f"sessions end with this process, for no secret can be kept: {error}")


def make_secret_path(folder: Path, file: str) -> Path:
    """The file of the secret of a server's file: the same however that is spelled."""
    path, colon, name = file.rpartition(":")
    if not (colon and path.endswith(".py")):
        path, name = file, ""
    whole = f"{Path(path).resolve()}:{name}"
    digest = sha256(whole.encode("utf-8", "surrogateescape")).hexdigest()[:DIGEST_CHARS]
    return folder / f"{Path(path).stem[:MAX_STEM_CHARS]}-{digest}.secret"


def load_secret(path: Path) -> bytes:
    """The secret in a file, which is made where there is none; of two who make it, one wins.

    Raises:
        OSError: it can be neither read nor made.
    """
    from isthmus.store.files import create_file, restrict_to_owner

    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not path.exists():
        create_file(path, os.urandom(SECRET_BYTES))
    restrict_to_owner(path, create=False)
    secret = path.read_bytes()
    if len(secret) != SECRET_BYTES:
        raise OSError(f"{path} is no secret that isthmus made: delete it")
    return secret
