"""Files that are written whole or not at all."""

import stat

import pytest

from isthmus.store.files import create_file, replace_file


def mode(path):
    """Who may do what with a file."""
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_takes_the_place_of_another(tmp_path):
    """Ours: whole, for its owner alone, and with nothing left beside it."""
    path = tmp_path / "a"
    path.write_bytes(b"before")
    path.chmod(0o644)
    replace_file(path, b"after")

    assert (b"after", 0o600, ["a"]) == (
        path.read_bytes(),
        mode(path),
        [p.name for p in tmp_path.iterdir()],
    )


def test_who_might_read_the_one_may_read_the_other_where_that_is_wanted(tmp_path):
    """Ours: as a configuration that a group reads; a new one is its owner's."""
    path = tmp_path / "a"
    replace_file(path, b"first", as_open=True)
    first = mode(path)
    path.chmod(0o640)
    replace_file(path, b"after", as_open=True)

    assert (0o600, 0o640, b"after") == (first, mode(path), path.read_bytes())


def test_what_was_not_to_be_replaced_stays(tmp_path):
    """Ours: whoever finds that it has changed says so at the last moment."""
    path = tmp_path / "a"
    path.write_bytes(b"before")

    def check():
        raise KeyError("changed")

    with pytest.raises(KeyError):
        replace_file(path, b"after", check=check)
    assert (b"before", ["a"]) == (path.read_bytes(), [p.name for p in tmp_path.iterdir()])


def test_a_file_that_is_there_is_not_made_again(tmp_path):
    """Ours: of two that make a key at once, the first one's counts."""
    path = tmp_path / "a"
    create_file(path, b"first")
    create_file(path, b"second")

    assert (b"first", 0o600, ["a"]) == (
        path.read_bytes(),
        mode(path),
        [p.name for p in tmp_path.iterdir()],
    )


@pytest.mark.parametrize("write", [create_file, replace_file])
def test_a_file_that_cannot_be_written_is_an_error(tmp_path, write):
    """Ours: of the system's own kind."""
    with pytest.raises(FileNotFoundError):
        write(tmp_path / "gone" / "a", b"x")
