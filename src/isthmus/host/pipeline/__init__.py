"""Pipeline: the one way of an attempt to a server, and all that it passes."""
