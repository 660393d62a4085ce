"""Documents of clients: fetched once for all who ask, and out of reach without harm."""

import asyncio

import pytest

from document_shelf import Shelf
from isthmus.auth.authorization_server.documents import AT_ONCE, Documents, Unreachable
from isthmus.auth.authorization_server.policy import Unacceptable
from isthmus.auth.authorization_server.settings import CimdPolicy
from small_authority import BACK, SmallAuthority

ID = "https://app.example/client.json"
GOOD = {
    "client_id": ID,
    "client_name": "Notes",
    "redirect_uris": [BACK],
    "grant_types": ["authorization_code", "refresh_token"],
}


async def test_those_who_ask_at_the_same_time_share_one_request():
    """Ours: a popular client's site is not asked by each of its users."""
    shelf = Shelf()
    shelf.put(ID, GOOD, cache_control="no-store")
    documents = Documents(CimdPolicy(), shelf)
    found = await asyncio.gather(*(documents.find(ID) for _ in range(10)))

    assert 1 == len({id(one) for one in found})
    assert {ID: 1} == shelf.asked


async def test_who_gives_up_waiting_takes_nothing_from_the_others():
    """Ours: the request goes on."""
    shelf = Shelf()
    shelf.put(ID, GOOD)
    documents = Documents(CimdPolicy(), shelf)
    first = asyncio.ensure_future(documents.find(ID))
    second = asyncio.ensure_future(documents.find(ID))
    await asyncio.sleep(0)
    first.cancel()

    assert ID == (await second).client_id


async def test_a_client_whose_document_is_out_of_reach_goes_on_for_a_day():
    """Ours: the outage of its site does not log its users out."""
    shelf, now = Shelf(), [0.0]
    shelf.put(ID, GOOD)
    documents = Documents(CimdPolicy(), shelf, clock=lambda: now[0])
    await documents.find(ID)
    shelf.pages.clear()
    now[0] += 3600
    later = await documents.find(ID)
    now[0] += 86_400

    assert ID == later.client_id
    with pytest.raises(Unacceptable):
        await documents.find(ID)


async def test_a_document_that_became_bad_is_no_client_any_more():
    """Ours: it was reached, and says so."""
    shelf, now = Shelf(), [0.0]
    shelf.put(ID, GOOD)
    documents = Documents(CimdPolicy(), shelf, clock=lambda: now[0])
    await documents.find(ID)
    shelf.put(ID, GOOD | {"redirect_uris": ["javascript:1"]})
    now[0] += 3600

    with pytest.raises(Unacceptable):
        await documents.find(ID)


async def test_a_client_that_cannot_be_looked_up_is_not_called_unknown():
    """Ours: 503 has it try again; invalid_client would have it register anew."""
    shelf = Shelf()
    async with SmallAuthority(network=shelf) as small:
        answer = await small.refresh("rt.x.0.y", ID)

        assert (503, "temporarily_unavailable") == (answer.status, answer.json["error"])


async def test_only_so_many_documents_are_fetched_at_a_time():
    """Ours: whoever comes beyond that tries again, and is not called unknown."""
    shelf = Shelf()
    documents = Documents(CimdPolicy(), shelf)
    ids = [f"https://app.example/{at}.json" for at in range(AT_ONCE + 1)]
    done = await asyncio.gather(*(documents.find(id) for id in ids), return_exceptions=True)

    assert {Unreachable} == {type(one) for one in done}
    assert AT_ONCE == shelf.asked.total()
