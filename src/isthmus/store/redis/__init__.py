"""Redis and Valkey as a store: connection, scripts, and the four primitives on them."""
