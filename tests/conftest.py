"""What holds for every test."""

import gc
import os
import sys
import tempfile

import pytest
from hypothesis import HealthCheck, settings

from support.examples import count_examples

# No test writes to the keyring of whoever runs it, or waits until it is unlocked.
os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"

# Nor into the state folder of whoever runs it: servers over HTTP keep a secret there.
_state = tempfile.TemporaryDirectory(prefix="isthmus-state-")
os.environ["XDG_STATE_HOME"] = _state.name

# Timing limits are for benchmarks: a test must not fail because its machine is busy.
settings.register_profile(
    "busy",
    deadline=None,
    max_examples=count_examples(100),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("busy")

# Eleven thousand tests are collected to stay: the collector need not look at them, now or later.
gc.disable()


MAX_CASE_NAME_CHARS = 100


def pytest_make_parametrize_id(val):
    """Name a case after the beginning of a long text: every process of a run sends the whole names."""
    if isinstance(val, str | bytes) and len(val) > MAX_CASE_NAME_CHARS:
        return f"{val[:MAX_CASE_NAME_CHARS]!a} and {len(val) - MAX_CASE_NAME_CHARS} more"
    return None


@pytest.fixture
def secret_watch(monkeypatch):
    """Fails a test in which a secret stands in a log, an error, a page or a refusal.

    Every test in tests/auth and tests/browser has it, others about authorization ask for it. A test
    in which a secret has to be seen, such as that of a command that prints a new one once, asks for
    the fixture and calls ``leaks()``, which says what there was and forgets it.
    """
    from support.auth.secret_watch import watching  # few tests are about authorization

    with watching(monkeypatch) as watch:
        yield watch
    assert [] == watch.leaks(), "a secret was seen"


def pytest_runtest_setup():
    """Forget what was found out about servers: the next one may listen at a port that another test had."""
    handshake = sys.modules.get("isthmus.client.handshake")
    if handshake is not None:
        handshake._KNOWN_TARGETS.clear()


def pytest_collection_finish():
    """Leave what was collected out of account, and let the collector look at the rest."""
    gc.freeze()
    gc.enable()
