"""Façade of the official SDK, ``mcp`` 2.x and 1.x: its modules are below, with the names that they have there."""
