"""isthmus."""
