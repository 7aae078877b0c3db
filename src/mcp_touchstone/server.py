"""The reference server: over stdio, over HTTP, and to embed with tools and hooks of your own.

``serve`` and ``Settings`` run it on any pair of descriptors. A feature is a function that takes
the ``Surface`` and adds itself, for instance a ``Tool`` to ``surface.toolbox``;
``serve(..., features=[*ALL_FEATURES, yours])`` offers it beside what the server has.
"""

from __future__ import annotations

import os
import signal
import sys
from functools import partial
from importlib import import_module

from mcp_touchstone.catalog.home import NAMESPACE, make_importable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from reference_server.bundle import ALL_FEATURES
    from reference_server.failure import ToolError
    from reference_server.protocol.calls import Call
    from reference_server.protocol.errors import ProtocolError
    from reference_server.protocol.toolbox import Tool
    from reference_server.server import serve
    from reference_server.settings import Hook, Settings
    from reference_server.surface import Feature, Surface

PROGRAM = "mcp-touchstone serve"

OVER_HTTP = """
over streamable HTTP in place of standard input and output, at the path /mcp:
  --http HOST:PORT       serve there and print the URL; port 0 is any free one;
                         HOST is on loopback unless --http-name is given
  --http-token VARIABLE  accept only requests with the bearer token that this
                         variable of the environment has
  --http-name NAME       accept requests for this host name too, and web pages
                         from it; may be repeated; needs --http-token
  --issuer URL           accept only requests with an access token of this
                         authorization server, for --audience URL, and with
                         each --scope NAME; needs mcp-touchstone[http-auth]
"""

_PLACES = {
    "ALL_FEATURES": "bundle",
    "Call": "protocol.calls",
    "ProtocolError": "protocol.errors",
    "Settings": "settings",
    "Surface": "surface",
    "Tool": "protocol.toolbox",
    "ToolError": "failure",
    "serve": "server",
}


def __getattr__(name: str) -> Any:
    """Look a name up when it is asked for: a server that only starts needs few of them."""
    if name in _PLACES:
        return getattr(_module(_PLACES[name]), name)
    raise AttributeError(name)


def main(words: Sequence[str]) -> int:
    """Run the reference server on the standard streams of this process.

    Args:
        words: Its own arguments, see ``mcp-touchstone serve --help``.

    Returns:
        The exit status.
    """
    for each in (signal.SIGINT, signal.SIGTERM):  # until the server has handlers of its own
        signal.signal(each, lambda number, _frame: os._exit(128 + number))
    sys.argv = [PROGRAM, *words]
    if any(word.startswith("--http") for word in words):
        from mcp_touchstone.bridge import reference  # noqa: PLC0415  (few servers need it)

        options = _module("operation.options")
        check = partial(options.read, environment=os.environ)
        command = (sys.executable, "-m", "mcp_touchstone", "serve")
        return reference.main(PROGRAM, command, words, check, options.UsageError)
    status: int = _module("__main__").main(words)
    if {"-h", "--help"} & set(words):
        sys.stdout.write(OVER_HTTP)
    return status


def _module(name: str) -> Any:
    make_importable()
    return import_module(f"{NAMESPACE}.reference_server.{name}")


__all__ = [
    "ALL_FEATURES",
    "Call",
    "Feature",
    "Hook",
    "ProtocolError",
    "Settings",
    "Surface",
    "Tool",
    "ToolError",
    "main",
    "serve",
]
