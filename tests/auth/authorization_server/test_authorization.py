"""What people are asked about a request, before a front shows it to them."""

import pytest

from support.auth.small_authority import SmallAuthority


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("https://app.example/about", "https://app.example/about"),
        ("http://app.example", "http://app.example"),
        ("javascript:alert(1)", ""),
        ("data:text/html,x", ""),
        ('https://app.example/"onclick=\u00e9', ""),
        ("", ""),
    ],
)
async def test_only_a_web_page_is_linked_to_as_home_page(said, shown):
    """Ours: a front of somebody else's may make a link of what a client says of itself."""
    async with SmallAuthority() as small:
        await small.ask(await small.public(client_uri=said))

        assert shown == small.asked[0].client_uri
