"""The store of the authorization server: tables, records, clients, keys at rest."""
