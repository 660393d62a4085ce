"""Who keeps the servers running: starts, restarts and ends them, and hands out their clients."""
