"""Start a server where there is no network: in a network namespace of its own, on Linux."""

import subprocess
import sys
from typing import Final

WAYS: Final = (("unshare", "--net", "--"), ("unshare", "--map-current-user", "--net", "--"))
"""Words in front of a command, the first for who may make namespaces, the second for the rest."""

PATIENCE: Final = 10.0
"""Seconds a way may take to show that it works."""


class OfflineError(Exception):
    """No way works here; the message says what to do."""


def way() -> tuple[str, ...]:
    """Give the words that take the network from the command behind them; they replace themselves.

    Raises:
        OfflineError: none works here.
    """
    why = "only Linux takes the network from one process"
    if sys.platform == "linux":
        for words in WAYS:
            try:
                subprocess.run([*words, "true"], check=True, capture_output=True, timeout=PATIENCE)
            except (OSError, subprocess.SubprocessError) as error:
                said = getattr(error, "stderr", b"") or str(error).encode()
                why = said.decode("utf-8", "replace").strip().splitlines()[-1]
            else:
                return words
    raise OfflineError(f"{why}; run it in a container without network, or leave --offline out")
