"""Authorization doctor: the way to a token, examined hop by hop."""
