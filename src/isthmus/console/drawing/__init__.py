"""Drawing: pieces of pages as pure functions from values to markup."""
