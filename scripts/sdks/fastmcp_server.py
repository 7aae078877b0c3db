"""A minimal server on fastmcp: one tool, one resource, one prompt."""

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
    server.run(show_banner=False)
