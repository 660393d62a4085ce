"""DPoP proofs over nodes: good once at all of them, by nothing but ``Server(store=…)``."""

import pytest

from isthmus.auth import KVReplays
from isthmus.auth.tokens.dpop import DpopKey
from isthmus.errors import StoreUnavailable
from isthmus.store.kv import MemoryKV
from isthmus.store.memory_store import MemoryStore
from support.auth.protected_server import READ, RESOURCE, Files, make_guard, make_person
from support.http.asgi_driver import fetch
from support.http.messages import modern_body, modern_head

NOW = 1_800_000_000.0
KEY = DpopKey.generate()


def make_node(store, **options):
    """A node of a server that takes tokens bound to a key."""
    people = {"bound": make_person("ada", READ, jkt=KEY.jkt)}
    auth = make_guard(people, clock=lambda: NOW, **{"dpop": "require", **options})
    return Files(auth, store=store)


async def show(files, proof):
    """What a server answers to a proof."""
    head = {**modern_head(name="read"), "authorization": "DPoP bound", "dpop": proof}
    body = modern_body(params={"name": "read", "arguments": {"path": "a"}})
    return await fetch(files.app, headers=head, body=body)


def make_proof():
    return KEY.proof("POST", RESOURCE, token="bound", now=NOW)


class LostStore(MemoryStore):
    """A store that cannot be opened."""

    async def open(self, *, durable=False):
        raise StoreUnavailable("it is away")


@pytest.mark.covers("auth.threat.t33-proof-replay")
async def test_a_proof_is_good_once_at_all_nodes():
    """RFC 9449 11.1; ours: no option but the store is needed, and no node has to be started first."""
    store, shown = MemoryStore(), make_proof()
    nodes = [make_node(store) for _ in range(3)]
    statuses = [(await show(node, shown)).status for node in nodes]
    again = (await show(nodes[1], make_proof())).status
    for node in nodes:
        await node.server.close()

    assert [200, 401, 401] == statuses
    assert 200 == again


async def test_proofs_of_http_sse_are_remembered_with_the_others():
    """Ours: the resource beside it has the same store."""
    auth = make_node(MemoryStore(), sse="http://localhost:8000/sse").server.auth

    assert isinstance(auth._stored_replays, KVReplays)
    assert isinstance(auth.sse._stored_replays, KVReplays)


async def test_replays_that_were_given_stay():
    """Ours: whoever says where proofs are kept is obeyed."""
    given = KVReplays(MemoryKV(), clock=lambda: NOW)

    assert given is make_node(MemoryStore(), replays=given).server.auth._stored_replays


async def test_tokens_that_are_not_bound_need_no_store():
    """Ours: without DPoP nothing is remembered."""
    assert None is make_node(MemoryStore(), dpop="off").server.auth._stored_replays


async def test_a_proof_that_cannot_be_looked_up_is_503():
    """Ours: who cannot tell whether a proof is new takes none."""
    refused = await show(make_node(LostStore()), make_proof())

    assert (503, "5") == (refused.status, refused.header("retry-after"))
