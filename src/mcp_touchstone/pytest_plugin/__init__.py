"""The pytest plugin."""


class TouchstoneWarning(UserWarning):
    """A finding that does not fail the run: a broken SHOULD, as a rule."""
