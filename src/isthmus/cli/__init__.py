"""The command ``isthmus``: serve a file, and talk to any server from a shell."""
