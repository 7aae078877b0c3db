"""The protocol core of both eras: bytes to messages, messages to methods."""
