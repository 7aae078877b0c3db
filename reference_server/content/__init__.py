"""Resources, prompts, completions, and notifications of their changes."""
