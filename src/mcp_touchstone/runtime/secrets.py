"""Find the values of an environment that look like secrets, so that nothing prints them."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

_NAMES: Final = re.compile(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|COOKIE|DSN", re.IGNORECASE)
_PASSWORD_IN_URL: Final = re.compile(r"\w+://[^\s:/@]*:([^\s/@]+)@")
_RANDOM: Final = re.compile(r"(?=\S*[a-z])(?=\S*[A-Z])(?=\S*\d)[\w+=.~-]{24,}")
"""Text without blanks and slashes that mixes letters of both cases and digits, as tokens do."""
_PREFIXED: Final = re.compile(r"(?:sk|pk|gh[a-z]|glpat|npm|pypi|xox[a-z]|hf|AKIA)[-_]?\w{12,}")

_LONG_ENOUGH: Final = 8
"""Characters of a value that is hidden; a shorter one could be a common word."""


def secrets(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the values to hide, each with the name of its variable.

    A value is a secret if the name of its variable says so, if it has the form of a token, or if it
    is a URL with a password; the password of a URL is listed too.
    """
    for name, value in environment.items():
        if len(value) < _LONG_ENOUGH:
            continue
        passwords = _PASSWORD_IN_URL.findall(value)
        token = _RANDOM.fullmatch(value) or _PREFIXED.fullmatch(value)
        if passwords or token or _NAMES.search(name):
            yield name, value
        yield from ((name, one) for one in passwords if len(one) >= _LONG_ENOUGH)
