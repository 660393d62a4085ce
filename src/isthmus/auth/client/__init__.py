"""OAuth client of an MCP client: discovery, registration, grants, and the store of its tokens."""
