"""T9: nothing below S256 is accepted."""

import pytest

from support.auth.small_authority import CHALLENGE, SmallAuthority, redirect_parameters

pytestmark = pytest.mark.covers("auth.threat.t09-pkce-downgrade", "auth.authority.pkce-enforced")


@pytest.mark.parametrize(
    ("challenge", "method"),
    [
        (None, None),
        (None, "S256"),
        (CHALLENGE, None),
        (CHALLENGE, "plain"),
        ("v" * 64, "S256"),
        (CHALLENGE[:-1], "S256"),
        (CHALLENGE + "=", "S256"),
    ],
)
async def test_a_request_without_a_challenge_of_s256_is_sent_back_with_an_error(challenge, method):
    """2025-06-18: PKCE is for every client; a challenge of S256 is 43 characters of base64url."""
    async with SmallAuthority() as small:
        client_id = await small.public()
        answer = await small.ask(client_id, code_challenge=challenge, code_challenge_method=method)

        assert "invalid_request" == redirect_parameters(answer)["error"]
        assert [] == small.asked


@pytest.mark.parametrize("verifier", ["w" * 43, "v" * 42, "v" * 44, CHALLENGE, "é" * 43, None])
async def test_a_verifier_that_is_not_the_challenges_gets_nothing(verifier):
    """2025-06-18: the verifier is held against the challenge, which is none itself."""
    async with SmallAuthority() as small:
        client_id = await small.public()
        answer = await small.redeem(await small.code(client_id), client_id, code_verifier=verifier)

        assert 400 == answer.status
        assert answer.json["error"] in {"invalid_grant", "invalid_request"}


async def test_a_wrong_verifier_does_not_spend_the_code():
    """Ours: whoever catches a code cannot take it from the client that can use it."""
    async with SmallAuthority() as small:
        client_id = await small.public()
        code = await small.code(client_id)
        await small.redeem(code, client_id, code_verifier="w" * 43)

        assert 200 == (await small.redeem(code, client_id)).status
