"""Canonical paths and hosts."""

import os

import pytest

from isthmus.host.policy.places import (
    canonicalize_path,
    expand_path,
    host_matches,
    is_under,
    parse_host,
    resolve_links,
)


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "code/app").mkdir(parents=True)
    (tmp_path / "secret").mkdir()
    (tmp_path / "code/link").symlink_to(tmp_path / "secret")
    return tmp_path


@pytest.mark.parametrize(
    ("path", "inside"),
    [
        ("code/app/new.txt", True),
        ("code", True),
        ("code/../code/app", True),
        ("code/../secret/key", False),
        ("code/link/key", False),
        ("code/link/../code/app", True),
        ("codeshop", False),
        ("code/./app//x", True),
    ],
)
@pytest.mark.covers("hostpolicy.under.no-escape")
def test_a_path_is_where_it_leads(tree, path, inside):
    """Ours: links are followed and .. is resolved before anything is compared."""
    found = canonicalize_path(f"{tree}/{path}")

    assert inside is is_under(found, canonicalize_path(str(tree / "code")))


@pytest.mark.parametrize(
    "path", ["code/app", "code/link", "code/link/gone", "gone/deeper", "code/odd (deleted)", "loop"]
)
def test_links_are_followed_as_the_standard_library_does(tree, path, monkeypatch):
    """Ours: by the kernel where that can be had, and elsewhere in small steps."""
    (tree / "code/odd (deleted)").touch()
    (tree / "loop").symlink_to(tree / "loop")
    expected = os.path.realpath(tree / path)

    assert expected == resolve_links(f"{tree}/{path}")
    monkeypatch.delattr(os, "O_PATH", raising=False)
    assert expected == resolve_links(f"{tree}/{path}")


def test_what_is_no_file_leads_where_the_standard_library_says():
    """Ours: the kernel calls a pipe by what it is, which is no path."""
    reader, writer = os.pipe()
    try:
        assert os.path.realpath(f"/proc/self/fd/{reader}") == resolve_links(
            f"/proc/self/fd/{reader}"
        )
    finally:
        os.close(reader)
        os.close(writer)


def test_looking_where_paths_lead_keeps_nothing_open(tree):
    """Ours: a host decides for months."""
    opened = os.open(tree, os.O_RDONLY)
    os.close(opened)
    for _ in range(100):
        resolve_links(f"{tree}/code")
    again = os.open(tree, os.O_RDONLY)
    os.close(again)

    assert again < opened + 50


@pytest.mark.parametrize(
    "text",
    ["", "a/b", "~/x", "a\0b", "file://elsewhere/a", "file:relative", "file:///a?b", "file:///%00", "file:///%ff",
     "https://example.com/a", "custom:/etc/passwd", "/" + "a" * 5000],
)  # fmt: skip
@pytest.mark.covers("hostpolicy.under.no-escape")
def test_what_leads_nobody_knows_where_has_no_place(text):
    """Ours: it may be read one way here and another way in the server."""
    assert canonicalize_path(text) is None


def test_a_file_uri_is_the_path_it_names(tree):
    """Ours: with its escapes, and with no host or this one."""
    wanted = canonicalize_path(str(tree / "code/a b"))

    assert [wanted] * 2 == [
        canonicalize_path(f"{kind}{tree}/code/a%20b") for kind in ("file://", "FILE://localhost")
    ]


def test_a_relative_path_starts_in_the_servers_folder_where_that_is_known(tree):
    """Ours: otherwise nobody can tell what it names."""
    assert canonicalize_path(str(tree / "code/a")) == canonicalize_path("code/a", str(tree))
    assert canonicalize_path("a", "not/absolute") is None


def test_what_forbids_folds_case_and_what_allows_does_not():
    """Ours: on a system whose files ignore case, /ETC is /etc."""
    assert is_under("/ETC/x", "/etc", folding=True)
    assert not is_under("/ETC/x", "/etc")
    assert is_under("/x", "/")
    assert not is_under("/usr", "/etc", folding=True)
    assert is_under("/Caf\u00e9/x", "/cafe\u0301", folding=True)


def test_the_workspace_and_the_home_are_filled_in(monkeypatch):
    """Ours: what is not known fits nothing."""
    monkeypatch.setenv("HOME", "/home/me")

    assert ("/home/me/a", "/w/a", None, None) == (
        expand_path("~/a", ""), expand_path("${workspace}/a", "/w"), expand_path("${workspace}/a", ""), expand_path("~nobody-there/a", ""),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://Example.com/a", "example.com"), ("http://example.com:8080", "example.com"),
        ("https://example.com./a", "example.com"), ("https://[::1]:80/", "[::1]"), ("wss://a.b/c?d#e", "a.b"),
        ("https://xn--bcher-kva.example/", "xn--bcher-kva.example"),
    ],
)  # fmt: skip
def test_an_address_has_its_host(url, host):
    """Ours: in small letters, without port and final point."""
    assert host == parse_host(url)


@pytest.mark.parametrize(
    "url",
    ["https://good.com@evil.com/", "https://good.com\\@evil.com/", "https://good.com\t.evil.com/", " https://good.com",
     "https://b\u00fccher.example/", "https://good.com%2eevil.com/", "https:good.com", "//good.com/", "ftp://good.com/",
     "https://good.com:80:90/", "https:///good.com", "https://.good.com/", "https://good..com/", "https://g\u043e\u043ed.com",
     "javascript:alert(1)", "https://good.com\n/", "https://" + "a" * 9000, "http://[::1"],
)  # fmt: skip
@pytest.mark.covers("hostpolicy.host-in.no-tricks")
def test_an_address_that_readers_may_disagree_on_has_no_host(url):
    """Ours: one program sees the first name in it, another the second."""
    assert parse_host(url) is None


def test_a_star_is_what_lies_below_and_not_the_host_itself():
    """Ours: and it ends at a point."""
    hosts = ("a.example.com", "a.b.example.com", "example.com", "evilexample.com", ".example.com")

    assert [True, True, False, False, False] == [host_matches(h, "*.example.com") for h in hosts]
