"""What the tests of the transports share: the event loops they run on."""

import asyncio

import uvloop


def pytest_asyncio_loop_factories(config, item):
    """Run each test of a module that says ``EVERY_LOOP = True`` on both event loops."""
    factories = {"asyncio": asyncio.new_event_loop}
    if getattr(item.module, "EVERY_LOOP", False):
        factories["uvloop"] = uvloop.new_event_loop
    return factories
