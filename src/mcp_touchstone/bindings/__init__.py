"""The tools that operate on files: their operations and the arguments for them."""
