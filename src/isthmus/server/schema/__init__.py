"""Python types in, JSON Schema out: signatures, arguments, results and their faults."""
