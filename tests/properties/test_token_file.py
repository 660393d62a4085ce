"""The file of tokens: whatever is kept comes back, and whatever stands there is no crash."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from isthmus.auth.client.store.records import Key, Registration, Tokens
from isthmus.auth.client.store.vault import (
    RecordVault,
    StoreBroken,
    parse_record_key,
    parse_token_file,
)
from isthmus.auth.tokens.secret import Secret

VAULT = RecordVault("k" * 43)
texts = st.text(max_size=40)
secrets = st.text(max_size=40).map(Secret)
times = st.none() | st.floats(min_value=0, max_value=1e12)

records = st.one_of(
    st.builds(
        Tokens,
        access=secrets,
        issuer=texts,
        client_id=texts,
        resource=texts,
        refresh=st.none() | secrets,
        expires_at=times,
        scopes=st.frozensets(texts, max_size=3),
        methods=st.lists(texts, max_size=3).map(tuple),
        proof_key=st.none() | secrets,
        account=texts,
    ),
    st.builds(
        Registration,
        issuer=texts,
        client_id=texts,
        redirect=texts,
        secret=st.none() | secrets,
        expires_at=times,
    ),
)
keys = st.builds(Key, texts, texts, texts, texts, texts)
sheets = st.builds(
    lambda records, more: {"format": "isthmus-tokens", "version": 1, "records": records, **more},
    st.dictionaries(texts, texts, max_size=3),
    st.dictionaries(texts, st.integers() | texts | st.lists(texts), max_size=2),
)


@given(keys, records)
def test_whatever_is_kept_comes_back(key, record):
    """Ours: any texts at all, under any key."""
    assert record == VAULT.open(key, VAULT.seal(key, record), "the file")
    assert key == parse_record_key(key.text)


@given(keys, keys, records)
def test_a_record_opens_under_its_own_key_only(key, other, record):
    """T37: however much two keys look alike."""
    sealed = VAULT.seal(key, record)
    try:
        VAULT.open(other, sealed, "the file")
    except StoreBroken:
        return
    assert key == other


@given(st.binary(max_size=200) | sheets.map(msgspec.json.encode))
def test_whatever_stands_in_the_file_is_read_or_refused(data):
    """Ours: no bytes are a crash, neither as a file nor as a record in one."""
    try:
        sheet = parse_token_file(data, "the file")
    except StoreBroken:
        return
    for text, sealed in sheet.records.items():
        try:
            VAULT.open(parse_record_key(text), sealed, "the file")
        except StoreBroken:
            continue
    VAULT.renew(sheet, "the file")
