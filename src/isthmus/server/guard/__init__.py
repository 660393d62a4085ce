"""Limits, scopes, caching hints, and sanitised output: the guard of a server and of its callers."""
