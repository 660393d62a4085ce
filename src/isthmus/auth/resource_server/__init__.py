"""The MCP server as an OAuth resource server: whose token it is, and what it allows."""
