"""Acts: what can be done, one class for each kind; only they call the methods of a client."""
