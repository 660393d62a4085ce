"""The prompt: questions line by line on the terminal."""
