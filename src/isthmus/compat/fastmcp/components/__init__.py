"""Parts of tools, resources and prompts: functions, their schemas, what is injected, content."""
