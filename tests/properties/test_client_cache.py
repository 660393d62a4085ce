"""Kept answers against the plainest model of them there is."""

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from isthmus.client.cache import Caching, ResponseCache, ResponseStore
from isthmus.client.subscriptions import Change, is_at_or_below
from isthmus.wire import ReadResourceParams, ReadResourceResult, TextResourceContents
from support.examples import count_examples

URIS = ("x://a", "x://a/b", "x://a/b/c", "x://d")

steps = st.lists(
    st.one_of(
        st.tuples(st.just("wait"), st.integers(0, 4)),
        st.tuples(st.just("change"), st.sampled_from(URIS)),
        st.tuples(
            st.just("read"),
            st.sampled_from(URIS),
            st.integers(-2, 4),
            st.sampled_from(["public", "private", UNSET]),
            st.booleans(),
        ),
    ),
    max_size=40,
)


@settings(max_examples=count_examples(200), deadline=None)
@given(steps, st.booleans())
def test_an_answer_is_given_again_exactly_while_it_may_be(steps, shared):
    """Spec 2026-07-28 server/utilities/caching: fresh until its time is over or it has changed."""
    now, version = [0.0], [0]
    caching = Caching(clock=lambda: now[0], shared=shared)
    public = ResponseStore(10**6)
    clients = [ResponseCache(caching, "shop", "r", public) for _ in range(2)]
    held: list[dict[str, tuple[float, str]]] = [{}, {}, {}]  # one each, and what both share

    for step in steps:
        if step[0] == "wait":
            now[0] += step[1]
        elif step[0] == "change":
            clients[0].changed(Change("resource", step[1]))
            for mine in (held[0], held[2]):
                for uri in [
                    u for u in mine if is_at_or_below(u, step[1]) or is_at_or_below(step[1], u)
                ]:
                    del mine[uri]
        else:
            _, uri, ttl, scope, second = step
            params = ReadResourceParams(uri=uri)
            found = clients[second].find("resources/read", params)
            own, common = (mine.get(uri) for mine in (held[second], held[2]))
            expected = [text for until, text in filter(None, (own, common)) if now[0] < until]
            assert (found and found.contents[0].text) == (expected[0] if expected else None)
            if found is not None:
                continue
            version[0] += 1
            text = str(version[0])
            result = ReadResourceResult(
                contents=[TextResourceContents(uri=uri, text=text)],
                ttl_ms=ttl * 1000,
                cache_scope=scope,
            )
            changes = clients[second].changes("resources/read")
            clients[second].keep("resources/read", params, result, changes)
            if ttl > 0:
                where = 2 if scope == "public" and shared else int(second)
                held[where][uri] = (now[0] + ttl, text)


@settings(max_examples=count_examples(200), deadline=None)
@given(st.lists(st.tuples(st.binary(max_size=3), st.integers(0, 900)), max_size=60))
def test_a_store_never_holds_more_than_it_may(entries):
    """Ours: whatever comes, in whatever order; and its books are right."""
    from isthmus.client.cache import CacheEntry, entry_size

    store = ResponseStore(3000)
    for params, size in entries:
        store.put("g", params, CacheEntry(b"x" * size, 1.0))
        assert store.bytes <= 3000
        held = {p: e for (_, p), e in store._entries.items()}
        assert store.bytes == sum(entry_size(p, e) for p, e in held.items())
        assert (len(store) > 0) == store.has("g")
