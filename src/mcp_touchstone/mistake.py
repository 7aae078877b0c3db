"""What somebody can mend: the base of all errors that are told on one line."""


class Mistake(Exception):  # noqa: N818  (a person's, mostly, and not a fault of the program)
    """Something is not as it has to be; the message says what, where, and how to mend it.

    The command line tells it on one line and leaves with status 2.
    """
