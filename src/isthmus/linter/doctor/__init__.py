"""Doctor of MCP servers: probes, the sessions that carry them, and recordings."""
