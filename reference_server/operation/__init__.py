"""Configuration and observation of the server: options, logs and hooks."""
