"""The MCP server as the client of an authorization server behind it (third-party flow)."""
