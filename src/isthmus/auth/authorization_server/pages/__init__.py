"""Pages that browsers see of the authorization server."""
