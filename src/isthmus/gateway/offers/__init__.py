"""Offers of a gateway: its views, their lists and names, and what changes in them."""
