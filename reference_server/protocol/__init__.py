"""The protocol core: bytes to messages, messages to methods, both eras."""
