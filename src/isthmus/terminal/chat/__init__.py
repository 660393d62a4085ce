"""The conversation at a terminal: on the full screen, or line by line."""
