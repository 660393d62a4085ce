"""Connections that are kept: when one is used again, when not, and what ends it."""

import asyncio
import base64
import gc
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor

import pytest

from isthmus.errors import ConnectionLost
from isthmus.transports.http.client import pool
from isthmus.transports.http.client.dial import (
    HostAddress,
    HttpOrigin,
    connect_first,
    interleave_families,
    resolve_origin,
)
from isthmus.transports.http.client.headers import encode_request_head
from isthmus.transports.http.client.pool import PooledRequests, parse_route
from support.heap import own_heap
from support.http.raw_server import answer_each, serve_raw

EVERY_LOOP = True

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
ENDLESS = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n"


async def ask(requests, url, method="GET", body=None):
    return await (await requests.send(method, url, {}, body)).read(100)


@pytest.fixture
async def requests():
    made = PooledRequests(connect_timeout=5)
    yield made
    await made.close()


async def run_until(condition):
    """Let the loop go on until something is so."""
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - what it looks at has no event
            await asyncio.sleep(0)


# Used again


async def test_a_server_that_went_and_came_back_is_met_again(requests):
    """Ours: a connection that ended while it was idle is not used, whatever the method."""
    async with serve_raw(answer_each(OK)) as server:
        assert b"ok" == await ask(requests, server.url)
        port, url = server.port, server.url
    await run_until(lambda: not requests._connections)
    with pytest.raises(ConnectionLost, match="is a server running there") as lost:
        await ask(requests, url, "POST", b"x")
    assert not lost.value.sent

    async def connected(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK)
        await reader.read()
        writer.close()

    back = await asyncio.start_server(connected, "127.0.0.1", port)
    assert b"ok" == await ask(requests, url, "POST", b"")
    await requests.close()
    back.close()


async def test_an_end_that_the_loop_has_not_seen_yet_is_looked_for(requests, monkeypatch):
    """Ours: a program that was busy with something else finds its connections closed."""
    closing = asyncio.Event()

    async def once(server, reader, writer):
        await server.read_request(reader)
        writer.write(OK)
        if server.connections == 1:
            await closing.wait()
        else:
            await reader.read()

    async with serve_raw(once) as server:
        await ask(requests, server.url)
        (kept,) = requests._connections
        kept.idle_since -= 60
        kept._transport.pause_reading()  # as if the loop had had no time
        closing.set()
        await run_until(kept.is_readable)
        assert b"ok" == await ask(requests, server.url, "POST", b"")

    assert 2 == server.connections
    assert kept.ended


@pytest.mark.parametrize("method", ["GET", "DELETE", "HEAD"])
async def test_a_request_that_may_be_repeated_is_sent_again_once(requests, method):
    """RFC 9110 9.2.2: over a new connection, where the kept one ends without a word."""
    async with serve_raw(answer_each(OK, None, b"HTTP/1.1 204 Gone\r\n\r\n")) as server:
        await ask(requests, server.url)
        response = await requests.send(method, server.url, {})

    assert 204 == response.status
    assert (3, 2) == (len(server.heads), server.connections)


async def test_nothing_is_sent_a_third_time(requests):
    """RFC 9110 9.2.2: a client SHOULD NOT repeat what it has repeated."""
    async with serve_raw(answer_each(OK, None)) as server:
        await ask(requests, server.url)
        with pytest.raises(ConnectionLost, match="disconnected before it answered") as lost:
            await ask(requests, server.url)

    assert 3 == len(server.heads)
    assert lost.value.sent


async def test_a_post_that_may_have_been_done_is_not_sent_again(requests):
    """RFC 9110 9.2.2, RFC 9112 9.3.1: nobody knows what the server did before it ended."""
    async with serve_raw(answer_each(OK, None, OK)) as server:
        await ask(requests, server.url)
        with pytest.raises(ConnectionLost, match="disconnected before it answered") as lost:
            await ask(requests, server.url, "POST", b"x")

    assert 2 == len(server.heads)
    assert lost.value.sent


async def test_a_post_of_which_nothing_left_is_sent_on_another_connection(requests):
    """RFC 9110 9.2.2: what was never sent was never applied."""
    async with serve_raw(answer_each(OK)) as server:
        await ask(requests, server.url)
        (kept,) = requests._connections
        kept._transport.abort()  # it has ended, and nobody has been told
        assert b"ok" == await ask(requests, server.url, "POST", b"x")

    assert [b"", b"x"] == server.bodies


async def test_a_get_that_fails_on_a_new_connection_is_not_repeated(requests):
    """Ours: a server that answers nobody is asked once."""
    async with serve_raw(answer_each(None)) as server:
        with pytest.raises(ConnectionLost, match="disconnected before it answered"):
            await ask(requests, server.url)

    assert 1 == len(server.heads)


async def test_half_an_answer_is_not_asked_for_again(requests):
    """RFC 9112 9.3.1: an answer has begun, so this is no connection that was stale."""

    async def cut_off(server, reader, writer):
        await server.read_request(reader)
        writer.write(OK)
        await server.read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-le")

    async with serve_raw(cut_off) as server:
        await ask(requests, server.url)
        with pytest.raises(ConnectionLost, match="in the middle of it"):
            await ask(requests, server.url)

    assert 2 == len(server.heads)


# How many, and how long


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # by the loop that is over
def test_connections_of_a_loop_that_is_over_are_left_behind():
    """Ours: programs that call asyncio.run again and again may keep what makes their requests."""
    requests = PooledRequests(connect_timeout=5)
    accepted = []
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as threads:

        def answer_once():
            accepted.append(listening.accept()[0])
            accepted[-1].recv(4096)
            accepted[-1].sendall(OK)  # and the connection stays, loop or no loop

        for _ in range(2):
            answered = threads.submit(answer_once)
            said = asyncio.run(ask(requests, f"http://127.0.0.1:{listening.getsockname()[1]}/"))
            answered.result(5)
            assert b"ok" == said
        asyncio.run(requests.close())
        for each in accepted:
            each.close()

    assert {} == requests._connections
    gc.collect()  # the sockets that were left behind


async def test_what_was_idle_for_long_is_closed_by_one_timer(requests):
    """Ours: a program that asks nothing any more holds no connection."""
    async with serve_raw(answer_each(OK)) as server:
        await asyncio.gather(*[ask(requests, server.url) for _ in range(3)])
        old, *others = requests._connections
        sweep = requests._sweep
        old.idle_since -= pool.IDLE_TIMEOUT_S
        requests._close_idle()

        assert old.ended
        assert not any(other.ended for other in others)
        assert requests._sweep is not sweep
        for other in others:
            other.idle_since -= pool.IDLE_TIMEOUT_S
        requests._close_idle()

        assert all(other.ended for other in others)
        assert requests._sweep is None
        assert {} == requests._idle


async def test_no_more_than_some_are_kept(requests, monkeypatch):
    """Ours: a burst of calls leaves a bounded number of connections."""
    monkeypatch.setattr(pool, "MAX_IDLE_CONNECTIONS", 2)
    async with serve_raw(answer_each(OK)) as server:
        await asyncio.gather(*[ask(requests, server.url) for _ in range(5)])
        await run_until(lambda: len(requests._connections) == 2)

        assert 2 == len(requests._idle[parse_route(server.url).origin])


# Cancelled and closed


@pytest.mark.parametrize("turns", range(12))
async def test_a_request_that_is_cancelled_takes_its_connection_along(requests, turns):
    """Ours: wherever it was before its response; the next one is answered, by its own answer."""

    async def echo(server, reader, writer):
        while True:
            await server.read_request(reader)
            said = server.bodies[-1]
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(said), said))

    async with serve_raw(echo) as server:
        asking = asyncio.create_task(ask(requests, server.url, "POST", b"first"))
        for _ in range(turns):
            await asyncio.sleep(0)
        asking.cancel()
        (done,) = await asyncio.gather(asking, return_exceptions=True)
        kept = sum(len(each) for each in requests._idle.values())

        assert kept or done != b"first"
        assert kept <= len(server.bodies)  # its response was here to its end
        assert b"second" == await ask(requests, server.url, "POST", b"second")
        await run_until(lambda: len(requests._connections) == 1)


async def test_closing_ends_what_is_under_way(requests):
    """Ours: who waits for a head and who waits for a body hear it at once."""

    async def silent(server, reader, writer):
        await server.read_request(reader)
        if server.connections == 1:
            writer.write(ENDLESS)
        await reader.read()

    async with serve_raw(silent) as server:
        streaming = await requests.send("GET", server.url, {})
        assert b"ok" == await streaming.piece()
        waiting = [
            asyncio.create_task(streaming.piece()),
            asyncio.create_task(requests.send("GET", server.url, {})),
        ]
        await run_until(lambda: len(server.heads) == 2)
        await requests.close()
        await requests.close()
        told = await asyncio.gather(*waiting, return_exceptions=True)
        with pytest.raises(ConnectionLost, match="the connection was closed"):
            await requests.send("GET", server.url, {})

    assert [ConnectionLost, ConnectionLost] == [type(each) for each in told]
    assert ["the connection was closed"] * 2 == [str(each).rpartition(": ")[2] for each in told]
    assert {} == requests._connections


async def test_a_response_that_is_let_go_of_leaves_nothing(requests):
    """Ours: its connection is closed, since the rest of its body may never come."""
    gone = asyncio.Event()

    async def endless(server, reader, writer):
        await server.read_request(reader)
        writer.write(ENDLESS)
        await reader.read()
        gone.set()

    async with serve_raw(endless) as server:
        response = await requests.send("GET", server.url, {})
        response.close()
        response.close()
        await gone.wait()

    assert {} == requests._connections


async def test_requests_leave_no_cycle_behind(requests):
    """Ours: what a call has used is freed when it is over, refused connections and all."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        nobody = f"http://localhost:{taken.getsockname()[1]}/"
        async with serve_raw(answer_each(OK)) as server:

            async def each():
                await ask(requests, server.url, "POST", b"x")
                try:
                    await ask(requests, nobody)
                except ConnectionLost:
                    return

            await each()
            with own_heap():
                found = []
                for _ in range(
                    3
                ):  # what others in this process leave behind is not there every time
                    for _ in range(20):
                        await each()
                    await asyncio.sleep(0)
                    found.append(gc.collect())

    assert 0 == min(found)


# What is sent


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ({"X": "a\r\nY: b"}, "a line break or NUL is in X"),
        ({"X": "a\nb"}, "a line break"),
        ({"X": "a\0b"}, "NUL"),
        ({"X\r\nY": "a"}, "is no header name"),
        ({"X:": "a"}, "is no header name"),
        ({"": "a"}, "is no header name"),
        ({"Transfer-Encoding": "chunked"}, "leave out Transfer-Encoding"),
    ],
)
async def test_what_would_begin_another_header_is_not_sent(requests, headers, why):
    """RFC 9110 5.5: CR, LF and NUL are dangerous; and no request has two lengths."""
    async with serve_raw(answer_each(OK)) as server:
        with pytest.raises(ConnectionLost, match=why) as lost:
            await requests.send("GET", server.url, headers)

    assert not lost.value.sent
    assert 0 == server.connections


@pytest.mark.parametrize(
    "url", ["http://a/\r\nx: y", "http://a\n/", "http://a/\0", "http://a/\x7f"]
)
def test_a_url_with_control_characters_is_refused(url):
    """Ours: it would end the line of the request."""
    with pytest.raises(ValueError, match="control character"):
        parse_route(url)


@pytest.mark.parametrize("method", ["GET /", "GET\r\n", "", "GÉT"])
def test_a_method_is_a_token(method):
    """RFC 9110 9.1: of the letters that it may have."""
    with pytest.raises(ValueError, match="is no method"):
        encode_request_head(method, "/", "a", {})


def test_a_head_has_what_every_request_has():
    """RFC 9112 3.2: Host; and a length of its own, whatever the headers say."""
    head = encode_request_head("GET", "/x?y", "a:1", {"Accept": "x/y", "Content-Length": "7"})

    assert (
        b"GET /x?y HTTP/1.1\r\nHost: a:1\r\nAccept: x/y\r\n"
        b"accept-encoding: gzip, deflate\r\nuser-agent: isthmus\r\n"
    ) == head


@pytest.mark.parametrize(
    ("url", "origin", "target", "host"),
    [
        ("http://A.example", ("http", "a.example", 80), "/", "a.example"),
        ("HTTPS://a.example/x?y#z", ("https", "a.example", 443), "/x?y", "a.example"),
        ("http://a.example:80/", ("http", "a.example", 80), "/", "a.example"),
        ("http://a.example:8080?q=1", ("http", "a.example", 8080), "/?q=1", "a.example:8080"),
        ("http://[::1]:81/x", ("http", "::1", 81), "/x", "[::1]:81"),
        ("http://[fe80::1%25lo]/", ("http", "fe80::1%lo", 80), "/", "[fe80::1]"),
        ("http://a/%2e%2F/../x", ("http", "a", 80), "/%2e%2F/../x", "a"),
        ("http://a/ü b", ("http", "a", 80), "/%C3%BC%20b", "a"),
        ("http://bücher.example/", ("http", "xn--bcher-kva.example", 80), "/", "xn--bcher-kva.example"),
    ],
)  # fmt: skip
def test_where_a_url_leads_to(url, origin, target, host):
    """Ours: as it is written, unless there are letters in it that no URL has."""
    route = parse_route(url)

    assert (origin, target, host) == (route.origin, route.target, route.host)


@pytest.mark.parametrize("url", ["http://", "http://a:99999/", "http://a:0/", "http://[::1/"])
def test_what_leads_nowhere_is_refused(url):
    """Ours: before anything is looked up."""
    with pytest.raises(ValueError):  # noqa: PT011 - of our own, or of who spells URLs
        parse_route(url)


def test_letters_that_only_look_like_those_of_urls_are_encoded():
    """RFC 3986 2: U+017F is an s in another case, U+212A a k, and neither is of a URL."""
    assert "/%C5%BF" == parse_route("http://a/\u017f").target
    with pytest.raises(ValueError, match="no URL of HTTP"):
        parse_route("http\u017f://a/")


async def test_a_user_in_the_url_is_shown_to_the_server(requests):
    """RFC 7617: unless the headers say who it is; and no error shows it."""
    pair = base64.b64encode(b"me:se@cret").decode()
    async with serve_raw(answer_each(OK)) as server:
        url = server.url.replace("//", "//me:se%40cret@")
        await requests.send("GET", url, {})
        await requests.send("GET", url, {"authorization": "Bearer t"})

    assert f"\r\nAuthorization: Basic {pair}\r\n".encode() in server.heads[0]
    assert b"Basic" not in server.heads[1]


async def test_a_head_is_written_once_and_none_with_credentials_is_kept(requests):
    """Ours: what is the same again and again is looked up; tokens stay where they belong."""
    async with serve_raw(answer_each(OK)) as server:
        for token in ("a", "b"):
            await (await requests.send("GET", server.url, {"X": "y"})).read(9)
            await (await requests.send("GET", server.url, {"Authorization": token})).read(9)

    assert 1 == len(requests._heads)
    assert server.heads[0] == server.heads[2]
    assert b"Authorization: b" in server.heads[3]


# Connecting


async def test_one_address_is_tried_after_another():
    """RFC 8305: the next one while the first says nothing, or as soon as it refuses."""
    loop = asyncio.get_running_loop()
    with socket.socket() as refusing:
        refusing.bind(("127.0.0.1", 0))
        async with serve_raw(answer_each(OK)) as server:
            addresses = [
                HostAddress(socket.AF_INET, refusing.getsockname()),
                HostAddress(socket.AF_INET, ("127.0.0.1", server.port)),
            ]
            with await connect_first(loop, addresses) as sock:
                assert ("127.0.0.1", server.port) == sock.getpeername()
        with pytest.raises(ConnectionRefusedError):
            await connect_first(loop, addresses[:1] * 2)


async def test_an_attempt_that_is_overtaken_is_closed():
    """RFC 8305 5: one connection is used, and no other left over."""
    loop = asyncio.get_running_loop()
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:  # its queue is full: the next one gets no answer
            each.setblocking(False)
            each.connect_ex(full.getsockname())
        async with serve_raw(answer_each(OK)) as server:
            addresses = [
                HostAddress(socket.AF_INET, full.getsockname()),
                HostAddress(socket.AF_INET, ("127.0.0.1", server.port)),
            ]
            with await connect_first(loop, addresses) as sock:
                assert ("127.0.0.1", server.port) == sock.getpeername()
        for each in waiting:
            each.close()


def test_families_take_turns():
    """RFC 8305 4: a family that leads nowhere does not hold up the other."""
    v6 = [HostAddress(socket.AF_INET6, (f"::{n}", 1)) for n in range(3)]
    v4 = [HostAddress(socket.AF_INET, ("127.0.0.1", 1))]

    assert [v6[0], v4[0], v6[1], v6[2]] == interleave_families([*v6, *v4])


async def test_an_address_is_not_looked_up():
    """Ours: it is one already."""
    found = await resolve_origin(HttpOrigin("http", "127.0.0.1", 80))

    assert [(socket.AF_INET, ("127.0.0.1", 80))] == list(found)


async def test_what_is_looked_up_is_what_is_connected_to():
    """Ours: a resolver of one's own decides where a connection goes; Host keeps the name."""
    asked = []

    async def resolve(origin):
        asked.append(origin)
        return [HostAddress(socket.AF_INET, ("127.0.0.1", server.port))]

    async with serve_raw(answer_each(OK)) as server:
        requests = PooledRequests(connect_timeout=5, resolve=resolve)
        for _ in range(2):
            assert b"ok" == await ask(requests, "http://nowhere.example:81/")
        await requests.close()

    assert [("http", "nowhere.example", 81)] == asked
    assert b"\r\nHost: nowhere.example:81\r\n" in server.heads[0]


async def test_small_writes_are_not_held_back(requests):
    """Ours: what follows a handshake or a long body leaves without waiting for the server's receipt."""
    async with serve_raw(answer_each(OK)) as server:
        assert b"ok" == await ask(requests, server.url)
        (connection,) = requests._connections
        sock = connection._transport.get_extra_info("socket")

        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


async def test_ipv6_is_spoken(requests):
    """Ours: an address in brackets."""
    try:
        async with serve_raw(answer_each(OK), host="::1") as server:
            url = f"http://[::1]:{server.port}/"
            assert b"ok" == await ask(requests, url)
    except OSError:
        pytest.skip("this machine has no IPv6")

    assert f"\r\nHost: [::1]:{server.port}\r\n".encode() in server.heads[0]


async def test_who_does_not_answer_in_time_is_told():
    """Ours: connect_timeout is for looking up, connecting and TLS together."""

    async def resolve(origin):
        await asyncio.Event().wait()

    requests = PooledRequests(connect_timeout=0.01, resolve=resolve)
    with pytest.raises(ConnectionLost, match=r"no connection in time: .*connect_timeout=") as lost:
        await ask(requests, "http://a.example/")
    await requests.close()

    assert not lost.value.sent


# TLS


@pytest.fixture(scope="module")
def tls_contexts(tmp_path_factory):
    """A context that serves ``localhost``, and one that trusts it."""
    from transports.test_http_proxies import certificate

    path = certificate(tmp_path_factory.mktemp("tls"))
    served = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    served.load_cert_chain(path)
    return served, ssl.create_default_context(cafile=path)


@pytest.mark.covers("httpclient.tls.context")
async def test_a_secret_connection_is_kept_and_its_end_announced(tls_contexts):
    """RFC 9112 9.8: a client MUST send a closure alert before it closes."""
    served, trusted = tls_contexts
    names, ends = [], []
    served.sni_callback = lambda _, name, __: names.append(name)

    async def talk(server, reader, writer):
        for _ in range(2):
            await server.read_request(reader)
            writer.write(OK)
        ends.append(await reader.read())  # raises where there was no alert

    async with serve_raw(talk, tls=served) as server:
        url = f"https://localhost:{server.port}/"
        requests = PooledRequests(connect_timeout=5, tls=trusted)
        for _ in range(2):
            assert b"ok" == await ask(requests, url)
        await requests.close()
        await run_until(lambda: ends)
    served.sni_callback = None

    assert 1 == server.connections
    assert ["localhost"] == names
    assert [b""] == ends


async def test_a_certificate_of_another_name_is_refused(tls_contexts):
    """RFC 9110 4.3.4: a client MUST verify that the service is who was asked for."""
    served, trusted = tls_contexts
    async with serve_raw(answer_each(OK), tls=served) as server:
        requests = PooledRequests(connect_timeout=5, tls=trusted)
        with pytest.raises(ConnectionLost, match=r"CERTIFICATE_VERIFY_FAILED.*pass tls=") as lost:
            await ask(requests, server.url)
        await requests.close()

    assert not lost.value.sent
    assert [] == server.heads


async def test_plain_http_where_tls_was_meant_is_told(requests):
    """Ours: the likeliest mistake."""

    async def refuse(server, reader, writer):
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 No\r\n\r\n")

    async with serve_raw(refuse) as server:
        with pytest.raises(ConnectionLost, match="does it speak http:// rather than https://"):
            await ask(requests, f"https://127.0.0.1:{server.port}/")
