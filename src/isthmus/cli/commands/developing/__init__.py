"""Commands for who writes a server: ``isthmus dev`` and ``isthmus version``."""
