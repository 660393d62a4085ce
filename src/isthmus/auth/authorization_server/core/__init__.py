"""OAuth itself: endpoints, requests, grants and tokens."""
