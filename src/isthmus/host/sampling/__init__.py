"""Sampling: having the user's own model write for a server, with the user in charge."""
