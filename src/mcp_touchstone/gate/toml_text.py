"""Values as TOML, in the style of a hand-written file. Pure."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


def quoted(text: str) -> str:
    """Return a basic string; characters that a reader does not see are escaped."""
    sound = text.encode("utf-8", "replace").decode("utf-8")
    return "".join(
        char if char.isprintable() else f"\\U{ord(char):08x}"
        for char in json.dumps(sound, ensure_ascii=False)
    )


def listed(words: Iterable[str]) -> str:
    """Return an array of strings on one line."""
    return f"[{', '.join(map(quoted, words))}]"


def key(name: str) -> str:
    """Return a key, quoted only if necessary."""
    return name if _BARE.fullmatch(name) else quoted(name)


def value(thing: Any) -> str:
    """Return a JSON value as TOML on one line.

    Raises:
        ValueError: it contains null, which TOML cannot express.
    """
    if isinstance(thing, bool):
        return "true" if thing else "false"
    if isinstance(thing, str):
        return quoted(thing)
    if isinstance(thing, Mapping):
        members = ", ".join(f"{key(str(k))} = {value(v)}" for k, v in thing.items())
        return f"{{ {members} }}" if members else "{}"
    if isinstance(thing, (list, tuple)):
        return f"[{', '.join(map(value, thing))}]"
    if isinstance(thing, (int, float)):
        return repr(thing)
    raise ValueError(f"TOML has no {thing!r}")
