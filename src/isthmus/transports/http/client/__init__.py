"""Streamable HTTP and HTTP+SSE, the client's side."""
