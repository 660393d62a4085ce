"""Nodes: processes that serve one server together, over one store."""
