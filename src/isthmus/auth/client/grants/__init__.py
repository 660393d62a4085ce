"""Grants: the ways to get tokens, with a user, without one, or with a token at hand."""
