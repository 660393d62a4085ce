"""The commands of people who write servers: ``isthmus install``, ``isthmus bundle``, ``isthmus new``."""
