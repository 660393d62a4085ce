"""Console of `isthmus gateway`: which login it has, and where it has none."""

import json

import pytest

from isthmus.auth.authorization_server.pages.browser import BrowserRequest
from isthmus.cli.commands.gateway.console import LazyConsole, check_console
from isthmus.console import AuthorizationLogin, LocalLogin, ProxyLogin
from isthmus.errors import UsageError
from isthmus.gateway import Gateway
from isthmus.host.host import Host
from isthmus.host.model.gateway_options import ConsoleOptions
from support.console.console_browser import ConsoleBrowser

PUBLIC = "https://gateway.example"


def make_gateway(folder, **console):
    """A gateway whose configuration says something of its console."""
    file = folder / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {}, "host": {"gateway": {"console": console}}}))
    return Gateway(Host.from_config(str(file), policy="developer"))


@pytest.mark.parametrize(
    ("host", "public_url", "there"),
    [("127.0.0.1", None, True), ("0.0.0.0", None, False), ("127.0.0.1", PUBLIC, False)],  # noqa: S104 - nothing listens
)
def test_without_options_the_console_is_for_this_machine(host, public_url, there):
    """Ours: no console elsewhere, since anybody could try the token."""
    assert check_console(None, host, public_url) is there


@pytest.mark.parametrize(("host", "public_url"), [("0.0.0.0", None), ("127.0.0.1", PUBLIC)])  # noqa: S104 - as above
def test_the_local_login_is_refused_elsewhere(host, public_url):
    """Ours: it says which logins there are."""
    with pytest.raises(UsageError, match='set "login" to "authorization" or "proxy"'):
        check_console(ConsoleOptions(), host, public_url)


@pytest.mark.parametrize(
    ("login", "lack"), [("authorization", '"issuer"'), ("proxy", '"trustedProxies"')]
)
def test_a_login_that_lacks_something_is_refused_at_the_start(login, lack):
    """Ours: not with the first request."""
    with pytest.raises(UsageError, match=lack):
        check_console(ConsoleOptions(login=login), "127.0.0.1", None)


def test_a_configuration_names_the_login(tmp_path):
    """Ours: each is made of its members."""
    said = {
        "local": {},
        "proxy": {"trustedProxies": ["10.0.0.7"]},
        "authorization": {"issuer": "https://login.example", "clientId": "console"},
    }
    made = {}
    for login, members in said.items():
        gateway = make_gateway(tmp_path, login=login, operators=["root"], **members)
        options = gateway.options.console
        assert check_console(options, "127.0.0.1", None if login == "local" else PUBLIC)
        made[login] = LazyConsole(gateway, f"{PUBLIC}/mcp", options)

    assert isinstance(made["local"].identity, LocalLogin)
    assert isinstance(made["proxy"].identity, ProxyLogin)
    assert isinstance(made["authorization"].identity, AuthorizationLogin)
    assert made["local"].visitors is None
    assert made["proxy"].visitors is made["proxy"]


async def test_users_of_a_proxy_have_the_console_elsewhere(tmp_path):
    """Ours: and are the same principals where accounts are connected."""
    gateway = make_gateway(
        tmp_path, login="proxy", trustedProxies=["10.0.0.7"], header="X-User", operators=["root"]
    )
    console = LazyConsole(gateway, f"{PUBLIC}/mcp", gateway.options.console)
    async with gateway.host:
        browser = ConsoleBrowser(console, PUBLIC)
        browser.peer = "10.0.0.7"
        answers = [
            (await browser.send("GET", "/console/servers", x_user=user))[0]
            for user in ("root", "ada")
        ]
        browser.peer = "10.0.0.8"
        forged = await browser.send("GET", "/console/servers", x_user="root")
        asked = BrowserRequest("GET", {}, {"x-user": "ada"}, {}, "10.0.0.7")
        stranger = BrowserRequest("GET", {}, {"x-user": "ada"}, {}, "10.0.0.8")
        found = [await console.find(asked), await console.find(stranger)]

    assert answers == [200, 404]
    assert forged[0] == 401
    assert found == ["user:ada@local", None]
