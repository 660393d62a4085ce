"""T38: somebody on this machine who wants to be where the browser comes back to."""

import asyncio
import socket

import pytest

from isthmus import Client
from isthmus.auth import Loopback, MemoryTokenStore, OAuth
from isthmus.auth.client.redirect import parse_port
from isthmus.errors import AuthRequired
from support.auth.oauth_town import TownBrowser, open_town


async def send_to_callback(port, text):
    """What the callback answers to some bytes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(text.encode())
    answer = (await reader.read()).decode()
    writer.close()
    return answer.partition("\r\n")[0]


@pytest.mark.covers("auth.threat.t38-callback-race")
async def test_a_port_that_is_taken_is_an_error_before_the_browser_opens():
    """Ours: whoever has it would get the code."""
    browser = TownBrowser()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        redirect = Loopback(port=taken.getsockname()[1])
        auth = OAuth(open_browser=browser, redirect=redirect, store=MemoryTokenStore())
        async with open_town() as here:
            with pytest.raises(AuthRequired, match=r"port \d+ is taken"):
                await Client(here.url, auth=auth).open()
            assert [] == here.authority.registered
    assert [] == browser.visited


@pytest.mark.covers("auth.threat.t38-callback-race")
async def test_the_port_is_ours_before_the_browser_opens_and_closed_after_it_came_back():
    """Ours: nobody can step in between."""
    bound = []

    class Looking(TownBrowser):
        async def __call__(self, url):
            self.visited.append(url)
            port = parse_port(self.params()["redirect_uri"])
            self.visited.pop()
            with pytest.raises(OSError, match="in use"):
                socket.create_server(("127.0.0.1", port))
            bound.append(port)
            await super().__call__(url)

    auth = OAuth(open_browser=Looking(), store=MemoryTokenStore())
    async with open_town() as here, Client(here.url, auth=auth):
        with pytest.raises(OSError, match=r"refused|failed"):
            await send_to_callback(bound[0], "GET / HTTP/1.1\r\n\r\n")


@pytest.mark.covers("auth.threat.t38-callback-race", "auth.threat.t08-state-forgery")
async def test_what_is_not_the_browsers_answer_is_answered_and_passed_over():
    """Ours: other names, paths, methods and sizes; and each gets the same page as everybody."""
    told = []

    class Crowded(TownBrowser):
        async def __call__(self, url):
            self.visited.append(url)
            asked = self.params()
            port = parse_port(asked["redirect_uri"])
            host = f"Host: 127.0.0.1:{port}\r\n\r\n"
            target = f"/callback?code=x&state={asked['state']}"
            texts = (
                f"GET {target} HTTP/1.1\r\nHost: evil.example\r\n\r\n",
                f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{host}",
                f"GET {target} HTTP/1.1\r\n\r\n",
                f"GET /favicon.ico HTTP/1.1\r\n{host}",
                f"GET /callback/../callback?state={asked['state']} HTTP/1.1\r\n{host}",
                f"POST {target} HTTP/1.1\r\n{host}",
                f"HEAD {target} HTTP/1.1\r\n{host}",
                f"GET /callback?state={'x' * 9000} HTTP/1.1\r\n{host}",
            )
            told.extend([await send_to_callback(port, text) for text in texts])
            self.visited.pop()
            await super().__call__(url)

    auth = OAuth(open_browser=Crowded(), store=MemoryTokenStore())
    async with open_town() as here, Client(here.url, auth=auth) as client:
        assert "hello" == (await client.call_tool("hello")).text
        assert 1 == len(here.authority.forms)
    codes = [line.split(" ")[1] if line else "" for line in told]
    assert ["404", "404", "404", "404", "404", "405", "405", ""] == codes


async def test_nobody_is_waited_for_for_ever():
    """Ours: five minutes, unless it is said otherwise; then the port is closed."""
    auth = OAuth(
        open_browser=lambda _url: None, redirect=Loopback(wait=0.01), store=MemoryTokenStore()
    )
    async with open_town() as here:
        with pytest.raises(AuthRequired, match="nobody has logged in within"):
            await Client(here.url, auth=auth).open()
