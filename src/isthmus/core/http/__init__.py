"""Rules of Streamable HTTP without I/O: judging requests, header parameters, server-sent events."""
