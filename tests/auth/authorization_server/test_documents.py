"""Documents of clients: fetched once for all who ask, and out of reach without harm."""

import asyncio

import pytest

from isthmus.auth.authorization_server.core.lookups import ClientDocuments, DocumentUnreachable
from isthmus.auth.authorization_server.core.settings import CimdPolicy
from isthmus.auth.authorization_server.storage.clients import UnacceptableClient
from isthmus.auth.net.addresses import NetworkRefused
from isthmus.auth.protocol import CLIENT_ASSERTION_TYPE
from isthmus.auth.tokens.jose import PrivateKey, sign_jwt
from support.auth.documents import DocumentShelf
from support.auth.small_authority import BACK, ISSUER, SmallAuthority
from support.event_loop import run_turns

ID = "https://app.example/client.json"
GOOD = {
    "client_id": ID,
    "client_name": "Notes",
    "redirect_uris": [BACK],
    "grant_types": ["authorization_code", "refresh_token"],
}


async def test_simultaneous_lookups_share_one_request():
    """Ours: a popular client's site is not asked by each of its users."""
    shelf = DocumentShelf()
    shelf.put(ID, GOOD, cache_control="no-store")
    documents = ClientDocuments(CimdPolicy(), shelf)
    found = await asyncio.gather(*(documents.find(ID) for _ in range(10)))

    assert 1 == len({id(one) for one in found})
    assert {ID: 1} == shelf.asked


async def test_a_cancelled_lookup_leaves_the_others_theirs():
    """Ours: the request goes on."""
    shelf = DocumentShelf()
    shelf.put(ID, GOOD)
    documents = ClientDocuments(CimdPolicy(), shelf)
    first = asyncio.ensure_future(documents.find(ID))
    second = asyncio.ensure_future(documents.find(ID))
    await asyncio.sleep(0)
    first.cancel()

    assert ID == (await second).client_id


async def test_a_cached_document_is_used_for_a_day_while_its_host_is_down():
    """Ours: the outage of its site does not log its users out."""
    shelf, now = DocumentShelf(), [0.0]
    shelf.put(ID, GOOD)
    documents = ClientDocuments(CimdPolicy(), shelf, clock=lambda: now[0])
    await documents.find(ID)
    shelf.pages.clear()
    now[0] += 3600
    later = await documents.find(ID)
    now[0] += 86_400

    assert ID == later.client_id
    with pytest.raises(UnacceptableClient):
        await documents.find(ID)


async def test_a_document_that_became_bad_is_no_client_any_more():
    """Ours: it was reached, and says so."""
    shelf, now = DocumentShelf(), [0.0]
    shelf.put(ID, GOOD)
    documents = ClientDocuments(CimdPolicy(), shelf, clock=lambda: now[0])
    await documents.find(ID)
    shelf.put(ID, GOOD | {"redirect_uris": ["javascript:1"]})
    now[0] += 3600

    with pytest.raises(UnacceptableClient):
        await documents.find(ID)


async def test_a_client_that_cannot_be_looked_up_is_not_called_unknown():
    """Ours: 503 has it try again; invalid_client would have it register anew."""
    shelf = DocumentShelf()
    async with SmallAuthority(network=shelf) as small:
        answer = await small.refresh("rt.x.0.y", ID)

        assert (503, "temporarily_unavailable") == (answer.status, answer.json["error"])


class Slow(DocumentShelf):
    """A shelf that hands out nothing until it is told to."""

    def __init__(self):
        super().__init__()
        self.go = asyncio.Event()

    async def fetch(self, method, url, **more):
        self.asked[url] += 1
        if "slow" in url:
            await self.go.wait()
        return await super().fetch(method, url, **more)


def begin_fetches(documents, name, count, address):
    """Fetches that somebody has begun."""
    ids = [f"https://{name}.example/{at}.json" for at in range(count)]
    return [asyncio.ensure_future(documents.find(id, address)) for id in ids]


async def test_only_so_many_documents_are_fetched_at_a_time():
    """Ours: whoever comes beyond that tries again, and is not called unknown."""
    shelf = Slow()
    documents = ClientDocuments(CimdPolicy(fetches=20), shelf)
    tasks = begin_fetches(documents, "slow", 21, "")
    await run_turns()
    shelf.go.set()
    done = await asyncio.gather(*tasks, return_exceptions=True)

    assert {DocumentUnreachable} == {type(one) for one in done}
    assert 20 == len(shelf.asked)


async def test_slow_documents_of_one_address_do_not_block_other_addresses():
    """Ours: each address has a share of what is fetched at a time; of IPv6 it is a whole /64."""
    shelf = Slow()
    shelf.put(ID, GOOD)
    documents = ClientDocuments(CimdPolicy(fetches=20, fetches_per_address=4), shelf)
    tasks = begin_fetches(documents, "slow", 30, "2001:db8::1") + begin_fetches(
        documents, "slow2", 9, "2001:db8::2"
    )
    await run_turns()
    assert 4 == len(shelf.asked)
    assert ID == (await documents.find(ID, "192.0.2.1")).client_id
    with pytest.raises(DocumentUnreachable, match="too many"):
        await documents.find("https://app.example/other.json", "2001:db8::3")
    shelf.go.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    with pytest.raises(DocumentUnreachable, match="cannot be fetched"):
        await documents.find("https://app.example/other.json", "2001:db8::3")


async def test_a_cached_document_needs_no_slot():
    """Ours: its document is asked for again when there is room."""
    shelf, now = Slow(), [0.0]
    shelf.put(ID, GOOD)
    documents = ClientDocuments(CimdPolicy(fetches=2), shelf, clock=lambda: now[0])
    await documents.find(ID)
    tasks = begin_fetches(documents, "slow", 2, "")
    await run_turns()
    now[0] += 3600
    assert ID == (await documents.find(ID)).client_id
    shelf.go.set()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_forbidden_and_an_unreachable_document_get_one_answer():
    """Ours: the answer tells nobody which addresses there are in our network."""

    class Guarded(DocumentShelf):
        async def fetch(self, method, url, **more):
            if "inside" in url:
                raise NetworkRefused("10.0.0.1 is private")
            return await super().fetch(method, url, **more)

    async with SmallAuthority(network=Guarded()) as small:
        answers = [
            await small.refresh("rt.x.0.y", f"https://{name}.example/client.json")
            for name in ("inside", "outside")
        ]
    assert [(503, "5")] * 2 == [(one.status, one.header("retry-after")) for one in answers]
    assert answers[0].json == answers[1].json


async def test_slow_keys_of_one_address_do_not_block_other_addresses():
    """Ours: the keys that a client's document names are fetched in the same slots."""
    shelf, key = Slow(), PrivateKey.generate("ES256")
    for at in range(9):
        url = f"https://app.example/{at}.json"
        shelf.put(url, GOOD | {
            "client_id": url, "token_endpoint_auth_method": "private_key_jwt",
            "jwks_uri": f"https://slow.example/{at}",
        })  # fmt: skip
    async with SmallAuthority(network=shelf) as small:

        def asking(at):
            url = f"https://app.example/{at}.json"
            signed = sign_jwt({"iss": url, "sub": url, "aud": ISSUER, "exp": 2e9, "jti": "1"}, key)
            form = {
                "grant_type": "refresh_token", "refresh_token": "rt.x.0.y",
                "client_assertion": signed, "client_assertion_type": CLIENT_ASSERTION_TYPE,
            }  # fmt: skip
            return asyncio.ensure_future(small.post("/token", form))

        tasks = [asking(at) for at in range(9)]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        await run_turns(1000)
        assert 5 == sum(task.done() for task in tasks)
        assert 4 == len([url for url in shelf.asked if "slow" in url])
        shelf.go.set()
        assert {503} == {(await task).status for task in tasks}
