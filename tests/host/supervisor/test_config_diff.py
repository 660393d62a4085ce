"""Difference of two configurations."""

from msgspec import structs

from isthmus.auth.tokens.secret import Secret
from isthmus.host.model.entries import (
    HostConfig,
    HostOptions,
    ServerEntry,
    diff_configs,
    digest_entry,
)
from support.host.fleet import make_configuration, make_entries


def test_the_digest_of_an_entry_counts_what_it_says_and_not_where_it_stands():
    """Ours: a server that moves to another file is the same server."""
    entry = ServerEntry(name="a", command=("run",), env={"TOKEN": "one"})
    moved = structs.replace(entry, source="elsewhere", layer="workspace", secrets=(Secret("one"),))
    other = structs.replace(entry, env={"TOKEN": "two"})
    assert digest_entry(entry) == digest_entry(moved) != digest_entry(other)


def test_a_secret_in_the_options_counts_by_what_it_is():
    """Ours: a renewed token is another entry, although both look alike where they are shown."""
    one, two = (make_entries("a", auth={"kind": "static", "token": Secret(t)})["a"] for t in "12")
    assert digest_entry(one) != digest_entry(two)


def test_what_is_different_reads_as_a_sentence_and_is_false_where_it_is_nothing():
    """Ours: the event shows a person what their edit did."""
    before = make_configuration("a", "b")
    now = HostConfig(servers=make_entries("b", "c"), options=HostOptions(mode="shadow"))
    diff = diff_configs(before, now)
    assert "added: c; removed: a; options: mode" == str(diff)
    assert diff
    assert "nothing is different" == str(diff_configs(now, now))
    assert not bool(diff_configs(now, now))
