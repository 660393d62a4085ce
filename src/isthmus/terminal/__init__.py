"""The terminal: questions on a full screen, at a plain prompt, and in a conversation."""
