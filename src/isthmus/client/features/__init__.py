"""Client features: how a client answers elicitation, sampling and roots."""
