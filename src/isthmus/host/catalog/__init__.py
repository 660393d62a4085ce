"""The catalog: the tools, prompts and resources of all servers, under names that do not collide."""
