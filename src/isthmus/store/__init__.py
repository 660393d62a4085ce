"""What a server keeps: one file per primitive, each a protocol and a form of it in memory."""
