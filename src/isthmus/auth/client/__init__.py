"""The MCP client as an OAuth client: how it comes by tokens, and keeps them."""
