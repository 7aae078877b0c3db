"""The public Python API: sessions for scripts and tests."""
