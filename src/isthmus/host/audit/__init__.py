"""The audit log: every attempt and its outcome, in a hash chain that shows whether anybody changed it."""
