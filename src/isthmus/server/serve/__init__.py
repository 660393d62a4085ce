"""Serving: transports, lifespan, and worker threads."""
