"""mcp-touchstone: judge a running MCP server or client, clause by clause.

For scripts, agents and tests there is a small client: :func:`connect` starts a server and gives a
:class:`Session` that lists its tools and calls them.
"""

from mcp_touchstone.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mcp_touchstone.api.session import LaunchError, Session, Tool, ToolResult, connect

_CLIENT = ("LaunchError", "Session", "Tool", "ToolResult", "connect")


def __getattr__(name: str) -> "Any":
    """Look a name up when it is asked for: reading all of it costs more than our start."""
    if name in _CLIENT:
        from mcp_touchstone.api import session  # noqa: PLC0415

        return getattr(session, name)
    raise AttributeError(name)


__all__ = ["LaunchError", "Session", "Tool", "ToolResult", "__version__", "connect"]
