"""Blobs of many megabytes: how often they are copied on their way out."""

import base64
import json
import tracemalloc

import pytest
from msgspec import Raw

from isthmus.runtime.inbound import Inbound
from isthmus.server import Limits, Server
from support.server.both_eras import LEGACY, MODERN, EraClient

BLOB = bytes(range(256)) * 40_000


def offer_function(server, _folder):
    server.add_resource(lambda: BLOB, "a://b", name="blob", mime_type="x/y", blocking=False)


def offer_file(server, folder):
    (folder / "b.bin").write_bytes(BLOB)
    server.add_file(folder / "b.bin", "a://b", mime_type="x/y")


async def read_blob(client):
    """The answer to a read, as it goes to the transport, and the most memory that was taken."""
    raw = Raw(b'{"uri":"a://b"}')
    inbound = Inbound(1, "resources/read", raw, client.caller, client.link)
    await client.server.router.serve(inbound)
    tracemalloc.start()
    answer = await client.server.router.serve(inbound)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return answer, peak


@pytest.mark.parametrize(
    ("offer", "beside"), [(offer_function, 0), (offer_file, len(BLOB))], ids=["function", "file"]
)
@pytest.mark.parametrize(("revision", "copies"), [(LEGACY, 1), (MODERN, 2)])
async def test_a_blob_is_encoded_into_its_answer(offer, beside, revision, copies, tmp_path):
    """Ours: there is no base64 of it beside that; members of the revision take one copy more."""
    server = Server("large", limits=Limits(file_size=None))
    offer(server, tmp_path)

    answer, peak = await read_blob(EraClient(server, revision))

    contents = [{"uri": "a://b", "mimeType": "x/y", "blob": base64.b64encode(BLOB).decode()}]
    assert contents == json.loads(answer)["contents"]
    # the encoder asks for half as much again as it needs, and leaves that untouched
    assert peak < beside + (copies + 0.6) * len(answer)


@pytest.mark.parametrize("offer", [offer_function, offer_file])
async def test_a_middleware_sees_the_base64(offer, tmp_path):
    """Ours: whoever looks into contents finds what their type says."""
    seen = []

    async def look(inbound, call_next):
        result = await call_next(inbound)
        seen.append(result.contents[0].blob)
        return result

    server = Server("large")
    server.use(look)
    offer(server, tmp_path)
    answer = await EraClient(server).once("resources/read", {"uri": "a://b"})

    assert [base64.b64encode(BLOB).decode()] == seen
    assert seen[0] == answer["contents"][0]["blob"]
