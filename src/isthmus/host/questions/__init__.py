"""Questions of servers: elicitation, sampling and roots, answered with the user in charge."""
