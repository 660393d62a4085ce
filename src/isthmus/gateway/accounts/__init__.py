"""Pages of a gateway on which its users connect their accounts at servers, and forget them."""
