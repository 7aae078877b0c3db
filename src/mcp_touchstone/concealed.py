"""What must not be shown: values of an environment that look like secrets. Pure."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

_SECRETS: Final = re.compile(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL", re.IGNORECASE)
_LONG_ENOUGH: Final = 8
"""Characters from which on a value is told apart from a word that stands there by chance."""


def secrets(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Walk the variables whose name says that they hold a secret: name, value."""
    for name, value in environment.items():
        if _SECRETS.search(name) and len(value) >= _LONG_ENOUGH:
            yield name, value
