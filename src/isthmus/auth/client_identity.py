"""Who a client is at an authorization server, and how it shows that, whatever it asks for there."""

import time
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from isthmus.auth.foreign import said
from isthmus.auth.names import BY_SECRET, CLIENT_ASSERTION
from isthmus.auth.secret import Secret
from isthmus.errors import AuthRequired

if TYPE_CHECKING:
    from isthmus.auth.jose import PrivateKey

__all__ = ["BEST_FIRST", "Identity", "authenticated", "basic", "method_of"]

ASSERTION_SECONDS = 60

BEST_FIRST = ("private_key_jwt", "none", *BY_SECRET)
"""How a client may authenticate."""


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """A client as one authorization server knows it.

    Attributes:
        client_id: its name there.
        method: how it authenticates; None finds the best that the server takes.
        secret: with what, where that is a secret.
        key: with what, where that is a private key.
    """

    client_id: str
    method: str | None = None
    secret: Secret | None = None
    key: "PrivateKey | None" = None


def method_of(identity: Identity, methods: Sequence[str]) -> str:
    """How a client authenticates at a server that takes some methods.

    Raises:
        AuthRequired: it can do none of them.
    """
    if identity.method is not None:
        return identity.method
    able = {"none"} if identity.secret is None else {"client_secret_basic", "client_secret_post"}
    if identity.key is not None:
        able = {*able - {"none"}, "private_key_jwt"}
    for method in BEST_FIRST:
        if method in able and (method in methods or not methods):
            return method
    if able == {"none"}:  # public clients are often let in and not listed
        return "none"
    raise AuthRequired(
        f"the authorization server lets clients authenticate by {', '.join(map(said, methods))}, "
        f"and {identity.client_id!r} has what {' or '.join(sorted(able))} take: give it the other"
    )


def authenticated(
    fields: Mapping[str, str], identity: Identity, *, issuer: str, methods: Sequence[str] = ()
) -> tuple[dict[str, str], dict[str, str]]:
    """A form and the headers with which a client shows who it is.

    Raises:
        AuthRequired: it lacks what the method takes.
    """
    # Also beside Basic, where it is not needed: servers made with PyPI mcp look for it there first.
    method, form = method_of(identity, methods), {**fields, "client_id": identity.client_id}
    if not identity.client_id:  # an assertion may say it all
        del form["client_id"]
    if method == "private_key_jwt":
        form["client_assertion_type"] = CLIENT_ASSERTION
        form["client_assertion"] = assertion(identity, issuer).reveal()
        return form, {}
    if method == "none":
        return form, {}
    if identity.secret is None:
        raise AuthRequired(
            f"{identity.client_id!r} authenticates at {issuer} by {method}, and has no secret: "
            "give it one, or register it as a public client"
        )
    if method == "client_secret_post":
        form["client_secret"] = identity.secret.reveal()
        return form, {}
    return form, {"Authorization": basic(identity.client_id, identity.secret)}


def basic(client_id: str, secret: Secret) -> str:
    """The credentials of a client in the scheme Basic."""
    from urllib.parse import quote_plus  # what posts the form has imported it

    # RFC 6749 2.3.1: both are form-encoded before they are put together
    pair = f"{quote_plus(client_id)}:{quote_plus(secret.reveal())}"
    return f"Basic {b64encode(pair.encode()).decode()}"


def assertion(identity: Identity, issuer: str) -> Secret:
    """A JWT that says who the client is, for one server and one minute (RFC 7523 2.2)."""
    from isthmus.auth.jose import sign  # the JOSE library is loaded where something is signed

    if identity.key is None:
        raise AuthRequired(
            f"{identity.client_id!r} authenticates at {issuer} by private_key_jwt, and has no "
            "key: give it PrivateKey(…)"
        )
    now = int(time.time())
    claims = {
        "iss": identity.client_id,
        "sub": identity.client_id,
        "aud": issuer,
        "jti": Secret.random(16).reveal(),
        "iat": now,
        "exp": now + ASSERTION_SECONDS,
    }
    return Secret(sign(claims, identity.key))
