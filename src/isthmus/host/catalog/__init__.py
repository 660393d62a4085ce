"""What all servers offer, under names that do not collide, and how a model finds it."""
