"""Conversations, ambient rules and judgements."""
