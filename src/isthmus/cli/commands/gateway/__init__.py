"""Commands of the gateway: ``isthmus gateway`` and ``isthmus gateway check``."""
