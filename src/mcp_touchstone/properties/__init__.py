"""Property-based scenarios, drawn with Hypothesis."""
