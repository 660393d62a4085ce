"""Gateway: all servers of a host as one server, for any client, in every revision."""
