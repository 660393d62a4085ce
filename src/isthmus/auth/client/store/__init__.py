"""Token stores: in memory, in an encrypted file, with a key in the system's keyring."""
