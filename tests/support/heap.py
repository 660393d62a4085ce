"""What a piece of code leaves on the heap, told apart from all that was there before."""

import contextlib
import gc


@contextlib.contextmanager
def own_heap():
    """What is collected, or found by ``gc.get_objects``, in here was made in here.

    The collector runs only when it is told to, and looks at nothing else, then or later: in a
    process that runs thousands of tests everything else is millions of objects.
    """
    gc.disable()
    gc.freeze()
    try:
        yield
    finally:
        gc.enable()
