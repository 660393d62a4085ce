"""Who may do what: rules, what the user said before, and the reason for each answer."""
