"""Clients: one object per connection, whatever the server speaks and wherever it is."""
