"""Transports: each is a module of channels, which carry messages as bytes."""
