"""Bridge: a client's target as a server, and several servers as one."""
