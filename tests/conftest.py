"""What holds for every test."""

from hypothesis import HealthCheck, settings

# Timing limits are for benchmarks: a test must not fail because its machine is busy.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")
