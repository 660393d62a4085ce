"""Streamable HTTP, both sides: an ASGI app for servers, a channel for clients."""
