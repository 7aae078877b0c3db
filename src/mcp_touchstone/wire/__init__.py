"""Bytes, messages and schemas of the protocol. Nothing here does I/O."""
