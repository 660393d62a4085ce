"""Skills over MCP (SEP-2640): entries, frontmatter and the verification of what a server sends."""
