"""Applications in the same process (ASGI, FastAPI) as servers of tools."""
