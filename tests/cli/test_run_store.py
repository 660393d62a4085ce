"""The store of ``isthmus run``: an option, or a variable that no list of processes shows."""

import pytest

from isthmus.cli.commands.run import ListenOptions, read_http_options

HTTP = ListenOptions("http", "127.0.0.1:8000")
URL = "redis://:password@localhost/0"


@pytest.fixture
def variable(monkeypatch):
    """ISTHMUS_STORE with a password in it."""
    monkeypatch.setenv("ISTHMUS_STORE", URL)


def test_the_environment_names_the_store(variable):
    """Ours: a URL with a password need not stand among the arguments."""
    assert URL == read_http_options(HTTP).store


def test_the_option_wins_over_the_environment(variable):
    """Ours: as options do everywhere."""
    assert "sqlite:///a.db" == read_http_options(HTTP, store="sqlite:///a.db").store


def test_what_is_no_http_has_no_store(variable):
    """Ours: a variable that is set for other servers harms none over stdio."""
    assert read_http_options(None).store is None


def test_processes_that_are_started_do_not_show_the_store():
    """Ours: everybody on a machine sees the arguments of its processes."""
    options = read_http_options(HTTP, store=URL, drain="5")

    assert ["--drain", "5.0"] == options.words()
