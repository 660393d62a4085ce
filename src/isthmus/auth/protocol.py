"""The OAuth protocol as both ends speak it: registered names, client authentication, and answers that are read."""

import time
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from isthmus.auth.tokens.secret import Secret
from isthmus.core.redaction.lines import redact_log
from isthmus.errors import AuthRequired

if TYPE_CHECKING:
    from isthmus.auth.tokens.jose import PrivateKey

# Grant types

AUTHORIZATION_CODE_GRANT = "authorization_code"
REFRESH_GRANT = "refresh_token"
CLIENT_CREDENTIALS_GRANT = "client_credentials"
JWT_BEARER_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
EXCHANGE_GRANT = "urn:ietf:params:oauth:grant-type:token-exchange"

# How clients authenticate

SECRET_METHODS = ("client_secret_basic", "client_secret_post")
CONFIDENTIAL_METHODS = (*SECRET_METHODS, "private_key_jwt")
AUTH_METHODS = ("none", *CONFIDENTIAL_METHODS)
# of private_key_jwt (RFC 7523 2.2)
CLIENT_ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

# Types of tokens

TOKEN_TYPE_PREFIX = "urn:ietf:params:oauth:token-type:"  # noqa: S105 - the beginning of a URN
# an identity provider's grant for a user, in a token exchange
ID_JAG_URN = f"{TOKEN_TYPE_PREFIX}id-jag"
ID_JAG_JWT_TYPE = "oauth-id-jag+jwt"  # the same, in its own header
MAX_QUOTED_CHARS = 200
ASSERTION_LIFE_S = 60
PREFERRED_AUTH_METHODS = ("private_key_jwt", "none", *SECRET_METHODS)


def parse_members(body: bytes) -> Mapping[str, Any]:
    """The members of a JSON object; none where a body is something else, whatever type it has."""
    try:
        read = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}


def parse_lifetime(value: Any) -> float | None:
    """Seconds that something is good for; some servers write them as a text. None for nonsense."""
    try:
        life = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return life if 0 < life < 1e12 else None


def quote_foreign(words: Any) -> str:
    """Another side's words as an error may show them: some, on one line, without control.

    Secrets are taken out: who does not know a code or a refresh token may say which it was.
    """
    text = redact_log(words if isinstance(words, str) else repr(words))
    return "".join(c if c.isprintable() else " " for c in text[:MAX_QUOTED_CHARS])


class ClientIdentity(msgspec.Struct, frozen=True, kw_only=True):
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


def choose_auth_method(identity: ClientIdentity, methods: Sequence[str]) -> str:
    """Choose the authentication method of a client, of those that a server takes.

    Raises:
        AuthRequired: it can do none of them.
    """
    if identity.method is not None:
        return identity.method
    able = {"none"} if identity.secret is None else {"client_secret_basic", "client_secret_post"}
    if identity.key is not None:
        able = {*able - {"none"}, "private_key_jwt"}
    for method in PREFERRED_AUTH_METHODS:
        if method in able and (method in methods or not methods):
            return method
    if able == {"none"}:  # public clients are often let in and not listed
        return "none"
    raise AuthRequired(
        f"{identity.client_id!r} cannot authenticate: the authorization server takes "
        f"{', '.join(map(quote_foreign, methods))}, and the client has credentials for "
        f"{' or '.join(sorted(able))}"
    )


def authenticate_form(
    fields: Mapping[str, str], identity: ClientIdentity, *, issuer: str, methods: Sequence[str] = ()
) -> tuple[dict[str, str], dict[str, str]]:
    """A form and the headers with which a client shows who it is.

    Raises:
        AuthRequired: it lacks what the method takes.
    """
    # Also beside Basic, where it is not needed: servers made with PyPI mcp look for it there first.
    method, form = (
        choose_auth_method(identity, methods),
        {**fields, "client_id": identity.client_id},
    )
    if not identity.client_id:  # an assertion may say it all
        del form["client_id"]
    if method == "private_key_jwt":
        form["client_assertion_type"] = CLIENT_ASSERTION_TYPE
        form["client_assertion"] = sign_client_assertion(identity, issuer).reveal()
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
    return form, {"Authorization": encode_basic(identity.client_id, identity.secret)}


def encode_basic(client_id: str, secret: Secret) -> str:
    """The credentials of a client in the scheme Basic."""
    from urllib.parse import quote_plus  # what posts the form has imported it

    # RFC 6749 2.3.1: both are form-encoded before they are put together
    pair = f"{quote_plus(client_id)}:{quote_plus(secret.reveal())}"
    return f"Basic {b64encode(pair.encode()).decode()}"


def sign_client_assertion(identity: ClientIdentity, issuer: str) -> Secret:
    """A JWT that says who the client is, for one server and one minute (RFC 7523 2.2)."""
    from isthmus.auth.tokens.jose import (
        sign_jwt,  # the JOSE library is loaded where something is signed
    )

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
        "exp": now + ASSERTION_LIFE_S,
    }
    return Secret(sign_jwt(claims, identity.key))
