"""The server under test and the guarantees its author claims."""
