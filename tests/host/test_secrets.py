"""Secrets that configurations name."""

import stat

import keyring.backend
import pytest

from isthmus.auth.tokens.secret import Secret
from isthmus.host.config.load import load_config
from isthmus.host.model.errors import ConfigError
from isthmus.host.state.secrets import SecretsUnusable, UserSecrets

KEY = "k" * 32


class Ring(keyring.backend.KeyringBackend):
    """A keyring in memory, which may be locked."""

    priority = 5

    def __init__(self):
        super().__init__()
        self.kept, self.asked, self.gate = {}, 0, None

    def get_password(self, service, username):
        """What is kept."""
        self.asked += 1
        if self.gate is not None:
            self.gate.wait()
        return self.kept.get((service, username))

    def set_password(self, service, username, password):
        """Keep it."""
        self.kept[service, username] = password

    def delete_password(self, service, username):
        """Forget it."""
        del self.kept[service, username]


@pytest.fixture
def ring():
    before, ring = keyring.get_keyring(), Ring()
    keyring.set_keyring(ring)
    yield ring
    keyring.set_keyring(before)


@pytest.mark.covers("hostconfig.secrets.sealed")
def test_a_secret_is_kept_sealed(tmp_path):
    """Ours: in a file of its owner's, whose key is elsewhere."""
    environ = {"ISTHMUS_STORE_KEY": KEY}
    UserSecrets(environ, folder=tmp_path).put("files/token", Secret("the-canary"))
    path = tmp_path / "secrets-by-variable.json"
    secrets = UserSecrets(environ, folder=tmp_path)

    assert "the-canary" == secrets.get("files/token").reveal()
    assert (b"canary" not in path.read_bytes(), 0o600) == (True, stat.S_IMODE(path.stat().st_mode))
    assert ["files/token"] == secrets.names()
    assert (True, False, None) == (
        secrets.remove("files/token"),
        secrets.remove("files/token"),
        secrets.get("files/token"),
    )


@pytest.mark.covers("hostconfig.secrets.sealed")
def test_the_keyring_holds_the_key_and_is_asked_when_it_is_needed(tmp_path, ring):
    """Ours: a configuration without secrets unlocks nothing."""
    UserSecrets({}, folder=tmp_path).put("a", Secret("the-canary"))
    asked, secrets = ring.asked, UserSecrets({}, folder=tmp_path)

    assert (None, ["a"], asked) == (secrets.get("b"), secrets.names(), ring.asked)
    assert "the-canary" == secrets.get("a").reveal()
    assert "the-canary" not in repr(ring.kept)


@pytest.mark.covers("hostconfig.secrets.keyring-locked")
def test_a_keyring_that_does_not_answer_breaks_one_server(tmp_path, ring):
    """Ours: what needs no secret works, and the message says what to do."""
    import threading

    UserSecrets({}, folder=tmp_path).put("a", Secret("the-canary"))
    path = tmp_path / "mcp.json"
    path.write_text(
        '{"mcpServers": {"s": {"command": "x", "args": ["${secret:a}"]}, "t": {"command": "y"}}}'
    )
    ring.gate = threading.Event()
    secrets = UserSecrets({}, folder=tmp_path, patience=0.01)
    config = load_config(path, folder=tmp_path, environ={}, secrets=secrets, managed=tmp_path / "m")
    ring.gate.set()

    assert ["t"] == list(config.servers)
    assert "did not answer within 0.01 s: is it locked?" in config.broken["s"]


def test_without_a_keyring_the_variable_is_named(tmp_path):
    """Ours: on a server there is none."""
    from keyring.backends.fail import Keyring

    before = keyring.get_keyring()
    keyring.set_keyring(Keyring())
    try:
        with pytest.raises(SecretsUnusable, match=r"no keyring on this system .ISTHMUS_STORE_KEY"):
            UserSecrets({}, folder=tmp_path).put("a", Secret("x"))
    finally:
        keyring.set_keyring(before)


def test_another_key_does_not_open_it(tmp_path):
    """Ours: the message says which secret, and not what is in it."""
    UserSecrets({"ISTHMUS_STORE_KEY": KEY}, folder=tmp_path).put("a", Secret("the-canary"))
    other = UserSecrets({"ISTHMUS_STORE_KEY": "o" * 32}, folder=tmp_path)

    with pytest.raises(SecretsUnusable, match="sealed with another key, or changed"):
        other.get("a")


def test_a_lost_key_is_told(tmp_path, ring):
    """Ours: an empty keyring makes no second key silently when one reads."""
    UserSecrets({}, folder=tmp_path).put("a", Secret("the-canary"))
    ring.kept.clear()

    with pytest.raises(SecretsUnusable, match=r"has no key for .* any more: set the secrets again"):
        UserSecrets({}, folder=tmp_path).get("a")


def test_a_torn_file_is_left_alone(tmp_path):
    """Ours: nothing of it is overwritten."""
    path = tmp_path / "secrets-by-variable.json"
    path.write_text("{")
    secrets = UserSecrets({"ISTHMUS_STORE_KEY": KEY}, folder=tmp_path)

    with pytest.raises(SecretsUnusable, match="no whole file of secrets"):
        secrets.put("a", Secret("x"))
    assert "{" == path.read_text()


@pytest.mark.parametrize("name", ["", "a b", "/a", "a//b", "a/", "${x}", "x" * 201])
def test_names_that_cannot_be(tmp_path, name):
    """Ours: a name stands within ${secret:…}."""
    with pytest.raises(ConfigError, match="is no name for a secret"):
        UserSecrets({"ISTHMUS_STORE_KEY": KEY}, folder=tmp_path).put(name, Secret("x"))


@pytest.mark.parametrize("text", ["", "x" * 65537])
def test_a_secret_has_a_size(tmp_path, text):
    """Ours: an empty one is a mistake, a long one no secret."""
    with pytest.raises(ConfigError, match="1 to 65536 characters"):
        UserSecrets({"ISTHMUS_STORE_KEY": KEY}, folder=tmp_path).put("a", Secret(text))


def test_a_key_that_is_too_short_is_told(tmp_path):
    """Ours: a password is no key."""
    with pytest.raises(SecretsUnusable, match="32 characters or more"):
        UserSecrets({"ISTHMUS_STORE_KEY": "short"}, folder=tmp_path).put("a", Secret("x"))
