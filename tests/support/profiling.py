"""A profile function for one piece of a test."""

import contextlib
import gc
import sys


@contextlib.contextmanager
def profile_calls(see):
    """Tell `see` of every call in here; the collector, whose callbacks are calls too, waits.

    Args:
        see: a function of the frame, the event and its argument, as `sys.setprofile` takes it.
    """
    gc.disable()
    sys.setprofile(see)
    try:
        yield
    finally:
        sys.setprofile(None)
        gc.enable()
