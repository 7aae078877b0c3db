"""The pytest plugin."""


class TouchstoneWarning(UserWarning):
    """A finding that does not fail the run, usually a broken SHOULD."""
