"""Accounts at servers, of the host's user or of each principal of a gateway."""
