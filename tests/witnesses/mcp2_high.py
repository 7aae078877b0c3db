"""A minimal server on the official Python SDK 2.x, high-level API."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("witness")


@server.tool()
def echo(text: str) -> str:
    """Give the text back."""
    return text


if __name__ == "__main__":
    server.run()
