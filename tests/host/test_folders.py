"""Which folders may be roots."""

import os

import pytest

from isthmus.host.confinement.folders import explain_refusal, resolve_folder, resolve_roots
from isthmus.host.model.entries import RootEntry


@pytest.mark.covers("hostconfig.roots.canonical")
def test_a_folder_is_where_it_really_is(tmp_path):
    """Ours: links and .. are followed, once and for all."""
    real = tmp_path / "real one"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    found = resolve_roots([RootEntry(path=str(tmp_path / "x" / ".." / "link"), name="W")])

    assert [str(real)] == [one.path for one in found]
    assert (f"file://{tmp_path}/real%20one", "W") == (found[0].root.uri, found[0].root.name)


@pytest.mark.covers("hostconfig.roots.canonical")
def test_a_folder_is_there_once(tmp_path):
    """Ours: however many ways lead to it."""
    (tmp_path / "link").symlink_to(tmp_path)

    paths = (tmp_path, tmp_path / "link", f"{tmp_path}{os.sep}")
    assert 1 == len(resolve_roots([RootEntry(path=str(path)) for path in paths]))


@pytest.mark.covers("hostconfig.roots.wide-refused")
@pytest.mark.parametrize(
    "path",
    [
        "/", "/home", "/home/ada", "/usr", "/usr/share", "/etc/ssl", "/proc/1", "/home/ada/.ssh",
        "/home/ada/.ssh/x", "/home/ada/.config", "/home/ada/.config/gh", "/home/ada/.aws",
        "/home/ada/.gnupg", "/home/ada/Library/x", "/srv/backup/.ssh", "/tmp",
        "/run/user/1000", "/home/ada/.claude", "/home/ada/.cargo/bin", "/home/ada/snap",
    ],
)  # fmt: skip
def test_folders_that_are_nobodys_work_are_refused(path):
    """Ours: the whole home, the system, and where keys are kept."""
    assert explain_refusal(path, "/home/ada")


@pytest.mark.parametrize(
    "path",
    ["/home/ada/work", "/home/ada/.dotfiles", "/srv/data", "/tmp/x", "/home/bob", "/code/.github"],
)
def test_folders_that_are_are_not(path):
    """Ours: who works there is not kept from it."""
    assert "" == explain_refusal(path, "/home/ada")


@pytest.mark.covers("hostconfig.roots.wide-refused")
def test_who_insists_gets_it(tmp_path, monkeypatch):
    """Ours: force is written down in the file, for whoever reads it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    entries = [RootEntry(path="~", name="a"), RootEntry(path="~", name="b", force=True)]

    assert ["refused", "there"] == [resolve_roots([entry])[0].state for entry in entries]


def test_what_is_not_there_is_gone_and_comes_back(tmp_path):
    """Ours: a disk that is not mounted is no mistake; a file is no folder."""
    entry = RootEntry(path=str(tmp_path / "disk"))
    before = resolve_roots([entry])[0].state
    (tmp_path / "disk").write_text("")
    file = resolve_roots([entry])[0]
    (tmp_path / "disk").unlink()
    (tmp_path / "disk").mkdir()

    assert ("gone", "gone", "there") == (before, file.state, resolve_roots([entry])[0].state)
    assert "no folder that can be read" in file.why


def test_a_path_is_as_it_is_spelt(tmp_path):
    """Ours: the home's sign is taken for the home."""
    assert os.path.realpath(tmp_path) == resolve_folder(str(tmp_path))
