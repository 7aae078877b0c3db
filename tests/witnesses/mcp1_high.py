"""A minimal server on the official Python SDK 1.x, high-level API."""

from mcp.server.fastmcp import FastMCP

server = FastMCP("witness")


@server.tool()
def echo(text: str) -> str:
    """Give the text back."""
    return text


if __name__ == "__main__":
    server.run()
