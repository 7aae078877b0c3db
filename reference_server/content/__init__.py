"""Lists and what is in them: resources, prompts, completions, and news of changes."""
