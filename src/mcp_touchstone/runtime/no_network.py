"""Start a server without a network: in a network namespace of its own, on Linux."""

import subprocess
import sys
from typing import Final

WAYS: Final = (("unshare", "--net", "--"), ("unshare", "--map-current-user", "--net", "--"))
"""Command prefixes: the first for users who may make namespaces, the second for others."""

PATIENCE: Final = 10.0
"""Seconds for the test of a method."""


class OfflineError(Exception):
    """No method works on this machine; the message names the remedy."""


def way() -> tuple[str, ...]:
    """Return a command prefix that runs the command after it without a network, using exec.

    Raises:
        OfflineError: no method works on this machine.
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
