"""A command as a person would type it. Pure."""

import shlex


def shown(command: tuple[str, ...], url: str, *, bundled: bool) -> str:
    """Return a command as a person would type it."""
    if bundled:
        return "(the bundled reference server)"
    words = [url] if url else []
    if url and command:
        words.append("--")
    return " ".join([*words, *map(shlex.quote, command)])
