"""How the client that the official suite tests logs in as a machine."""

from collections.abc import Awaitable, Callable
from typing import Any

from isthmus.auth.client.grants.client_credentials import ClientCredentials
from isthmus.auth.client.grants.enterprise import EnterpriseManaged
from isthmus.auth.client.grants.jwt_bearer import JwtBearer
from isthmus.auth.client.registration import StaticClient
from isthmus.auth.tokens.jose import PrivateKey
from isthmus.auth.tokens.secret import Secret
from isthmus.transports.http.client.requests import Authorization

Login = Callable[[str, dict[str, Any]], Awaitable[Authorization]]


async def by_signature(_url: str, context: dict[str, Any]) -> Authorization:
    """A client that signs with its key."""
    key = PrivateKey(context["private_key_pem"], alg=context["signing_algorithm"])
    return ClientCredentials(context["client_id"], key=key)


async def by_secret(_url: str, context: dict[str, Any]) -> Authorization:
    """A client that has a secret."""
    return ClientCredentials(context["client_id"], secret=Secret(context["client_secret"]))


async def by_workload(_url: str, context: dict[str, Any]) -> Authorization:
    """A workload whose platform vouches for it."""

    async def assertion(_issuer: str) -> Secret:
        return Secret(context["valid_jwt"])

    return JwtBearer(assertion, client=context["client_id"])


async def by_company(_url: str, context: dict[str, Any]) -> Authorization:
    """A user who is logged in at their company."""

    async def id_token() -> Secret:
        return Secret(context["idp_id_token"])

    secret = Secret(context["client_secret"])
    return EnterpriseManaged(
        context["idp_token_endpoint"],
        idp_client=StaticClient(context["idp_client_id"]),
        subject_token=id_token,
        client=StaticClient(context["client_id"], secret=secret),
    )


MACHINES: dict[str, Login] = {
    "client-credentials-jwt": by_signature,
    "client-credentials-basic": by_secret,
    "enterprise-managed-authorization": by_company,
    "wif-jwt-bearer": by_workload,
}
"""Who logs in, by scenario."""
