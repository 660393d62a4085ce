"""Contract of agreement: nodes of one store have one secret and one name, or do not start."""

import asyncio

import pytest

from isthmus.errors import UsageError
from isthmus.nodes.agreement import STORE_KEY_VARIABLE, agree

OLD, NEW, OTHER = b"o" * 32, b"n" * 32, b"x" * 32


@pytest.fixture(autouse=True)
def no_store_key(monkeypatch):
    """The environment of a test names no key."""
    monkeypatch.delenv(STORE_KEY_VARIABLE, raising=False)


async def test_the_first_node_makes_a_secret_that_all_have(open_store):
    """Ours: nobody has to think of a secret, and no two stores have the same."""
    stores = [await open_store() for _ in range(3)]
    secrets = [await agree(store, "server", "shop", []) for store in stores]

    assert [secrets[0]] * 3 == secrets
    assert 32 == len(secrets[0][0])


async def test_nodes_that_start_at_the_same_moment_agree(open_store):
    """Ours: one of them is first, whoever that is."""
    stores = [await open_store() for _ in range(4)]
    secrets = await asyncio.gather(*(agree(s, "server", "shop", []) for s in stores * 3))

    assert 1 == len({tuple(s) for s in secrets})


async def test_nodes_that_were_given_a_secret_keep_it_to_themselves(open_store):
    """Ours: a store never holds a secret that somebody gave, nor what it can be told from."""
    one, other = await open_store(), await open_store()

    assert [OLD] == await agree(one, "server", "shop", [OLD])
    assert [OLD] == await agree(other, "server", "shop", [OLD])
    assert OLD not in (await one.kv.get("agreement")).value


@pytest.mark.parametrize(("kind", "name"), [("server", "other"), ("host", "shop")])
async def test_another_server_does_not_start(open_store, kind, name):
    """Ours: two servers do not mix up their sessions."""
    await agree(await open_store(), "server", "shop", [])

    with pytest.raises(UsageError, match=f"belongs to the server 'shop', and this is the {kind}"):
        await agree(await open_store(), kind, name, [])


async def test_another_secret_does_not_start(open_store):
    """Ours: nodes that would not know each other's sessions do not serve together."""
    await agree(await open_store(), "server", "shop", [OLD])

    with pytest.raises(UsageError, match="were given others"):
        await agree(await open_store(), "server", "shop", [OTHER])
    with pytest.raises(UsageError, match="were given a secret, and this one was not"):
        await agree(await open_store(), "server", "shop", [])


async def test_a_secret_does_not_join_those_who_made_theirs_up(open_store):
    """Ours: nor the other way round."""
    await agree(await open_store(), "server", "shop", [])

    with pytest.raises(UsageError, match="made theirs up"):
        await agree(await open_store(), "server", "shop", [OLD])


async def test_a_secret_is_changed_while_nodes_serve(open_store):
    """Ours: first all can read the new one, then all write it, then the old one goes."""
    store = await open_store()
    for secrets in (
        [OLD],
        [OLD, NEW],
        [OLD],
        [OLD, NEW],
        [NEW, OLD],
        [OLD, NEW],
        [NEW, OLD],
        [NEW],
    ):
        assert secrets == await agree(store, "server", "shop", secrets)

    with pytest.raises(UsageError, match=r"secret=\[old, new\] first"):
        await agree(store, "server", "shop", [OLD])


async def test_a_secret_in_the_store_is_encrypted_where_the_environment_says_so(
    open_store, monkeypatch
):
    """Ours: who reads a backup of the store learns no secret."""
    store = await open_store()
    monkeypatch.setenv(STORE_KEY_VARIABLE, "open sesame")
    [secret] = await agree(store, "server", "shop", [])

    assert [secret] == await agree(store, "server", "shop", [])
    assert secret not in (await store.kv.get("agreement")).value
    monkeypatch.setenv(STORE_KEY_VARIABLE, "open barley")
    with pytest.raises(UsageError, match="is not the key"):
        await agree(store, "server", "shop", [])
    monkeypatch.delenv(STORE_KEY_VARIABLE)
    with pytest.raises(UsageError, match="is encrypted"):
        await agree(store, "server", "shop", [])


async def test_a_key_does_not_encrypt_what_is_there(open_store, monkeypatch):
    """Ours: whoever sets the key later learns that the secret lies open."""
    store = await open_store()
    await agree(store, "server", "shop", [])
    monkeypatch.setenv(STORE_KEY_VARIABLE, "open sesame")

    with pytest.raises(UsageError, match="is not encrypted"):
        await agree(store, "server", "shop", [])


@pytest.mark.parametrize("value", [b"", b"no", b"[]", b'{"layout": "x"}', b"\xff"])
async def test_what_another_wrote_is_told(store, value):
    """Ours: a store that something else uses is left alone."""
    await store.kv.put("agreement", value)

    with pytest.raises(UsageError, match="that isthmus did not write"):
        await agree(store, "server", "shop", [])


async def test_another_layout_does_not_start(store):
    """Ours: two versions that keep their data differently do not share a store."""
    await store.kv.put("agreement", b'{"layout":99,"kind":"server","name":"shop","prints":[]}')

    with pytest.raises(UsageError, match="in layout 99"):
        await agree(store, "server", "shop", [])
