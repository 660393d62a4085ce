"""What servers offer, one module each."""
