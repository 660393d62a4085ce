"""An OAuth authorization server of our own, beside the MCP server or alone."""
