"""Ground floor of the host: its values and pure functions, which import no engine."""
