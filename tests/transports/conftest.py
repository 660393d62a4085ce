"""What the tests of the transports share: the event loops they run on."""

import asyncio

import pytest
import uvloop

from support.http import asgi_driver


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


@pytest.fixture(params=["asgi", "connection"])
def carrier(request, monkeypatch):
    """Exchanges go by ASGI, and then over a connection of ours, to the same tests.

    A module says which of its tests are about ASGI itself: ``ASGI_ONLY``.
    """
    if request.param == "connection" and request.function.__name__ in request.module.ASGI_ONLY:
        pytest.skip("it is about ASGI itself")
    monkeypatch.setitem(asgi_driver.settings, "carrier", request.param)
    return request.param
