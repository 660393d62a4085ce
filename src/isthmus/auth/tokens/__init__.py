"""Secrets, signed tokens and their keys, proofs of possession."""
