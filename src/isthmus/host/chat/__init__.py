"""Chat: conversations of a user with a model that may use the tools of a host."""
