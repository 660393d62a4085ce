"""What holds for every test."""

import gc
import os

from hypothesis import HealthCheck, settings

# No test writes to the keyring of whoever runs it, or waits until it is unlocked.
os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"

# Timing limits are for benchmarks: a test must not fail because its machine is busy.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

# Eleven thousand tests are collected to stay: the collector need not look at them, now or later.
gc.disable()


def pytest_collection_finish():
    """Leave what was collected out of account, and let the collector look at the rest."""
    gc.freeze()
    gc.enable()
