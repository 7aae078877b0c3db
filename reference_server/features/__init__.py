"""Features beside the core: the server works without each of them. ``bundle`` is their table."""
