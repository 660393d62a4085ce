"""What happened, in a file that only grows and shows whether anybody changed it."""
