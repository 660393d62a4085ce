"""What the tests of the transports share: the event loops they run on."""

import asyncio

import uvloop


def pytest_asyncio_loop_factories(config, item):
    """Run each test of a module that says ``EVERY_LOOP = True`` on both event loops."""
    factories = {"asyncio": asyncio.new_event_loop}
    if getattr(item.module, "EVERY_LOOP", False):
        factories["uvloop"] = new_uvloop
    return factories


def new_uvloop():
    """A loop that ends by itself: the alarm of pytest-timeout does not get through to it."""
    loop = uvloop.new_event_loop()
    loop.call_later(18, loop.stop)
    return loop
