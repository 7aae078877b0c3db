"""Clauses, threats, revisions, needs and scenarios, and the readers of their files."""
