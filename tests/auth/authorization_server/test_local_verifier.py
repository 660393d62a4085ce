"""The verifier beside the authorization server: what it believes, and how soon it stops."""

import pytest

from isthmus.auth.authorization_server.core.settings import RegistrationPolicy
from isthmus.auth.authorization_server.storage.clients import RegisteredClient
from isthmus.auth.authorization_server.storage.store import SQLiteAuthStore
from isthmus.auth.resource_server.verifier import VerifierUnavailable
from isthmus.auth.tokens.jose import PrivateKey, read_token, sign_jwt
from isthmus.auth.tokens.secret import name_token
from support.auth.small_authority import BACK, ISSUER, OTHER, RESOURCE, SmallAuthority

KEY = "k" * 43


@pytest.mark.covers("auth.authority.short-lived")
async def test_a_token_names_user_resource_and_expiry():
    """RFC 9068 2.2, 2025-06-18: minutes, one audience, and no more than was granted."""
    async with SmallAuthority() as small:
        client_id = await small.public()
        tokens = await small.tokens(client_id, scope="read")
        principal = await small.verified(tokens["access_token"])

        assert (ISSUER, "ada", client_id) == (
            principal.issuer, principal.subject, principal.client_id)  # fmt: skip
        assert {"read"} == principal.scopes
        assert small.clock.now + 600 == principal.expires_at
        assert "at+jwt" == read_token(tokens["access_token"]).header["typ"]
        assert await small.verified(tokens["access_token"], OTHER) is None


@pytest.mark.parametrize("text", ["", "x", "a.b.c", "rt.x.0.y", "é"])
async def test_text_that_is_no_token_is_refused(text):
    """Ours: bytes that anybody can send."""
    async with SmallAuthority() as small:
        assert await small.verified(text) is None


async def test_a_token_of_another_key_is_refused():
    """RFC 9068 4: also under a key id of ours."""
    async with SmallAuthority() as small:
        tokens = await small.tokens(await small.public())
        parsed = read_token(tokens["access_token"])
        forged = sign_jwt(parsed.claims, PrivateKey.generate("ES256"), headers=parsed.header)

        assert await small.verified(forged) is None


async def test_a_refresh_token_and_an_assertion_are_no_access_tokens():
    """RFC 9068 4: the type is looked at."""
    async with SmallAuthority() as small:
        tokens = await small.tokens(await small.public())

        assert await small.verified(tokens["refresh_token"]) is None


async def test_a_revocation_in_this_process_counts_at_once():
    """Ours: streams ask the same, and end with it."""
    async with SmallAuthority() as small:
        tokens = await small.tokens(await small.public())
        principal = await small.verified(tokens["access_token"])
        before = await small.app.verifier.lasts(principal)
        await small.app.revoke(principal.claims["gid"])

        assert before
        assert not await small.app.verifier.lasts(principal)
        assert not await small.app.revoke(principal.claims["gid"])


async def test_a_revocation_in_another_process_counts_within_two_seconds(tmp_path):
    """Ours: it is looked up again as often as that."""
    small = SmallAuthority(store=SQLiteAuthStore(tmp_path / "auth.db", key=KEY))
    other = SmallAuthority(store=SQLiteAuthStore(tmp_path / "auth.db", key=KEY))
    async with small, other:
        tokens = await small.tokens(await small.public())
        principal = await small.verified(tokens["access_token"])
        await other.app.revoke(principal.claims["gid"])
        small.clock.now += 2

        assert await small.verified(tokens["access_token"]) is None


async def test_a_key_that_another_process_made_is_found(tmp_path):
    """Ours: after a rotation there, tokens are believed here."""
    small = SmallAuthority(store=SQLiteAuthStore(tmp_path / "auth.db", key=KEY))
    other = SmallAuthority(store=SQLiteAuthStore(tmp_path / "auth.db", key=KEY))
    async with small, other:
        client_id = await small.public()
        first = await small.tokens(client_id)
        await small.verified(first["access_token"])
        await other.app.rotate_keys()
        await other.app.rotate_keys()
        second = await other.tokens(client_id)
        small.clock.now += 1

        assert await small.verified(second["access_token"]) is not None


async def test_a_user_who_is_gone_has_no_tokens():
    """Ours: unlike those that an identity provider vouched for, who never were there."""
    async with SmallAuthority() as small:
        tokens = await small.tokens(await small.public())
        small.users.gone.add("ada")

        assert await small.verified(tokens["access_token"]) is None


async def test_a_disabled_user_has_no_tokens_of_a_client_of_the_same_name_either():
    """Ours: what was granted is a user's, whatever the client is called."""
    client = RegisteredClient(client_id="ada", redirect_uris=(BACK,))
    policy = RegistrationPolicy(static=[client])
    async with SmallAuthority(registration=policy) as small:
        tokens = await small.tokens("ada")
        assert await small.verified(tokens["access_token"]) is not None
        small.users.disabled.add("ada")
        small.app.forget()

        assert await small.verified(tokens["access_token"]) is None


async def test_a_store_that_does_not_answer_is_no_bad_token(tmp_path):
    """Ours: 503, for 401 would start a login."""
    path = tmp_path / "auth.db"
    async with SmallAuthority(store=SQLiteAuthStore(path, key=KEY)) as small:
        tokens = await small.tokens(await small.public())
        await small.app.store.write(lambda records: records.db.execute("DROP TABLE grant_"))

        with pytest.raises(VerifierUnavailable):
            await small.verified(tokens["access_token"], RESOURCE)


async def test_a_token_is_recalled_while_it_stands():
    """Ours: for two seconds after it was looked up, and not after a revocation or its end."""
    async with SmallAuthority() as small:
        token = (await small.tokens(await small.public()))["access_token"]
        verifier, name = small.app.verifier, name_token(token)

        assert verifier.recall(name, RESOURCE) is None
        principal = await small.verified(token)
        assert principal is verifier.recall(name, RESOURCE)
        assert verifier.recall(name, OTHER) is None
        small.clock.now += 2
        assert verifier.recall(name, RESOURCE) is None

        principal = await small.verified(token)
        assert principal is verifier.recall(name, RESOURCE)
        await small.app.revoke(principal.claims["gid"])
        assert verifier.recall(name, RESOURCE) is None
        assert await small.verified(token) is None
        assert verifier.recall(name, RESOURCE) is None


async def test_a_token_is_not_recalled_after_its_end():
    """RFC 9068 4: also within the two seconds."""
    async with SmallAuthority() as small:
        token = (await small.tokens(await small.public()))["access_token"]
        small.clock.now += 599
        principal = await small.verified(token)

        assert principal is small.app.verifier.recall(name_token(token), RESOURCE)
        small.clock.now += 1
        assert small.app.verifier.recall(name_token(token), RESOURCE) is None
