"""Helpers under the names of ``fastmcp.utilities``."""
