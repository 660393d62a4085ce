"""Files and folders as resources: read, listed and completed, whatever the revision."""

import base64
import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.errors import UsageError
from isthmus.server import Server
from isthmus.server.features.files import FolderUris, format_modified, guess_mime_type
from isthmus.server.guard.limits import Limits
from isthmus.wire.jsonrpc import ErrorBody
from support.server.both_eras import LEGACY, MODERN, EraClient

both = pytest.mark.parametrize("revision", [LEGACY, MODERN])
MOMENT = 1_700_000_000


@pytest.fixture
def docs(tmp_path):
    """A folder of documents."""
    root = tmp_path / "docs"
    (root / "guide").mkdir(parents=True)
    (root / "read me.md").write_text("# hi")
    (root / "guide" / "a?b#c%41.txt").write_text("odd")
    (root / "logo.png").write_bytes(b"\x89PNG\r\n\x00")
    (root / "latin.txt").write_bytes("café".encode("latin-1"))
    (root / "data").write_text("no ending")
    os.utime(root / "read me.md", (MOMENT, MOMENT))
    (tmp_path / "secret.md").write_text("outside")
    (root / "link.md").symlink_to(tmp_path / "secret.md")
    return root


def make_file_server(docs, **options):
    """A server that offers the folder."""
    limits = options.pop("limits", Limits())
    server = Server("files", limits=limits)
    server.add_directory(docs, "docs://", **options)
    return server


async def read(client, uri):
    """What is read at a URI, or the error."""
    result = await client.once("resources/read", {"uri": uri})
    return result if isinstance(result, ErrorBody) else result["contents"][0]


@both
@pytest.mark.covers("resources.contents.text-or-binary")
async def test_text_is_read_as_text_and_the_rest_as_it_is(docs, revision):
    """The spec: text or blob, with its MIME type; ours: by name and by bytes."""
    client = EraClient(make_file_server(docs), revision)

    text = await read(client, "docs://read%20me.md")
    assert ("# hi", "text/markdown") == (text["text"], text["mimeType"])
    plain = await read(client, "docs://data")
    assert ("no ending", "text/plain") == (plain["text"], plain["mimeType"])
    for name, kind, data in (
        ("logo.png", "image/png", b"\x89PNG\r\n\x00"),
        ("latin.txt", "text/plain", "café".encode("latin-1")),
    ):
        binary = await read(client, f"docs://{name}")
        assert (kind, data) == (binary["mimeType"], base64.b64decode(binary["blob"]))


@both
@pytest.mark.covers("resources.list.size-and-age", "resources.folders.type")
async def test_files_are_listed_with_size_and_age_as_they_are_now(docs, revision):
    """The spec: size in bytes, lastModified in ISO 8601; ours: they are never stale."""
    server = make_file_server(docs)
    server.add_file(docs / "read me.md", "note://it", description="a note")
    client = EraClient(server, revision)
    (docs / "read me.md").write_text("# hello")
    os.utime(docs / "read me.md", (MOMENT + 1, MOMENT + 1))

    listed = {r["uri"]: r for r in (await client.once("resources/list"))["resources"]}

    for uri in ("docs://read%20me.md", "note://it"):
        assert (7, "2023-11-14T22:13:21Z") == (
            listed[uri]["size"],
            listed[uri]["annotations"]["lastModified"],
        )
    assert ("inode/directory", "docs") == (
        listed["docs://"]["mimeType"],
        listed["docs://"]["name"],
    )
    assert "a note" == listed["note://it"]["description"]


@pytest.mark.parametrize(
    ("age", "said"), [(10**12, "9999-12-31T23:59:59Z"), (-(10**12), "1970-01-01T00:00:00Z")]
)
def test_a_file_may_have_any_age(age, said):
    """Ours: some file systems keep what no calendar has, and one file must not hide the others."""
    assert said == format_modified(os.stat_result((0,) * 7 + (age,) * 3))


@both
async def test_listed_files_can_be_read_and_no_others_are_listed(docs, revision):
    """Ours: each listed URI leads somewhere, also in pages."""
    server = Server("files", page_size=2)
    server.add_directory(docs, "file:///project")
    client = EraClient(server, revision)
    uris, params = [], {}
    while True:
        page = await client.once("resources/list", params)
        uris += [resource["uri"] for resource in page["resources"]]
        if "nextCursor" not in page:
            break
        params = {"cursor": page["nextCursor"]}

    assert sorted(uris) == uris
    assert {
        "file:///project/",
        "file:///project/read%20me.md",
        "file:///project/guide/a%3Fb%23c%2541.txt",
        "file:///project/logo.png",
        "file:///project/latin.txt",
        "file:///project/data",
    } == set(uris)
    for uri in uris:
        assert not isinstance(await read(client, uri), ErrorBody)


@both
async def test_a_folder_is_read_as_what_lies_in_it_page_by_page(docs, revision):
    """Ours: sorted, bounded, and with the way on."""
    client = EraClient(make_file_server(docs, limits=Limits(files=2)), revision)

    names, uri = [], "docs://"
    while uri:
        contents = await read(client, uri)
        page = json.loads(contents["text"])
        assert contents["mimeType"] == "application/json"
        names += [entry["name"] for entry in page["entries"]]
        uri = page.get("next")

    assert ["data", "guide", "latin.txt", "logo.png", "read me.md"] == names
    (inner,) = json.loads((await read(client, "docs://guide/"))["text"])["entries"]
    assert "docs://guide/a%3Fb%23c%2541.txt" == inner["uri"]
    assert {"size": 3, "mimeType": "text/plain"}.items() <= inner.items()


@both
@pytest.mark.covers("resources.files.no-way-out", "resources.read.unknown")
@pytest.mark.parametrize(
    "uri",
    [
        *("docs://../secret.md", "docs://%2e%2e/secret.md", "docs://..%2Fsecret.md"),
        *("docs://guide/../../secret.md", "docs:///etc/passwd", "docs://link.md", "docs://gone"),
        *("docs://guide%2Fa%3Fb%23c%2541.txt", "docs://guide%5Cx", "docs://data%00", "docs://%FF"),
        *("docs://data?x=1", "docs://data#x", "docs:", "docs://guide//", "docs://./data"),
    ],
)
async def test_no_uri_leads_out_of_the_folder(docs, uri, revision):
    """The spec: MUST sanitise; ours: every such URI is as unknown as any other."""
    error = await read(EraClient(make_file_server(docs), revision), uri)

    assert (-32602 if revision == MODERN else -32002, uri) == (error.code, error.data["uri"])


@given(st.lists(st.text(min_size=1, max_size=8).filter(lambda part: "/" not in part), max_size=4))
def test_a_name_and_its_uri_lead_to_each_other(parts):
    """Ours: no two names have one URI, and no URI is read in two ways."""
    uris = FolderUris("docs://x")

    assert {"path": "/".join(parts), "after": ""} == uris.match(uris.of(parts)) or any(
        set(part) & {"\\", "\0"} for part in parts
    )
    assert uris.match(uris.of(parts, folder=True, after="é?#")) is None or (
        "é?#" == uris.match(uris.of(parts, folder=True, after="é?#"))["after"]
    )


@both
async def test_names_are_completed_folder_by_folder(docs, revision):
    """The spec: variables of templates MAY be completed."""
    client = EraClient(make_file_server(docs), revision)

    async def completed(typed):
        ref = {"type": "ref/resource", "uri": "docs://{+path}{?after}"}
        params = {"ref": ref, "argument": {"name": "path", "value": typed}}
        return (await client.once("completion/complete", params))["completion"]["values"]

    assert ["data", "guide/", "latin.txt", "logo.png", "read me.md"] == await completed("")
    assert ["guide/a?b#c%41.txt"] == await completed("guide/a")
    assert [] == await completed("../")


async def test_a_file_that_is_too_large_is_refused_by_its_size(docs):
    """Ours: bounded, and said so."""
    server = make_file_server(docs, limits=Limits(file_size=3))
    server.add_file(docs / "data")
    client = EraClient(server)

    for uri in ("docs://read%20me.md", (docs / "data").as_uri()):
        error = await read(client, uri)
        assert -32603 == error.code
        assert "too large" in error.message
        assert "3" in error.message


async def test_a_file_may_come_and_go(docs):
    """Ours: what is not there is not found, and is listed without a size."""
    server = Server("files")
    server.add_file(docs / "later.txt", "note://later", mime_type="text/x-own")
    client = EraClient(server)

    assert -32602 == (await read(client, "note://later")).code
    assert "size" not in (await client.once("resources/list"))["resources"][0]
    (docs / "later.txt").write_text("now")
    text = await read(client, "note://later")
    assert ("now", "text/x-own") == (text["text"], text["mimeType"])


async def test_a_folder_may_be_left_out_of_the_list_and_taken_back(docs):
    """Ours: a folder of a million files is still read by its template."""
    server = make_file_server(docs, listed=False, pattern="*.md", title="Docs")
    client = EraClient(server)

    assert [] == (await client.once("resources/list"))["resources"]
    (template,) = (await client.once("resources/templates/list"))["resourceTemplates"]
    assert ("docs://{+path}{?after}", "Docs") == (template["uriTemplate"], template["title"])
    assert "# hi" == (await read(client, "docs://read%20me.md"))["text"]
    assert -32602 == (await read(client, "docs://data")).code
    server.remove_resource("docs://")
    assert -32602 == (await read(client, "docs://read%20me.md")).code


def test_a_prefix_must_begin_a_uri(docs):
    """Ours: found at registration."""
    for prefix in ("docs", "docs://{x}/", "docs://a?b", "docs://a#b", ""):
        with pytest.raises(UsageError, match="beginning of URIs"):
            Server("x").add_directory(docs, prefix)
    server = make_file_server(docs)
    with pytest.raises(UsageError, match="already"):
        server.add_directory(docs, "docs://")


def test_kinds_do_not_depend_on_the_machine():
    """Ours: a server says the same wherever it runs."""
    assert ["text/markdown", "text/html", "application/json", "text/x-rust", None] == [
        guess_mime_type(name) for name in ("A.MD", "a.html", "x.json", "main.rs", "Makefile")
    ]
