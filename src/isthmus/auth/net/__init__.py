"""Network access and URLs of authorization."""
