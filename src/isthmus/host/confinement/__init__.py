"""Confinement."""
