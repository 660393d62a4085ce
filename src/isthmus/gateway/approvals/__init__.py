"""Approvals in a gateway: how clients are kept waiting for a person, and the pages where people decide."""
