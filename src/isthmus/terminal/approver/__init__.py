"""Approver."""
