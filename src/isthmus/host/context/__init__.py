"""What a model is given to read: chosen within a budget, with a list of what and why."""
