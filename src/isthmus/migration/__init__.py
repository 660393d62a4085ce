"""Migration of a project's code from ``fastmcp`` and ``mcp`` to isthmus: ``isthmus migrate``.

``project`` goes through the files, ``scan`` reads one with libcst, ``imports``, ``strings`` and
``natives`` say what changes in it, ``edits`` makes the new text, ``requirements`` changes what the
project depends on, and ``report`` tells it. Names are data and stand in ``rules``.
"""
