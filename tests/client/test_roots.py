"""Roots: checked, encoded, each once, and watched."""

import asyncio
import logging
import os

import pytest

from isthmus.client.client import Client
from isthmus.client.features.roots import RootWatch, make_root, make_roots
from isthmus.errors import UsageError
from isthmus.testing.faults import until
from isthmus.wire import ListRootsParams, ListRootsResult, Root
from support.client.small_server import LEGACY_NAME, MODERN_NAME, SmallServer, text_result


@pytest.mark.covers("roots.uri.file-only", "roots.uri.encoded")
@pytest.mark.parametrize(
    ("place", "uri"),
    [
        ("/srv/work", "file:///srv/work"),
        ("/srv/my work/50%", "file:///srv/my%20work/50%25"),
        ("/srv/../etc/ü", "file:///etc/%C3%BC"),
        ("file:///srv/work", "file:///srv/work"),
        ("file:///srv/my work/ü", "file:///srv/my%20work/%C3%BC"),
        ("file:///srv/my%20work", "file:///srv/my%20work"),
        ("file://host/share", "file://host/share"),
        (Root(uri="file:///x y", name="X"), "file:///x%20y"),
    ],
)
def test_a_root_is_a_file_uri_with_its_path_encoded(place, uri):
    """Spec 2026-07-28 client/roots#root: this MUST be a file:// URI."""
    assert uri == make_root(place).uri


@pytest.mark.covers("roots.uri.file-only", "roots.uri.no-traversal")
@pytest.mark.parametrize(
    ("place", "complaint"),
    [
        ("https://example.com/x", "a root is a path or a file:// URI"),
        (Root(uri="http://x/y"), "a root is a path or a file:// URI"),
        (Root(uri="/srv"), "a root is a path or a file:// URI"),
        ("file:///srv/../etc", "its path goes up"),
        ("file:///srv/%2e%2e/etc", "its path goes up"),
        ("file:///srv/%2E%2e%2Fetc", "its path goes up"),
        ("file:///srv?x=1", "write %3F"),
        ("file:///srv#x", "write %3F"),
        ("file:///srv%00", "control character"),
        ("file://", "not absolute"),
        ("a\0b", "a zero byte"),
    ],
)
def test_what_cannot_be_a_root_is_refused(place, complaint):
    """Spec 2026-07-28 client/roots#security-considerations: MUST validate all root URIs."""
    with pytest.raises(UsageError, match=complaint):
        make_roots([place])


@pytest.mark.covers("roots.list.no-duplicates")
def test_a_place_is_told_once():
    """Ours: a path and its URI are one place."""
    found = make_roots(["/srv", "file:///srv", Root(uri="file:///srv/", name="again"), "/home"])

    assert ["file:///srv", "file:///home"] == [one.uri for one in found]


def test_a_single_place_is_no_list_of_places():
    """Ours: the letters of a path are no roots."""
    with pytest.raises(UsageError, match=r"roots is a list of places"):
        make_roots("/srv")


def test_a_wrong_root_is_found_when_the_client_is_made():
    """Ours: a mistake is found where it was made."""
    with pytest.raises(UsageError, match="a root is a path or a file:// URI"):
        Client(SmallServer(), roots=["ftp://x"])


@pytest.mark.covers("roots.list.missing-warned", "roots.list.there")
async def test_a_place_that_is_not_there_is_told_with_one_warning(tmp_path, caplog):
    """Ours: it may be there for the server, in its container; whoever set it is to know."""
    watch = RootWatch([tmp_path, tmp_path / "gone", "file://elsewhere/share"])
    with caplog.at_level(logging.WARNING, "isthmus"):
        found = [one.uri for one in await watch.now()]
        await watch.now()

    assert [tmp_path.as_uri(), (tmp_path / "gone").as_uri(), "file://elsewhere/share"] == found
    assert 1 == caplog.text.count("no directory that can be read")


@pytest.mark.covers("roots.watched.vanished", "roots.list.there")
async def test_a_watched_place_is_told_while_it_is_there(tmp_path):
    """Spec 2026-07-28 client/roots#security-considerations: MUST monitor accessibility."""
    place = tmp_path / "work"
    watch = RootWatch([place], watched=True)
    seen = []
    for step in (lambda: None, place.mkdir, lambda: None, place.rmdir):
        step()
        seen.append((await watch.has_changed(), [one.name for one in await watch.now()]))

    assert [(False, []), (True, ["work"]), (False, ["work"]), (True, [])] == seen


@pytest.mark.covers("roots.watched.vanished")
async def test_a_server_is_told_when_a_watched_root_vanishes(tmp_path):
    """Spec 2025-11-25 client/roots#root-list-changes: when roots change, a notification MUST go."""
    place = tmp_path / "work"
    place.mkdir()
    told = asyncio.Event()

    async def call(_params, inbound):
        found = await inbound.link.call("roots/list", ListRootsParams(), ListRootsResult)
        return text_result(str(len(found.roots)))

    small = SmallServer({"tools/call": call})
    small.noted = Told(told)
    async with Client(small, revision=LEGACY_NAME, roots=[place], watch_roots=0.01) as client:
        assert "1" == (await client.call_tool("count")).text
        place.rmdir()
        await asyncio.wait_for(told.wait(), 10)

    assert "notifications/roots/list_changed" in small.noted


async def test_a_root_that_vanishes_during_the_first_look_is_noticed(tmp_path):
    """Ours: a server was told of it while the first look was on its way."""
    place, go = tmp_path / "work", asyncio.Event()
    place.mkdir()
    waits = [go.wait(), asyncio.sleep(0)]

    async def find_places():
        await waits.pop(0)
        return [place]

    watch = RootWatch(find_places, watched=True)
    look = asyncio.ensure_future(watch.has_changed())
    await asyncio.sleep(0)
    assert 1 == len(await watch.now())
    place.rmdir()
    go.set()

    assert await look


class Told(list):
    """Notes that wake somebody up."""

    def __init__(self, event):
        super().__init__()
        self.event = event

    def append(self, method):
        super().append(method)
        if method.endswith("roots/list_changed"):
            self.event.set()


@pytest.mark.covers("roots.changed.told")
@pytest.mark.parametrize(
    ("revision", "noted"),
    [(LEGACY_NAME, ["notifications/roots/list_changed"]), (MODERN_NAME, [])],
)
async def test_only_other_roots_are_news(revision, noted, tmp_path):
    """Spec 2025-11-25 client/roots: when they change; since 2026-07-28 there is no such word."""
    small = SmallServer()
    async with Client(small, revision=revision, roots=[tmp_path]) as client:
        await client.set_roots([tmp_path, tmp_path.as_uri()])
        await client.set_roots([tmp_path, os.sep])
        await client.list_tools()
        await until(lambda: len(small.noted) >= len(noted) + (revision == LEGACY_NAME))

    assert noted == [n for n in small.noted if "roots" in n]


@pytest.mark.covers("roots.capability.needed")
async def test_a_server_that_asks_for_roots_nobody_offers_is_refused():
    """Spec 2025-11-25 client/roots#error-handling: -32601."""

    async def call(_params, inbound):
        try:
            await inbound.link.call("roots/list", ListRootsParams(), ListRootsResult)
        except Exception as error:  # noqa: BLE001 - what it is, is the question
            return text_result(str(error.code))

    async with Client(SmallServer({"tools/call": call}), revision=LEGACY_NAME) as client:
        assert "-32601" == (await client.call_tool("ask")).text


async def test_a_function_that_gives_nonsense_is_our_mistake(caplog):
    """Ours: the server hears that something failed, and the log says what."""

    async def call(_params, inbound):
        try:
            await inbound.link.call("roots/list", ListRootsParams(), ListRootsResult)
        except Exception as error:  # noqa: BLE001 - what it is, is the question
            return text_result(str(error.code))

    small = SmallServer({"tools/call": call})
    async with Client(small, revision=LEGACY_NAME, roots=lambda: ["ftp://x"]) as client:
        assert "-32603" == (await client.call_tool("ask")).text

    assert "a root is a path or a file:// URI" in caplog.text
