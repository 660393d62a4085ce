"""Tasks: requests whose answer is fetched later, as servers and clients have them in common."""
