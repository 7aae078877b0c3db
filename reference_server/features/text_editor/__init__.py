"""The tool ``text_editor``, and the prompts about it."""
