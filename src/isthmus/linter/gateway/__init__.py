"""Check of a gateway: servers of our own behind it, clients of our own before it, and what crosses."""
