"""Upstream tokens in the store: encrypted, each bound to its row, renewed by one process at a time."""

import hashlib
import secrets

import msgspec

from isthmus.auth.authorization_server.storage.records import Records
from isthmus.auth.tokens.secret import Secret, decode_secret, encode_secret
from isthmus.errors import UsageError

EXPIRY_MARGIN_S = 30.0  # before its end: a token is to arrive while it is good
UNGRANTED_LIFE_S = 600.0  # who logged in has not got its code yet
RENEWAL_ISSUER = "upstream-renewal"
NEVER = 1e18
# Accounts that nobody may use any more, and that are still to be taken back at their providers.
DISCONNECTED = f"(id LIKE 'connection-%' AND coalesce(expires_at, {NEVER}) <= ?)"


class UpstreamTokens(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of a provider for one of its users. They never leave the server.

    Attributes:
        provider: the name of the :class:`~isthmus.auth.authorization_server.upstream.provider.Provider`.
        issuer: who the provider says it is.
        subject: the user there; empty where nobody asked.
        name: what they are called there; empty where nobody asked.
        access: goes to the provider's API.
        refresh: gets the next ones, or None.
        expires_at: seconds since the epoch when ``access`` ends; None where nobody said.
        ends_at: when the session there ends for good; None where nobody said.
        scopes: what was granted.
        checked_at: when the provider last said that they are good.
    """

    provider: str
    issuer: str
    subject: str
    access: Secret
    refresh: Secret | None = None
    expires_at: float | None = None
    ends_at: float | None = None
    scopes: tuple[str, ...] = ()
    checked_at: float = 0.0
    name: str = ""

    def __repr__(self) -> str:
        return f"UpstreamTokens(provider={self.provider!r}, expires_at={self.expires_at!r})"

    def stale(self, now: float) -> bool:
        """Whether the access token is expired, or will be in a moment."""
        return self.expires_at is not None and now >= self.expires_at - EXPIRY_MARGIN_S

    def over(self, now: float) -> bool:
        """Whether the session is over, and nothing can be had by it any more."""
        return self.ends_at is not None and now >= self.ends_at


_encoder = msgspec.json.Encoder(enc_hook=encode_secret)
_decoder = msgspec.json.Decoder(UpstreamTokens, dec_hook=decode_secret)


def encode_tokens(tokens: UpstreamTokens) -> bytes:
    """Tokens as bytes, in clear: they are to be encrypted at once."""
    return _encoder.encode(tokens)


def decode_tokens(data: bytes) -> UpstreamTokens:
    """Tokens from what :func:`encode_tokens` made of them.

    Raises:
        msgspec.ValidationError: they are none.
    """
    tokens: UpstreamTokens = _decoder.decode(data)
    return tokens


class UpstreamRow(msgspec.Struct, frozen=True, kw_only=True):
    """The tokens of one user at one provider.

    Attributes:
        id: what grants refer to.
        user_id: whose they are, in our words.
        version: another one after each renewal.
    """

    id: str
    provider: str
    user_id: str
    tokens: UpstreamTokens
    version: int


def make_connection_id(user_id: str, provider: str) -> str:
    """The id of what a user connected to their account, beside the login; there is one of each."""
    whole = msgspec.json.encode([user_id, provider])
    return f"connection-{hashlib.sha256(whole).hexdigest()}"


def add_row(
    records: Records, id: str, user_id: str, tokens: UpstreamTokens, *, waits: bool = False
) -> None:
    """Keep tokens under an id, in the place of what was there.

    Args:
        records: the store, in a transaction.
        id: which row.
        user_id: whose they are.
        tokens: what they are.
        waits: a grant will soon refer to them; they go if none does.
    """
    expires_at = records.now + UNGRANTED_LIFE_S if waits else None
    sealed = records.vault.seal(encode_tokens(tokens), row_binding(id, user_id))
    # No renewal that was begun for what was there before can be written over this.
    version = secrets.randbits(62)
    records.db.execute(
        "INSERT OR REPLACE INTO upstream VALUES (?, ?, ?, ?, ?, ?, ?)",
        (id, tokens.provider, user_id, sealed, version, records.now, expires_at),
    )


def load_row(records: Records, id: str) -> UpstreamRow | None:
    """Load the tokens under an id.

    Raises:
        UsageError: the store's key does not open it, or it was moved there from another user's.
    """
    return open_row(records, id, f"NOT {DISCONNECTED}")


def open_row(records: Records, id: str, where: str) -> UpstreamRow | None:
    """Load and decrypt the tokens under an id, where a condition of SQL holds."""
    found = records.db.execute(
        "SELECT provider, user_id, sealed, version FROM upstream WHERE id = ? AND "  # noqa: S608 - words of this file
        f"{where}",
        (id, records.now),
    ).fetchone()
    if found is None:
        return None
    provider, user_id, sealed, version = found
    tokens = decode_tokens(records.vault.open(sealed, row_binding(id, user_id)))
    return UpstreamRow(id=id, provider=provider, user_id=user_id, tokens=tokens, version=version)


def replace_tokens(records: Records, before: UpstreamRow, tokens: UpstreamTokens) -> bool:
    """Write down the tokens after some; False if somebody else did, or took them away."""
    sealed = records.vault.seal(encode_tokens(tokens), row_binding(before.id, before.user_id))
    done = records.db.execute(
        "UPDATE upstream SET sealed = ?, version = version + 1 WHERE id = ? AND version = ?",
        (sealed, before.id, before.version),
    )
    return done.rowcount == 1


def remove_row(records: Records, id: str) -> UpstreamRow | None:
    """Forget tokens; what they were where they are to be taken back at the provider.

    Many providers end everything that a user has granted a client, and we are one client. So
    what somebody gave up is taken back there with the last of their rows.
    """
    try:
        found = load_row(records, id) or open_row(records, id, DISCONNECTED)
    except UsageError:  # what cannot be read can still be thrown away
        found = None
    records.db.execute("DELETE FROM upstream WHERE id = ?", (id,))
    if found is None:
        return None
    others = records.db.execute(
        "SELECT 1 FROM upstream WHERE user_id = ? AND provider = ? LIMIT 1",
        (found.user_id, found.provider),
    )
    return found if others.fetchone() is None else None


def list_user_rows(records: Records, user_id: str) -> list[tuple[str, str]]:
    """Id and provider of all tokens of a user."""
    return records.db.execute(
        f"SELECT id, provider FROM upstream WHERE user_id = ? AND NOT {DISCONNECTED} ORDER BY "  # noqa: S608 - words of this file
        "provider, id",
        (user_id, records.now),
    ).fetchall()


def load_user_name(records: Records, user_id: str, provider: str) -> str:
    """A user's name at a provider, from their last login; empty where nobody knows."""
    found = records.db.execute(
        "SELECT id FROM upstream WHERE user_id = ? AND provider = ? ORDER BY created_at DESC LIMIT 1",
        (user_id, provider),
    ).fetchone()
    last = None if found is None else load_row(records, found[0])
    return "" if last is None else last.tokens.name


def revoke_dependent_grants(records: Records, id: str) -> int:
    """Revoke the grants that stand on some tokens; how many that were."""
    found = records.db.execute(
        "SELECT id, client_id, user_id FROM grant_ WHERE upstream_id = ? AND revoked_at IS NULL",
        (id,),
    ).fetchall()
    for grant_id, client_id, user_id in found:
        records.revoke_grant(grant_id)
        records.audit("upstream_ended", client_id=client_id, user_id=user_id, grant_id=grant_id)
    return len(found)


def purge_rows(records: Records) -> list[UpstreamRow]:
    """Forget tokens that nobody can use: no grant was made of them, or it is over."""
    gone = records.db.execute(
        f"SELECT id FROM upstream u WHERE {DISCONNECTED} OR (id NOT LIKE 'connection-%' AND NOT "  # noqa: S608 - words of this file
        "EXISTS (SELECT 1 FROM grant_ g WHERE g.upstream_id = u.id AND g.revoked_at IS NULL AND "
        "g.expires_at > ?) AND (expires_at IS NULL OR expires_at <= ? OR EXISTS (SELECT 1 FROM "
        "grant_ g WHERE g.upstream_id = u.id))) LIMIT 100",
        (records.now, records.now, records.now),
    ).fetchall()
    return [found for (id,) in gone if (found := remove_row(records, id)) is not None]


def take_renewal_turn(records: Records, before: UpstreamRow, seconds: float) -> bool:
    """Whether this process is the one to renew some tokens; others wait for it, so long at most.

    Two that used one refresh token would look like a thief to the provider.
    """
    name = f"{before.id}/{before.version}"
    records.db.execute(
        "DELETE FROM jti WHERE issuer = ? AND jti = ? AND expires_at <= ?",
        (RENEWAL_ISSUER, name, records.now),
    )
    return records.first_use(RENEWAL_ISSUER, name, records.now + seconds)


def end_renewal_turn(records: Records, before: UpstreamRow) -> None:
    """It did not come to a renewal; the next who needs one may try."""
    name = f"{before.id}/{before.version}"
    records.db.execute("DELETE FROM jti WHERE issuer = ? AND jti = ?", (RENEWAL_ISSUER, name))


def row_binding(id: str, user_id: str) -> str:
    """The text that sealed tokens are bound to, so that no row can be given to another user."""
    return f"upstream/{msgspec.json.encode([id, user_id]).decode()}"
