"""State of a host: its database, the secrets of the user, and the presence of processes."""
