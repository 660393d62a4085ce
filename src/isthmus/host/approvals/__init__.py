"""Approvals: questions to people, their decisions, grants that last, and fingerprints of tools."""
