"""Guard."""
