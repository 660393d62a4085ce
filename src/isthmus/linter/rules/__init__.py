"""Rules of the linter as data, and what they judge: conversations and visits."""
