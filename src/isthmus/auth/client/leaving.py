"""Logging out: what is kept is forgotten, and the authorization server told where it listens."""

from typing import TYPE_CHECKING

from isthmus.auth.client.discovery import Discovery
from isthmus.auth.client.registration import Registrar
from isthmus.auth.client.tokens import Tokens
from isthmus.auth.client_identity import authenticated
from isthmus.auth.urls import is_same_resource, is_secure
from isthmus.errors import AuthError

if TYPE_CHECKING:
    from isthmus.auth.client.oauth import OAuth

__all__ = ["forget_all"]


async def forget_all(auth: "OAuth", url: str | None, *, registrations: bool) -> int:
    """Forget tokens; see :meth:`isthmus.auth.client.oauth.OAuth.logout`."""
    store, count, issuers = auth.store, 0, set[str]()
    for key in await store.keys():
        if key.redirect or key.account != auth.account:
            continue
        if url is not None and not is_same_resource(key.resource, url):
            continue
        async with store.lock(key):  # what is just being renewed ends like the rest
            record = await store.get(key)
            if isinstance(record, Tokens):
                try:
                    await revoke(auth, record)
                finally:
                    await store.delete(key)
                issuers.add(key.issuer)
                count += 1
    for key in await store.keys() if registrations else ():
        if key.redirect and (url is None or key.issuer in issuers):
            await store.delete(key)
            count += 1
    return count


async def revoke(auth: "OAuth", tokens: Tokens) -> None:
    """Tell the issuer that tokens are of no use any more; what it makes of that does not matter."""
    network = auth.reach(tokens.resource)
    try:
        server = await Discovery(tokens.resource, network, compat=auth.compat).server(tokens.issuer)
        identity = await Registrar(auth.program, auth.redirect, auth.store, network).of(tokens)
        endpoint = server.revocation_endpoint or ""
        # spec 2026-07-28 basic/authorization/security-considerations#communication-security
        if identity is None or not is_secure(endpoint):
            return
        token = tokens.refresh or tokens.access
        form, headers = authenticated(
            {"token": token.reveal()}, identity, issuer=tokens.issuer, methods=server.methods
        )
        await network.form(endpoint, form, headers)
    except AuthError:
        return
    finally:
        await network.close()
