"""Configuration of the host: files of several layers, their servers, variables, and trust."""
