"""The configuration: which servers there are, where each line comes from, and what it means."""
