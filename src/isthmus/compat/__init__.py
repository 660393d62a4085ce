"""Façades of other libraries: a server written for ``mcp`` or ``fastmcp`` runs on isthmus.

``isthmus run --compat package.module`` puts them in the place of those libraries for one process; a file
may also import them by their names here, as ``from isthmus.compat.mcp.server.fastmcp import FastMCP``. They
need ``pydantic``, by which the other libraries declare arguments and types (extra ``compat``). See
docs/guide/compat.md.
"""
