"""A console that is served by itself: over real HTTP, and at a host in another process's place."""

import asyncio
import socket

import pytest

from isthmus.console.serving import serve_console
from isthmus.errors import UsageError
from isthmus.host import Host
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.rule_file import read_layers
from isthmus.host.remote.attached import AttachedHost
from isthmus.host.remote.control import Control
from support.console.console_browser import ASKS, ConsoleBrowser
from support.event_loop import run_until


async def fetch(port, path, host=None):
    """The first line of an answer, and all of it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    name = host or f"127.0.0.1:{port}"
    writer.write(f"GET {path} HTTP/1.1\r\nhost: {name}\r\nconnection: close\r\n\r\n".encode())
    text = (await reader.read()).decode()
    writer.close()
    return text.partition("\r\n")[0], text


async def test_it_is_served_on_this_machine():
    """Ours: the login page by our name, nothing by another one."""
    async with Host() as host, serve_console(host.view, 0) as console:
        port = int(console.login_address.split(":")[2].partition("/")[0])
        assert "#" in console.login_address
        first, text = await fetch(port, "/console/login")
        assert (True, True) == ("200" in first, "Printed token" in text)
        assert "421" in (await fetch(port, "/console/login", "evil.example"))[0]


async def test_a_port_that_is_taken_is_named():
    """Ours: nothing else is stopped by it."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        async with Host() as host:
            with pytest.raises(UsageError, match=str(port)):
                async with serve_console(host.view, port):
                    pass


async def test_it_decides_for_a_host_in_another_process(tmp_path):
    """Ours: over the control socket, as `isthmus console` does."""
    from isthmus import Server

    shop = Server("shop")

    @shop.tool
    async def buy(what: str) -> str:
        """Buy."""
        return what

    host = Host(policy=Policy.of(read_layers(ASKS, "user")), state=tmp_path)
    host.add("shop", shop)
    async with (
        Control(host.view, tmp_path),
        host,
        AttachedHost(tmp_path) as view,
        serve_console(view, 0) as console,
    ):
        address = console.login_address.partition("/console")[0]
        browser = ConsoleBrowser(console, address)
        await browser.sign_in(console.identity.token.reveal())
        call = asyncio.ensure_future(host.call("shop__buy", {"what": "tea"}))
        await run_until(view.pending)
        path = f"/console/inbox/{view.pending()[0].id}"
        await browser.submit(path, press=("verdict", "allow"))
        assert "tea" == (await call).text
