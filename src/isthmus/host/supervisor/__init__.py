"""The supervisor: it starts, restarts and stops servers, and hands out their clients."""
