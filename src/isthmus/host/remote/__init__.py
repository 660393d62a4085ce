"""Views of a host, in its own process and in others, and the control socket between them."""
