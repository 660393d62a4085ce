"""The commands ``isthmus auth …``: an authorization server and its records."""
