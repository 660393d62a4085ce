"""A call's context, and the questions, notifications and effects of the function that serves it."""
