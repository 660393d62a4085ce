"""Tools of an API: operations, their arguments, credentials and answers, as a server offers them."""
