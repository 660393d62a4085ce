"""The commands of ``isthmus``: a module has the options of a command, and its work."""
