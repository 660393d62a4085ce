"""Memory settings of a server's process: the garbage collector, and what the C library keeps."""

import gc

# A request leaves no garbage cycles, so the collector may look for them rarely
GC_THRESHOLDS = (50_000, 50, 100)

KEPT_BLOCK_BYTES = 16 * 1024 * 1024  # so that up to 32 MiB stay with the process


def tune_memory() -> None:
    """Freeze what is there for the garbage collector, and keep the memory that large messages took."""
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    keep_freed_memory()


def keep_freed_memory() -> None:
    """Have the C library keep what a large message took, for the next one.

    glibc gives memory at the end of its heap back to the system where it is more than twice the largest
    block that was freed so far, and the system then clears every page of it anew: of a message
    of 1 MB over HTTP, or of 10 MB over stdio, that was half of its cost. This block is freed
    untouched, and takes no memory.
    """
    bytes(KEPT_BLOCK_BYTES)
