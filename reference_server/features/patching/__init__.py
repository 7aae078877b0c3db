"""The tool ``file_apply_patch_only``: a unified diff, on the hash of what was read."""
