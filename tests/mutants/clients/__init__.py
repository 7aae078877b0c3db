"""A small client that keeps every rule, and mutants of it with one fault each."""
