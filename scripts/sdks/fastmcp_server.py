"""A minimal server on fastmcp: one tool, one resource, one prompt.

It serves HTTP on the port of its argument, if there is one.
"""

import sys

from fastmcp import FastMCP

server = FastMCP("minimal")


@server.tool(annotations={"readOnlyHint": True})
def echo(text: str) -> str:
    """Give the text back."""
    return text


@server.resource("note://today")
def today() -> str:
    """Return a note."""
    return "Nothing happened."


@server.prompt
def greet(name: str) -> str:
    """Greet a person."""
    return f"Say hello to {name}."


if __name__ == "__main__":
    if sys.argv[1:]:
        server.run("http", port=int(sys.argv[1]), show_banner=False)
    server.run(show_banner=False)
