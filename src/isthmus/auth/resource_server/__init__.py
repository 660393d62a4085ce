"""Resource server: verifiers of access tokens, challenges, and protected resource metadata."""
