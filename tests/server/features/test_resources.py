"""Resources and templates: listed, read, and what is not there."""

import base64
import logging

import pytest
from msgspec import Struct

from isthmus.errors import Refuse, ToolError, UsageError
from isthmus.server import Server
from isthmus.wire import Annotations, ReadResourceResult, TextResourceContents
from support.server.both_eras import LEGACY, MODERN, EraClient

BOTH = pytest.mark.parametrize("revision", [LEGACY, MODERN])


class Note(Struct):
    id: int


def notes():
    server = Server("notes")

    @server.resource("notes://all", mime_type="text/plain", size=3, title="All")
    async def everything() -> str:
        """All there is."""
        return "all"

    @server.resource("notes://{id}", annotations=Annotations(priority=0.5))
    def note(id: int) -> Note | None:
        """One note."""
        return None if id == 404 else Note(id)

    @server.resource("notes://{id}/picture", mime_type="image/png", ttl_ms=5, cache_scope="public")
    async def picture(id: int) -> bytes:
        return b"png"

    @server.resource("search://notes{?q,limit}")
    async def search(q: str = "", limit: int = 9) -> str:
        return f"{q} {limit}"

    @server.resource("files://{+path}")
    async def file(path: str) -> str:
        if path == "broken":
            raise ValueError("secret")
        if path == "told":
            raise ToolError("not today")
        if path == "refused":
            raise Refuse(7, "not you")
        return path

    @server.resource("whole://x")
    async def whole() -> ReadResourceResult:
        return ReadResourceResult(contents=[TextResourceContents(uri="whole://y", text="y")])

    return server


async def read(uri, revision=MODERN):
    return await EraClient(notes(), revision).send("resources/read", {"uri": uri})


@pytest.mark.covers("resources.templates.listed")
async def test_resources_and_templates_are_listed_apart():
    """A URI with variables is a template (spec: resource templates)."""
    client = EraClient(notes())
    resources = (await client.once("resources/list"))["resources"]
    templates = (await client.once("resources/templates/list"))["resourceTemplates"]

    assert {
        "uri": "notes://all",
        "name": "everything",
        "title": "All",
        "description": "All there is.",
        "mimeType": "text/plain",
        "size": 3,
    } == resources[0]
    assert {
        "uriTemplate": "notes://{id}",
        "name": "note",
        "description": "One note.",
        "annotations": {"priority": 0.5},
    } == templates[0]
    assert (2, 4) == (len(resources), len(templates))


@BOTH
@pytest.mark.parametrize(
    ("uri", "contents"),
    [
        ("notes://all", {"mimeType": "text/plain", "text": "all"}),
        ("notes://7", {"mimeType": "application/json", "text": '{"id":7}'}),
        (
            "notes://7/picture",
            {"mimeType": "image/png", "blob": base64.b64encode(b"png").decode()},
        ),
        ("search://notes?q=a%20b&limit=2", {"mimeType": "text/plain", "text": "a b 2"}),
        ("search://notes", {"mimeType": "text/plain", "text": " 9"}),
        ("files://a/b.txt", {"mimeType": "text/plain", "text": "a/b.txt"}),
    ],
)
@pytest.mark.covers("resources.templates.matched", "resources.contents.binary-is-base64")
async def test_a_resource_is_read_at_its_uri(revision, uri, contents):
    """Text as text, bytes as base64, variables typed (spec: resource contents)."""
    assert [{"uri": uri, **contents}] == (await read(uri, revision))["contents"]


async def test_a_whole_result_is_passed_on():
    """An author may build the result himself (our promise)."""
    assert "notes://y".replace("notes", "whole") == (await read("whole://x"))["contents"][0]["uri"]


@pytest.mark.parametrize(
    "uri", ["notes://404", "notes://seven", "nothing://here", "notes://", "files://a/../b"]
)
@pytest.mark.parametrize(("revision", "code"), [(LEGACY, -32002), (MODERN, -32602)])
@pytest.mark.covers("resources.read.unknown")
async def test_a_missing_resource_is_an_error_with_its_uri(uri, revision, code):
    """Never empty contents (spec: resources, error handling)."""
    error = await read(uri, revision)

    assert (code, {"uri": uri}) == (error.code, error.data)


@pytest.mark.covers("caching.reads.hinted")
async def test_a_read_says_how_long_it_lasts():
    """Caching hints are the author's; none is the safe default (spec: caching)."""
    picture, note = await read("notes://7/picture"), await read("notes://7")

    assert (5, "public") == (picture["ttlMs"], picture["cacheScope"])
    assert (0, "private") == (note["ttlMs"], note["cacheScope"])


@pytest.mark.covers("resources.read.failed")
async def test_an_exception_while_reading_is_an_error(caplog):
    """-32603; its text only where the author meant it to be read (spec: a SHOULD)."""
    with caplog.at_level(logging.ERROR, "isthmus"):
        broken = await read("files://broken")

    assert -32603 == broken.code
    assert "secret" not in broken.message
    assert "secret" in caplog.text
    told, refused = await read("files://told"), await read("files://refused")
    assert (-32603, "not today") == (told.code, told.message)
    assert (7, "not you") == (refused.code, refused.message)


@pytest.mark.parametrize(
    ("uri", "function", "match"),
    [
        ("a://{x}", lambda: "", "x, which the function does not take"),
        ("a://b", lambda y: "", "may leave out y"),
        ("a://b{?y}", lambda y: "", "may leave out y"),
        ("a://{", lambda: "", "brace"),
    ],
)
def test_a_function_takes_what_its_uri_has(uri, function, match):
    """Found out at registration (our promise)."""
    with pytest.raises(UsageError, match=match):
        Server("x").add_resource(function, uri, name="f")


@pytest.mark.covers("divergences.registration.duplicates")
def test_a_uri_is_taken_once():
    """Duplicates are an error (decision D17)."""
    server = notes()

    with pytest.raises(UsageError, match="there is a resource 'notes://all' already"):
        server.add_resource(lambda: "", "notes://all", name="f")
    with pytest.raises(UsageError, match="there is a resource template"):
        server.add_resource(lambda path: "", "files://{+path}", name="f")


async def test_a_resource_can_be_taken_back():
    """Plain ones and templates alike (our promise)."""
    server = notes()
    server.remove_resource("notes://all")
    server.remove_resource("notes://{id}")

    for uri in ("notes://all", "notes://7"):
        error = await EraClient(server).send("resources/read", {"uri": uri})
        assert -32602 == error.code
    with pytest.raises(UsageError, match="no resource 'notes://all'"):
        server.remove_resource("notes://all")


@pytest.mark.covers("resources.uris.of-the-rfc")
@pytest.mark.parametrize("uri", ["notes", "/etc/notes", "1a://b", "a://b c", "a://é", ""])
def test_text_that_is_not_a_uri_cannot_be_offered(uri):
    """Spec 2026-07-28 server/resources#custom-uri-schemes: in accordance with RFC 3986."""
    with pytest.raises(UsageError, match="is no URI"):
        Server("x").add_resource(lambda: "", uri, name="f")


async def test_the_first_of_several_templates_that_match_is_read():
    """Ours: as they were offered, whatever of them is more exact, and a plain URI before all."""
    server = Server("x")
    for uri in ("a://{+path}", "a://{x}/b", "a://{x}"):
        server.add_resource(lambda path="", x="", uri=uri: uri, uri, name="r")
    server.add_resource(lambda: "plain", "a://1", name="r")

    async def read(uri):
        return (await EraClient(server).once("resources/read", {"uri": uri}))["contents"][0]["text"]

    assert ["plain", "a://{+path}"] == [await read("a://1"), await read("a://1/b")]
    server.remove_resource("a://{+path}")
    assert ["a://{x}/b", "a://{x}"] == [await read("a://1/b"), await read("a://2")]
    server.remove_resource("a://1")
    assert "a://{x}" == await read("a://1")


async def test_a_folder_of_any_prefix_is_found_among_templates(tmp_path):
    """Ours: the prefix is spelled as in a URI, or as its author wrote it."""
    (tmp_path / "f").write_text("text")
    server = Server("x")
    server.add_resource(lambda x: x, "a://{x}", name="r")
    server.add_directory(tmp_path, 'a://é"/%')
    read = await EraClient(server).once("resources/read", {"uri": 'a://é"/%/f'})

    assert "text" == read["contents"][0]["text"]
    server.remove_resource('a://é"/%')
    assert -32602 == (await EraClient(server).once("resources/read", {"uri": 'a://é"/%/f'})).code
