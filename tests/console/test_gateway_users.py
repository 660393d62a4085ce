"""Users of a gateway's console whom a proxy names: the same people as those who call with tokens."""

import asyncio

import pytest

from isthmus.auth.authorization_server.users.users import HeaderUsers
from isthmus.cli.commands.gateway.console import LazyConsole
from isthmus.console import Console, ProxyLogin
from isthmus.errors import UsageError
from isthmus.gateway import Gateway
from isthmus.host import Host
from isthmus.host.model.gateway_options import ConsoleOptions
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.rule_file import read_layers
from support.console.console_browser import ADDRESS, ASKS, ConsoleBrowser
from support.event_loop import run_until
from support.gateway.http_gateway import ISSUER, make_auth
from support.host.console_hosts import make_calculator
from support.http.asgi_driver import fetch
from support.http.messages import modern_body, modern_head

pytestmark = pytest.mark.timeout(60)

ANN = {"x_user": "ann"}
USERS = HeaderUsers("X-User", trusted_proxies=["127.0.0.1"])


def make_gateway(**options):
    """A gateway in front of a calculator that is asked about, with its host."""
    host = Host(policy=Policy(read_layers(ASKS, "user")))
    host.add("calc", make_calculator())
    return host, Gateway(host, **options)


def begin_call(app, name):
    """Call a tool as a user with a token."""
    arguments = {"a": 1, "b": 2}
    token = {"host": "127.0.0.1:8000", "authorization": f"Bearer {name}"}
    body = modern_body("tools/call", {"name": "calc__add", "arguments": arguments})
    head = {**modern_head("tools/call", "calc__add"), **token}
    return asyncio.ensure_future(fetch(app, path="/mcp", headers=head, body=body))


async def test_a_user_of_the_proxy_sees_and_allows_their_own_call():
    """Ours: the issuer of the login is that of the tokens; nobody else sees it."""
    host, gateway = make_gateway(auth=make_auth())
    console = Console(host.view, ADDRESS, identity=ProxyLogin(USERS, issuer=ISSUER))
    gateway.mount_console(console)
    browser = ConsoleBrowser(console)
    async with gateway, host.view.attend("test"):
        call = begin_call(gateway.asgi(), "ann")
        await run_until(host.view.pending)
        path = f"/console/inbox/{host.view.pending()[0].id}"
        assert path in await browser.get("/console/inbox", x_user="ann")
        assert path not in await browser.get("/console/inbox", x_user="bob")
        assert 404 == (await browser.send("GET", path, x_user="bob"))[0]
        await browser.submit(path, press=("verdict", "allow"), seen=ANN, **ANN)
        assert 200 == (await call).status
    await console.close()


@pytest.mark.parametrize("issuer", ["", "https://login.example/other"])
def test_users_of_another_issuer_are_refused_at_the_start(issuer):
    """Ours: users would not see what is theirs; the error names both, and the setting."""
    host, gateway = make_gateway(auth=make_auth())
    console = Console(host.view, ADDRESS, identity=ProxyLogin(USERS, issuer=issuer))
    with pytest.raises(
        UsageError, match=f"users of {ISSUER}: users would not see.*issuer='{ISSUER}'"
    ):
        gateway.mount_console(console)


@pytest.mark.parametrize("login", ["proxy", "authorization"])
def test_a_configuration_names_the_issuer(login):
    """Ours: it is said before the first request, without the console's modules."""
    _, gateway = make_gateway(auth=make_auth())
    other = ConsoleOptions(login=login, issuer="https://other.example")
    with pytest.raises(UsageError, match="users would not see"):
        gateway.mount_console(LazyConsole(gateway, ADDRESS, other))
    same = ConsoleOptions(login=login, issuer=ISSUER, trusted_proxies=("127.0.0.1",))
    console = LazyConsole(gateway, ADDRESS, same)
    gateway.mount_console(console)
    assert ISSUER == console.identity.users_issuer


def test_a_gateway_without_tokens_and_the_operators_login_name_no_issuer():
    """Ours: as before."""
    host, gateway = make_gateway()
    gateway.mount_console(Console(host.view, ADDRESS, identity=ProxyLogin(USERS)))
    host, gateway = make_gateway(auth=make_auth())
    gateway.mount_console(Console(host.view, ADDRESS))
