"""Users of the authorization server: backends, passwords, limits of login tries."""
