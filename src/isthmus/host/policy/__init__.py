"""Policy: rules that allow, ask or deny an attempt, and the reason for each answer."""
