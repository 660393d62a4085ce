"""Vault: the bytes of a file of tokens, with every record sealed and bound to its key.

The file is JSON, so that a newer format, a torn file and somebody else's file can be told apart.
Under each :class:`~isthmus.auth.client.store.records.Key` stands one record, sealed by AES-256-GCM with
the key as associated data: a record that was changed, or put under another key, does not open.
What can be read without the secret is which servers and clients there are, and nothing else.
"""

import hashlib
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from isthmus.auth.client.store.records import Key, Record, pack_record, unpack_record
from isthmus.auth.tokens.secret import Secret
from isthmus.errors import AuthError, UsageError

FILE_FORMAT, FILE_VERSION = "isthmus-tokens", 1

# Bytes, or characters: what ``secrets.token_urlsafe(32)`` makes is enough, a password is not.
MIN_KEY_CHARS = 32

ID_SIZE, NONCE_SIZE, TAG_SIZE = 4, 12, 16

# A secret of 32 bytes or characters or more; of several, the first seals and the others open.
StoreKey: TypeAlias = bytes | str | Secret | Sequence[bytes | str | Secret]


class StoreBroken(AuthError):
    """The file of tokens is unusable: it is damaged, was changed, or belongs to another user.

    Nothing in it is overwritten; the message says what to do.
    """


class TokenFile(msgspec.Struct):
    """The whole file.

    Attributes:
        format: says that it is a file of ours.
        version: of the format.
        records: sealed records by the text of their key, the one put last at the end.
    """

    format: str
    version: int
    records: dict[str, str]


def make_token_file() -> TokenFile:
    """A file with nothing in it."""
    return TokenFile(FILE_FORMAT, FILE_VERSION, {})


def parse_token_file(data: bytes, where: str) -> TokenFile:
    """A file as it was read.

    Raises:
        StoreBroken: it is none of ours, is not whole, or is of a newer isthmus.
    """
    try:
        sheet = msgspec.json.decode(data, type=TokenFile)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise StoreBroken(
            f"{where} is no whole file of tokens, and is left as it is: restore it from a backup, or "
            "move it away and log in again"
        ) from None
    if sheet.format != FILE_FORMAT:
        raise StoreBroken(f"{where} is a file of another kind, and is left as it is: name another")
    if sheet.version != FILE_VERSION:
        raise StoreBroken(
            f"{where} has the format {sheet.version}, and this isthmus knows {FILE_VERSION}: a newer "
            "isthmus wrote it, so use that one, or name another file"
        )
    return sheet


def format_token_file(sheet: TokenFile) -> bytes:
    """A file as it is to be written."""
    return msgspec.json.format(msgspec.json.encode(sheet), indent=1)


class RecordVault:
    """Seals records and opens them.

    Args:
        key: the secret; see :data:`StoreKey`.

    Raises:
        UsageError: there is none, or one is too short to be a key.
    """

    def __init__(self, key: StoreKey) -> None:
        several = [key] if isinstance(key, bytes | str | Secret) else list(key)
        if not several:
            raise UsageError("a file of tokens is encrypted: give it a key")
        self._ciphers = {
            make_cipher_id(cipher): cipher for cipher in map(derive_cipher_key, several)
        }
        self._newest = next(iter(self._ciphers))

    def __repr__(self) -> str:
        return f"RecordVault({len(self._ciphers)} keys)"

    def seal(self, key: Key, record: Record) -> str:
        """A record as it stands in the file under its key."""
        return self._seal(key.text, pack_record(record))

    def open(self, key: Key, sealed: str, where: str) -> Record:
        """The record that stands under a key.

        Raises:
            StoreBroken: it was changed, belongs under another key, or another secret sealed it.
        """
        try:
            return unpack_record(self._open(key.text, sealed, where))
        except msgspec.DecodeError:
            raise StoreBroken(
                f"what {where} holds for {key.issuer} is of another isthmus: log in again"
            ) from None

    def renew(self, sheet: TokenFile, where: str) -> None:
        """Seal what an older secret sealed with the newest, so that the older is not needed again.

        What does not open stays as it is.
        """
        for text, sealed in sheet.records.items():
            if read_cipher_id(sealed) in self._ciphers and read_cipher_id(sealed) != self._newest:
                try:
                    data = self._open(text, sealed, where)
                except StoreBroken:
                    continue
                sheet.records[text] = self._seal(text, data)

    def knows(self, sealed: str) -> bool:
        """Whether one of the secrets here sealed this."""
        return read_cipher_id(sealed) in self._ciphers

    def _seal(self, text: str, data: bytes) -> str:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = os.urandom(NONCE_SIZE)
        cipher = AESGCM(self._ciphers[self._newest])
        sealed = cipher.encrypt(nonce, data, make_associated_data(self._newest, text))
        return urlsafe_b64encode(self._newest + nonce + sealed).decode()

    def _open(self, text: str, sealed: str, where: str) -> bytes:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        data, name = decode_sealed(sealed), read_cipher_id(sealed)
        issuer = parse_record_key(text).issuer
        if name not in self._ciphers:
            raise StoreBroken(
                f"what {where} holds for {issuer} is sealed with another key: give the key that it "
                "was written with, too, or move the file away and log in again"
            )
        nonce, rest = data[ID_SIZE:][:NONCE_SIZE], data[ID_SIZE + NONCE_SIZE :]
        try:
            return AESGCM(self._ciphers[name]).decrypt(
                nonce, rest, make_associated_data(name, text)
            )
        except (InvalidTag, ValueError):
            raise StoreBroken(
                f"what {where} holds for {issuer} was changed, or put there from another place, and "
                "is not used: isthmus logout takes it away, then log in again"
            ) from None


def parse_record_key(text: str) -> Key:
    """The key that a text in the file stands for.

    Raises:
        StoreBroken: it stands for none.
    """
    try:
        return Key(*msgspec.json.decode(text, type=tuple[str, str, str, str, str]))
    except msgspec.DecodeError:
        raise StoreBroken(
            "the file of tokens has a record without a place: it was changed"
        ) from None


def make_associated_data(name: bytes, text: str) -> bytes:
    """The associated data of a sealed record: the format, the secret's id and the key."""
    return b"%s %d %s %s" % (FILE_FORMAT.encode(), FILE_VERSION, name, text.encode())


def decode_sealed(sealed: str) -> bytes:
    """A sealed record as bytes; nothing where it is no base64."""
    try:
        return urlsafe_b64decode(sealed)
    except ValueError:
        return b""


def read_cipher_id(sealed: str) -> bytes:
    """The id of the secret that sealed a record."""
    return decode_sealed(sealed)[:ID_SIZE]


def derive_cipher_key(secret: bytes | str | Secret) -> bytes:
    """The key of the cipher that a secret gives.

    Raises:
        UsageError: the secret is too short.
    """
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    text = secret.reveal() if isinstance(secret, Secret) else secret
    data = text.encode() if isinstance(text, str) else text
    if len(data) < MIN_KEY_CHARS:
        raise UsageError(
            f"a key for tokens has {MIN_KEY_CHARS} characters or more, and this one has {len(data)}: "
            "python -c 'import secrets; print(secrets.token_urlsafe(32))' makes one"
        )
    return HKDF(SHA256(), 32, salt=None, info=b"isthmus token store").derive(data)


def make_cipher_id(cipher: bytes) -> bytes:
    """A short name for a cipher's key, by which a record says who sealed it."""
    return hashlib.sha256(b"isthmus token store id" + cipher).digest()[:ID_SIZE]
