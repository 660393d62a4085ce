"""T37: somebody has the file of tokens, or changes it."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode

import pytest

from isthmus.auth.client.store.file_store import FileTokenStore
from isthmus.auth.client.store.records import Tokens
from isthmus.auth.client.store.vault import StoreBroken
from isthmus.auth.tokens.secret import Secret

KEY = "0123456789abcdef0123456789abcdef"


def tokens(resource: str) -> Tokens:
    """Tokens for one server."""
    return Tokens(
        access=Secret(f"access-of-{resource[8:11]}-is-this"),
        refresh=Secret(f"refresh-of-{resource[8:11]}-is-this"),
        issuer="https://login.example",
        client_id="desktop",
        resource=resource,
        proof_key=Secret('{"kty":"EC","d":"the-private-part"}'),
    )


MINE, THEIRS = tokens("https://one.example/mcp"), tokens("https://two.example/mcp")


@pytest.fixture
async def path(tmp_path):
    """A file with tokens for two servers."""
    store = FileTokenStore(tmp_path / "tokens.json", KEY)
    await store.put(MINE.key, MINE)
    await store.put(THEIRS.key, THEIRS)
    return tmp_path / "tokens.json"


@pytest.mark.covers("auth.threat.t37-stolen-store", "auth.all.tokens-stored-safely")
async def test_a_stolen_file_shows_no_token(path):
    """T37: neither a token nor a key stands in the file, in any spelling that is easily undone."""
    content = path.read_bytes()
    records = json.loads(content)["records"].values()
    decoded = b"".join(urlsafe_b64decode(record) for record in records)
    secrets = [MINE.access, MINE.refresh, MINE.proof_key, THEIRS.access, THEIRS.refresh]

    assert [] == [s for s in secrets if s.reveal().encode() in content + decoded]
    assert b"the-private-part" not in content + decoded
    assert KEY.encode() not in content


@pytest.mark.covers("auth.threat.t37-stolen-store")
async def test_no_byte_of_a_record_can_be_changed(path):
    """T37: whichever byte is flipped, the record is refused, and the other one still opens."""
    sheet = json.loads(path.read_bytes())
    good = sheet["records"][MINE.key.text]
    size = len(urlsafe_b64decode(good))
    opened = []
    for place in range(size):
        data = bytearray(urlsafe_b64decode(good))
        data[place] ^= 1
        sheet["records"][MINE.key.text] = urlsafe_b64encode(data).decode()
        path.write_text(json.dumps(sheet))
        try:
            await FileTokenStore(path, KEY).get(MINE.key)
        except StoreBroken:
            continue
        opened.append(place)

    assert [] == opened
    assert THEIRS == await FileTokenStore(path, KEY).get(THEIRS.key)


@pytest.mark.covers("auth.threat.t37-stolen-store")
async def test_a_record_cannot_be_put_in_the_place_of_another(path):
    """T37: two records that change places are both refused: no server gets another's token."""
    sheet = json.loads(path.read_bytes())
    records = sheet["records"]
    one, two = MINE.key.text, THEIRS.key.text
    records[one], records[two] = records[two], records[one]
    path.write_text(json.dumps(sheet))
    store = FileTokenStore(path, KEY)

    for key in (MINE.key, THEIRS.key):
        with pytest.raises(StoreBroken, match="was changed"):
            await store.get(key)


@pytest.mark.covers("auth.threat.t37-stolen-store")
@pytest.mark.parametrize("spoilt", ["", "AAAA", "not base64 at all!", "é", "A" * 4096])
async def test_what_stands_for_a_record_may_be_anything(path, spoilt):
    """T37: garbage in the place of a record is refused like a changed one, and stays until logout."""
    sheet = json.loads(path.read_bytes())
    sheet["records"][MINE.key.text] = spoilt
    path.write_text(json.dumps(sheet))
    store = FileTokenStore(path, KEY)

    with pytest.raises(StoreBroken, match=r"was changed|another key"):
        await store.get(MINE.key)
    await store.put(THEIRS.key, THEIRS)
    assert spoilt == json.loads(path.read_bytes())["records"][MINE.key.text]
    await store.delete(MINE.key)
    assert [THEIRS.key] == await store.keys()


@pytest.mark.covers("auth.threat.t37-stolen-store")
async def test_a_place_that_is_none_is_refused(path):
    """T37: a key of the file that nobody of us wrote is an error and not a crash."""
    sheet = json.loads(path.read_bytes())
    sheet["records"]["elsewhere"] = "AAAA"
    path.write_text(json.dumps(sheet))

    with pytest.raises(StoreBroken, match="without a place"):
        await FileTokenStore(path, KEY).keys()
    assert MINE == await FileTokenStore(path, KEY).get(MINE.key)
