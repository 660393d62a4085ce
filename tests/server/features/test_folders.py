"""Folders: every name in them can be read, and no name leads out of them."""

import os
import threading
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from isthmus.errors import UsageError
from isthmus.server.features.folders import (
    WINDOWS_DEVICES,
    FileMissing,
    FileTooLarge,
    ServedFolder,
    read_file,
)

SECRET = b"outside"


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A folder with files, and things around it that nobody may read."""
    top = tmp_path_factory.mktemp("tree")
    root = top / "folder"
    (root / "sub" / "deep").mkdir(parents=True)
    (root / "a.txt").write_text("a")
    (root / "sub" / "b.md").write_text("b")
    (root / "sub" / "deep" / "c d%41.txt").write_text("c")
    (root / ".hidden").write_bytes(SECRET)
    (top / "secret").write_bytes(SECRET)
    (top / "folder-beside").mkdir()
    (top / "folder-beside" / "secret").write_bytes(SECRET)
    (root / "link").symlink_to(top / "secret")
    (root / "out").symlink_to(top)
    (root / "inside").symlink_to(root / "a.txt")
    (root / "sub" / "up").symlink_to("..")
    os.mkfifo(root / "pipe")
    return root


@pytest.fixture(scope="module", params=[True, False], ids=["at", "looked at"])
def folder(request, tree):
    """The folder, opened in either way."""
    return ServedFolder(tree, at=request.param)


def read(folder, path, most=None):
    """What a name leads to."""
    return folder.read(folder.parts(path), most)


def test_what_is_in_it_is_read(folder):
    """Ours: at any depth, whatever the name."""
    assert [b"a", b"b", b"c"] == [
        read(folder, path) for path in ("a.txt", "sub/b.md", "sub/deep/c d%41.txt")
    ]


OUTSIDE = [
    *("../secret", "sub/../../secret", "..", ".", "", "/", "//", "/etc/passwd", "./a.txt"),
    *("sub//b.md", "a.txt/", "/a.txt", "sub/./b.md", "sub/../a.txt", "../folder/a.txt"),
    *("..\\secret", "sub\\..\\..\\secret", "\\\\server\\share", "C:\\secret", "a.txt\x00"),
    *("\x00", "../folder-beside/secret", "link", "out/secret", "out", "inside", "sub/up/a.txt"),
    *(".hidden", "pipe", "sub", "a.txt/b", "x" * 300, "a/" * 100 + "b", "\udcff", "~root/x"),
    *("%2e%2e/secret", "..%2fsecret", "\uff0e\uff0e/secret", "a.txt\n", "\u202e", "sub/ /b.md"),
]


@pytest.mark.covers("resources.files.no-way-out")
@pytest.mark.parametrize("path", OUTSIDE)
def test_no_name_leads_out_nor_to_what_is_no_file(folder, path):
    """The spec: servers MUST sanitise file paths; ours: and they all look the same from outside."""
    with pytest.raises(FileMissing):
        read(folder, path)


pieces = st.sampled_from(
    ["..", ".", "", "a.txt", "sub", "deep", "b.md", "link", "out", "up", "inside", "secret",
     "folder", "folder-beside", "~", "%2e%2e", "..;", "...", "C:", "CON", "\\..", "\x00", " ", "\uff0e\uff0e"]
)  # fmt: skip
names = st.text(max_size=40) | st.lists(pieces | st.text(max_size=5), max_size=8).map("/".join)


@pytest.mark.covers("resources.files.no-way-out")
@given(names)
@example("out/../secret")
@example("sub/up/../secret")
def test_no_name_reads_a_file_outside_the_folder(tree, name):
    """The spec, for any name at all: what comes back was in the folder, under that very name."""
    for at in (True, False):
        folder = ServedFolder(tree, at=at)
        try:
            data = read(folder, name)
        except FileMissing:
            continue
        real = os.path.realpath(tree / name)
        assert data != SECRET
        assert "/".join([str(tree), name]) == real
        assert (tree / name).read_bytes() == data


@given(names)
def test_only_folders_in_the_folder_are_listed(tree, name):
    """Ours: what may not be read is not shown, either."""
    folder = ServedFolder(tree)
    try:
        entries, _ = folder.page(folder.parts(name), "", 100)
    except FileMissing:
        return
    for entry in entries:
        assert os.path.realpath(tree.joinpath(*entry.path)) == str(tree.joinpath(*entry.path))
        assert not entry.path[-1].startswith(".")


def test_a_listing_is_sorted_bounded_and_goes_on(tmp_path):
    """Ours: a folder of a million files has pages, too."""
    for n in range(10):
        (tmp_path / f"{n}.txt").touch()
    folder = ServedFolder(tmp_path)

    seen, after, more = [], "", True
    while more:
        entries, more = folder.page((), after, 3)
        assert len(entries) <= 3
        seen += [entry.path[0] for entry in entries]
        after = seen[-1]
    assert [f"{n}.txt" for n in range(10)] == seen


def test_the_walk_gives_every_file_and_no_link(folder):
    """Ours: in an order that stays."""
    assert ["a.txt", "sub/b.md", "sub/deep/c d%41.txt"] == [
        "/".join(entry.path) for entry in folder.walk()
    ]


@pytest.mark.parametrize(
    ("pattern", "matched"),
    [
        ("**/*", {"a.txt", "sub/b.md", "sub/deep/c d%41.txt"}),
        ("*", {"a.txt"}),
        ("**/*.md", {"sub/b.md"}),
        ("sub/**", {"sub/b.md", "sub/deep/c d%41.txt"}),
        ("**/deep/*", {"sub/deep/c d%41.txt"}),
        (["*.txt", "sub/?.md"], {"a.txt", "sub/b.md"}),
        ("[!b].txt", {"a.txt"}),
        ("sub*b.md", set()),
    ],
)
def test_only_what_the_pattern_allows_is_read_and_listed(tree, pattern, matched):
    """Ours: a folder may hold more than is offered."""
    folder = ServedFolder(tree, pattern=pattern)

    assert matched == {"/".join(entry.path) for entry in folder.walk()}
    for path in ("a.txt", "sub/b.md", "sub/deep/c d%41.txt"):
        if path in matched:
            read(folder, path)
        else:
            with pytest.raises(FileMissing):
                read(folder, path)


def test_hidden_files_are_read_where_that_was_said(tree):
    """Ours: ``.env`` and ``.git`` are not offered by accident."""
    assert SECRET == read(ServedFolder(tree, hidden=True), ".hidden")


@pytest.mark.parametrize(
    "name",
    ["con", "CON", "nul.txt", "Com1", "lpt9.log", "aux", "COM¹", "conin$", "nul:", "prn ",
     "a:b", "C:", "file.txt.", "file.txt ", "a.txt::$DATA"],
)  # fmt: skip
def test_names_that_windows_takes_for_something_else_are_none_there(tree, name):
    """Ours: devices, drives, streams, and what loses its end."""
    with pytest.raises(FileMissing):
        ServedFolder(tree, windows=True).parts(name)


def test_names_that_only_look_like_devices_are_names():
    """Ours: a console log is no console."""
    assert not any(
        map(WINDOWS_DEVICES.fullmatch, ("console", "com", "com10", "auxiliary.md", "null"))
    )


def test_a_file_that_is_too_large_is_not_read(tmp_path):
    """Ours: however large it says it is."""
    (tmp_path / "big").write_bytes(b"x" * 11)
    folder = ServedFolder(tmp_path)

    with pytest.raises(FileTooLarge, match="11 bytes"):
        read(folder, "big", 10)
    assert 11 == len(read(folder, "big", 11))


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no files of unknown size")
def test_a_file_that_does_not_say_its_size_is_bounded_too():
    """Ours: some files are larger than they say."""
    with pytest.raises(FileTooLarge, match="more than"):
        read_file("/proc/self/status", 10)


@pytest.mark.covers("resources.files.no-way-out")
def test_a_link_put_in_the_place_of_a_file_meanwhile_is_not_followed(tmp_path):
    """The spec, against somebody who is quick: a race is never won."""
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "file").write_bytes(b"inside")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_bytes(SECRET)
    done = threading.Event()

    def swap():
        while not done.is_set():
            (root / "sub").rename(root / "kept")
            (root / "sub").symlink_to(tmp_path / "other")
            (root / "sub").unlink()
            (root / "kept").rename(root / "sub")

    swapper = threading.Thread(target=swap)
    swapper.start()
    seen = set()
    try:
        for at in (True, False):
            folder = ServedFolder(root, at=at)
            for _ in range(1000):
                try:
                    seen.add(read(folder, "sub/file"))
                except FileMissing:
                    continue
    finally:
        done.set()
        swapper.join()
    assert seen <= {b"inside"}


def count_open_files():
    """How many files this process has open, where that can be found out."""
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.exists() else 0


def test_nothing_stays_open(tree):
    """Ours: refusals do not use up what a process may have open."""
    before = count_open_files()
    for at in (True, False):
        folder = ServedFolder(tree, at=at)
        for path in [*OUTSIDE, "a.txt", "sub/b.md"]:
            try:
                read(folder, path, 10)
            except (FileMissing, FileTooLarge):
                continue
        list(folder.walk())
    assert before == count_open_files()


def test_the_way_to_the_folder_may_be_a_link(tree, tmp_path):
    """Ours: the author named it, so it is meant."""
    (tmp_path / "docs").symlink_to(tree)

    assert b"a" == read(ServedFolder(tmp_path / "docs"), "a.txt")


@pytest.mark.parametrize("pattern", ["", "../*", "/etc/*", "a//b", "[z-a]"])
def test_a_pattern_that_is_none_is_refused(tree, pattern):
    """Ours: at registration, with the pattern in the message."""
    with pytest.raises(UsageError, match="no pattern"):
        ServedFolder(tree, pattern=pattern)


def test_there_must_be_a_folder(tmp_path):
    """Ours: a mistyped name is found before anybody reads from it."""
    with pytest.raises(UsageError, match="no folder"):
        ServedFolder(tmp_path / "nothing")


def test_a_named_file_may_be_behind_a_link_and_must_be_a_file(tree, tmp_path):
    """Ours: deployments link their files; devices and folders are none."""
    assert b"a" == read_file(str(tree / "inside"), 10)
    for path in ("/dev/null", str(tree), str(tree / "pipe"), str(tmp_path / "gone")):
        with pytest.raises(FileMissing):
            read_file(path, 10)
