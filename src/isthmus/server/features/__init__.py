"""The features of a server, one module each."""
