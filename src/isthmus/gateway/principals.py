"""Principals of a gateway's callers: one name for policy, grants, budgets, limits and audit.

A user of one issuer is never one of another: the issuer's host stands in the name, and an issuer that has
more than a host in its address is told apart by a digest of the whole.
"""

import re
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from isthmus.core.principal import Principal, owner_of
from isthmus.errors import UsageError

# whoever calls without having authenticated: on stdio, or at a gateway on this machine without
# ``auth=``
LOCAL_PRINCIPAL = "user:local"

PLAIN_SUBJECT = re.compile(r"[A-Za-z0-9._~+-]{1,128}")

DIGEST_CHARS = 16


def make_principal(principal: Any) -> str:
    """The principal of an attempt for whoever a request was authorized for.

    Args:
        principal: a :class:`~isthmus.core.principal.Principal`, what a transport without tokens knows, or
            None.

    Returns:
        ``user:SUBJECT@HOST`` for a user, ``client:ID@HOST`` for a client that acts for itself.
    """
    if principal is None:
        return LOCAL_PRINCIPAL
    if not isinstance(principal, Principal):
        return f"user:{_spell_part(str(principal))}@local"
    kind, who = "user", principal.subject
    if principal.client_id and principal.client_id == principal.subject:
        kind, who = "client", principal.client_id
    return f"{kind}:{_spell_part(who)}@{_spell_issuer(principal.issuer)}"


def make_user_principal(subject: str, issuer: str = "") -> str:
    """The principal of a user of an issuer; without one, of a user whom something before us has named."""
    return make_principal(Principal(issuer=issuer, subject=subject) if issuer else subject)


def check_users_issuer(issuer: str, issuers: Sequence[str]) -> None:
    """See that the users of a console are those who call, so that each sees what is theirs.

    Args:
        issuer: of the users who sign in; empty for none.
        issuers: of the tokens that calls come with.

    Raises:
        UsageError: they are not.
    """
    known = {make_user_principal("somebody", one) for one in issuers}
    if make_user_principal("somebody", issuer) in known:
        return
    raise UsageError(
        f"users of {issuer or 'no issuer'} sign in to the console, but calls to this gateway are of users of "
        f"{' and '.join(issuers)}: users would not see their own calls. Set issuer={issuers[0]!r} of the login "
        '("issuer" of host.gateway.console in a configuration)'
    )


def make_owner_key(principal: Any) -> str:
    """To whom a call belongs, as a key for what only its owner may come back to."""
    return owner_of(principal) or ""


def _spell_part(text: str) -> str:
    """A subject as it is, or cut with a digest where it holds what a name does not."""
    if PLAIN_SUBJECT.fullmatch(text):
        return text
    kept = re.sub(r"[^A-Za-z0-9._~+-]+", "_", text)[:64].strip("_")
    return f"{kept or 'x'}!{_digest(text)}"


def _spell_issuer(issuer: str) -> str:
    from urllib.parse import urlsplit  # slow, and needed with authorization alone

    try:
        parts = urlsplit(issuer)
        port = parts.port
    except ValueError:
        return f"!{_digest(issuer)}"
    host = parts.hostname or ""
    spelt = f"{host}:{port}" if port else host
    plain = f"{parts.scheme}://{parts.netloc}"
    if not host or issuer.rstrip("/") != plain or parts.scheme != "https":
        return f"{spelt}!{_digest(issuer)}"
    return spelt


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_CHARS]
