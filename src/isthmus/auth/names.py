"""The words of OAuth that both of its ends spell, each once."""

__all__ = [
    "BY_SECRET",
    "CLIENT_ASSERTION",
    "CODE",
    "CONFIDENTIAL",
    "EXCHANGE",
    "ID_JAG",
    "ID_JAG_TYPE",
    "JWT_BEARER",
    "MACHINE",
    "METHODS",
    "REFRESH",
    "TOKEN_TYPE",
]

# Grant types

CODE = "authorization_code"
REFRESH = "refresh_token"
MACHINE = "client_credentials"
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"

# How clients authenticate

BY_SECRET = ("client_secret_basic", "client_secret_post")
CONFIDENTIAL = (*BY_SECRET, "private_key_jwt")
METHODS = ("none", *CONFIDENTIAL)
CLIENT_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
"""What a client says that authenticates by ``private_key_jwt`` (RFC 7523 2.2)."""

# Types of tokens

TOKEN_TYPE = "urn:ietf:params:oauth:token-type:"  # noqa: S105 - the beginning of a URN
ID_JAG = f"{TOKEN_TYPE}id-jag"
"""An identity provider's grant for a user, as an exchange of tokens names it."""

ID_JAG_TYPE = "oauth-id-jag+jwt"
"""The same, as its own header names it."""
