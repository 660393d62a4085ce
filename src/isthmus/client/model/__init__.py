"""Values of a client and pure functions on them: limits, questions, results, callbacks, schemas."""
