"""mcp-touchstone: judge a running MCP server over stdio, clause by clause."""


def __getattr__(name: str) -> str:
    """Look the version up when it is asked for: reading metadata costs more than our start."""
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415

        try:
            found = version("mcp-touchstone")
        except PackageNotFoundError:  # a bare checkout on sys.path
            found = "0+checkout"
        globals()["__version__"] = found
        return found
    raise AttributeError(name)
