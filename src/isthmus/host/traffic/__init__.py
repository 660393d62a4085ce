"""Traffic of a host: records of calls, kept while somebody watches."""
