"""T11: a code is bound to its client, redirect URI, challenge and resource."""

import pytest

from support.auth.small_authority import BACK, OTHER, RESOURCE, SmallAuthority

pytestmark = pytest.mark.covers("auth.threat.t11-code-injection")


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"redirect_uri": "http://127.0.0.1:51001/callback"}, "invalid_grant"),
        ({"redirect_uri": BACK + "/"}, "invalid_grant"),
        ({"code_verifier": "w" * 43}, "invalid_grant"),
        ({"resource": OTHER}, "invalid_target"),
        ({"resource": "https://nobody.example/mcp"}, "invalid_target"),
        ({"resource": "not a url"}, "invalid_target"),
        ({"resource": [RESOURCE, OTHER]}, "invalid_target"),
        ({"code": "x" * 43}, "invalid_grant"),
    ],
)
async def test_a_code_is_good_for_what_it_was_issued_for(change, error):
    """RFC 6749 4.1.3, RFC 8707 2.2: nothing of the request may have changed."""
    async with SmallAuthority() as small:
        client_id = await small.public()
        code = await small.code(client_id, resource=RESOURCE)
        answer = await small.redeem(change.pop("code", code), client_id, **change)

        assert (400, error) == (answer.status, answer.json["error"])


async def test_another_client_gets_nothing_for_a_code():
    """RFC 6749 4.1.3: also where it has the verifier."""
    async with SmallAuthority() as small:
        client_id, other = await small.public(), await small.public()
        answer = await small.redeem(await small.code(client_id), other)

        assert "invalid_grant" == answer.json["error"]


async def test_what_is_bound_to_a_key_from_the_start_is_not_redeemed_without_it():
    """RFC 9449 10: the code carries the thumbprint that was asked for."""
    async with SmallAuthority() as small:
        client_id = await small.public()
        code = await small.code(client_id, dpop_jkt="x" * 43)

        assert "invalid_grant" == (await small.redeem(code, client_id)).json["error"]
