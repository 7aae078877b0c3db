"""Compute whether a payload reaches its target on an unprotected server.

Readings decode the text of the payload first. Then the *lexical* model removes dot-dot
(``normpath``) before it resolves a path, and the *physical* model resolves a path as the kernel
does, with links. A payload that is declared live but reaches nothing on a tree is counted as dead.
"""

import glob
import html
import os
import re
import unicodedata
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Final
from urllib.parse import unquote, unquote_to_bytes, urlsplit

from mcp_touchstone.security.fixture_tree import FixtureTree
from mcp_touchstone.security.payload import CANARY, Payload

FIRST_STEP: Final = frozenset({"posix", "lexical"})
ROUNDS: Final = 3
PAIR: Final = " -> "
"""Separator of source and destination in a payload for moves and copies."""

Reading = Callable[[str, FixtureTree], Iterator[str]]


def aim(payload: Payload, text: str, field: FixtureTree) -> Path | None:
    """Return the path that a payload reaches by one of its readings; None if it reaches none.

    The path is a file or folder outside the root with a canary, or a denied path in the root if
    the payload is about a deny list. For a payload that creates something, it is the new path.
    """
    denied = payload.group.startswith("deny.")
    target = f"denied {payload.operation}" if denied else payload.target
    for label in payload.live or (("posix",) if denied else ()):
        found = _reached(label, text, target, field)
        if found is not None:
            return found
    return None


def _reached(label: str, text: str, target: str, field: FixtureTree) -> Path | None:
    readings = [text]
    for step in label.split("+"):
        if step not in FIRST_STEP:
            read = READINGS.get(step)
            if read is None:
                return None
            readings = [one for reading in readings for one in read(reading, field)]
    models = {"posix": (_physical,), "lexical": (_lexical,)}.get(label, (_physical, _lexical))
    for reading in readings:
        for model in models:
            found = _aimed(model(reading, field), target, field)
            if found is not None:
                return found
    return None


def lexical(text: str, root: str) -> str:
    """Return a path joined to a root, with dot-dot removed; links are not resolved."""
    return os.path.normpath(os.path.join(root, text))


def _lexical(text: str, field: FixtureTree) -> str:
    return lexical(text, str(field.root))


def _physical(text: str, field: FixtureTree) -> str:
    return os.path.join(field.root, text)


def aim_of_pair(text: str, field: FixtureTree) -> Path | None:
    """Return the source or else the new path of a move or copy outside the root; None if none."""
    return taken(text, field) or put(text, field)


class Carriage(StrEnum):
    """Forbidden effects of a move or copy."""

    IN = "takes what lies outside"
    OUT = "puts something outside"
    OVER = "puts something where a link leads"
    TREE = "takes a folder, and the targets of its links"
    DENIED = "takes or replaces a denied file"


def carriage(text: str, field: FixtureTree) -> Carriage | None:
    """Return the effect of a move or copy on an unprotected server; None if harmless or endless."""
    source, _, destination = text.partition(PAIR)
    here, there = _physical(source, field), _physical(destination, field)
    if _endless(Path(here)):
        return None
    if taken(text, field) is not None:
        return Carriage.IN
    if put(text, field) is not None:
        return Carriage.OVER if Path(there).is_symlink() else Carriage.OUT
    if _is_listed(here, field) or _is_listed(there, field):
        return Carriage.DENIED
    return Carriage.TREE if _leads_out(Path(here), field) else None


def _aims(folder: Path) -> list[Path]:
    """Return the real targets of the links below a folder."""
    return [Path(os.path.realpath(path)) for path in folder.rglob("*") if path.is_symlink()]


def _endless(folder: Path) -> bool:
    """Return whether a folder holds a link to itself or to a folder above it.

    A copy that follows such a link fills the disk, so these folders are never moved or copied.
    """
    return any(folder.is_relative_to(aim) for aim in _aims(folder))


def _leads_out(folder: Path, field: FixtureTree) -> bool:
    """Return whether links below a folder lead outside the root."""
    aims = [] if folder.is_symlink() else _aims(folder)
    return any(not aim.is_relative_to(field.root) for aim in aims)


def _is_listed(path: str, field: FixtureTree) -> bool:
    """Return whether a path is, or would be, denied; or a folder whose files are denied."""
    real = Path(os.path.realpath(path))
    below = real.relative_to(field.root).parts if real.is_relative_to(field.root) else ()
    held = (*below, CANARY) if real.is_dir() else below
    return field.denied.lists(held, writing=True)


def taken(text: str, field: FixtureTree) -> Path | None:
    """Return the source of a move or copy if it is outside the root; None otherwise."""
    source = text.partition(PAIR)[0]
    return _aimed(_physical(source, field), "any", field)


def put(text: str, field: FixtureTree) -> Path | None:
    """Return the path that a move or copy creates outside the root; None if none."""
    return _made(_physical(text.partition(PAIR)[2], field), field)


def _aimed(path: str, target: str, field: FixtureTree) -> Path | None:
    """Return the real path of a path if it is a target of the wanted kind; None otherwise."""
    try:
        if target.startswith("denied"):
            return _denied(path, target.partition(" ")[2], field)
        if target == "new":
            return _made(path, field)
        real = Path(os.path.realpath(path, strict=True))
    except (OSError, ValueError):
        return None
    if real.is_relative_to(field.root) or not field.watches(real):
        return None
    fits = {"dir": real.is_dir(), "any": True}.get(target, real.is_file())
    return real if fits else None


def _denied(path: str, operation: str, field: FixtureTree) -> Path | None:
    """Return the real path of a path if it is a denied path in the root; None otherwise."""
    makes = operation in {"create", "move", "copy"}
    real = Path(os.path.realpath(path, strict=not makes))
    if not real.is_relative_to(field.root):
        return None
    parts = real.relative_to(field.root).parts
    found = field.denied.lists(parts, writing=operation not in {"read", "list"})
    return real if found and (makes or real.is_dir() is (operation == "list")) else None


def _made(path: str, field: FixtureTree) -> Path | None:
    """Return the path that would be created, or its real path if it exists; None if inside.

    The deepest existing folder decides whether a new path is outside the root.
    """
    if os.path.lexists(path):
        parent = real = os.path.realpath(path)
    else:
        parent = os.path.dirname(path)
        while parent and not os.path.isdir(parent):
            parent = os.path.dirname(parent)
        real = path
    outside = not Path(os.path.realpath(parent)).is_relative_to(field.root)
    return Path(real) if outside else None


# --- readings


def _percent(text: str, _: FixtureTree) -> Iterator[str]:
    yield unquote(text)


def _percent_twice(text: str, _: FixtureTree) -> Iterator[str]:
    yield unquote(unquote(text))


def _percent_thrice(text: str, _: FixtureTree) -> Iterator[str]:
    for _round in range(ROUNDS):
        text = unquote(text)
    yield text


def _overlong(text: str, _: FixtureTree) -> Iterator[str]:
    """Decode overlong UTF-8, as lax decoders do."""
    data = unquote_to_bytes(text)
    found = re.sub(
        rb"[\xc0\xc1][\x80-\xbf]|\xe0[\x80-\x9f][\x80-\xbf]|\xf0[\x80-\x8f][\x80-\xbf][\x80-\xbf]",
        lambda match: bytes([(match[0][-2] & 0x03) << 6 | match[0][-1] & 0x3F]),
        data,
    )
    yield found.decode("utf-8", "replace")


def _collapsed(text: str, _: FixtureTree) -> Iterator[str]:
    for filtered in ("../", "./", "..", "..\\", "..\\/"):
        yield text.replace(filtered, "")


def _unquoted(text: str, _: FixtureTree) -> Iterator[str]:
    yield text.strip("\"'`")


def _expanded(text: str, field: FixtureTree) -> Iterator[str]:
    home = str(field.home)
    for name in ("$HOME", "${HOME}", "%USERPROFILE%"):
        text = text.replace(name, home)
    yield text


def _shell(text: str, field: FixtureTree) -> Iterator[str]:
    yield re.sub(r"\$\(printf (.*?)\)|`printf (.*?)`", r"\1\2", text)
    yield text.replace("~+", str(field.root), 1)


def _tilde(text: str, field: FixtureTree) -> Iterator[str]:
    yield re.sub(r"^~(?=/|$)", str(field.home), text)


def _globbed(text: str, field: FixtureTree) -> Iterator[str]:
    yield from glob.glob(text, root_dir=field.root)


def _braced(text: str, _: FixtureTree) -> Iterator[str]:
    yield from text.strip("{}").split(",")


def _legacy_escapes(text: str, _: FixtureTree) -> Iterator[str]:
    plain = unicodedata.normalize("NFKC", re.sub(r"%u([0-9a-f]{4})", _escaped, text))
    yield plain.replace("\u2215", "/")


def _escaped(match: re.Match[str]) -> str:
    return chr(int(match[1], 16))


def _uri(text: str, _: FixtureTree) -> Iterator[str]:
    if text.lower().startswith("file:"):
        yield unquote(urlsplit(text).path)


def _lowered(text: str, field: FixtureTree) -> Iterator[str]:
    yield _found(text, field, str.lower)


def _folded(text: str, field: FixtureTree) -> Iterator[str]:
    yield _found(text, field, str.casefold)


def _found(text: str, field: FixtureTree, fold: Callable[[str], str]) -> str:
    """Return a path with each part replaced by an existing name that folds to the same text."""
    here, parts = field.root, []
    for part in text.split("/"):
        names = sorted(entry.name for entry in os.scandir(here)) if here.is_dir() else []
        same = [name for name in names if fold(name) == fold(part)]
        parts.append(part if part in names or not same else same[0])
        here /= parts[-1]
    return "/".join(parts)


def _without_format(text: str, _: FixtureTree) -> Iterator[str]:
    yield "".join(c for c in text if unicodedata.category(c) != "Cf")


def _without_tails(text: str, _: FixtureTree) -> Iterator[str]:
    yield "/".join(part.rstrip(". ") or part for part in text.split("/"))


READINGS: Final[dict[str, Reading]] = {
    "percent": _percent,
    "percent2": _percent_twice,
    "percent3": _percent_thrice,
    "overlong": _overlong,
    "backslash": lambda text, _: iter([text.replace("\\", "/")]),
    "collapse": _collapsed,
    "trim": lambda text, _: iter([text.strip()]),
    "unquote": _unquoted,
    "nfkc": lambda text, _: iter([unicodedata.normalize("NFKC", text)]),
    "html": lambda text, _: iter([html.unescape(text)]),
    "json2": lambda text, _: iter([re.sub(r"\\u([0-9a-f]{4})", _escaped, text)]),
    "pctu": _legacy_escapes,
    "semicolon": lambda text, _: iter([re.sub(r";[^/]*", "", text)]),
    "nul-trunc": lambda text, _: iter([text.partition("\0")[0]]),
    "strip-pipe": lambda text, _: iter([text.replace("|", "")]),
    "strip-zw": _without_format,
    "hfs": _without_format,
    "win": _without_tails,
    "casefold": _lowered,
    "casefold-full": _folded,
    "tilde": _tilde,
    "env": _expanded,
    "shell": _shell,
    "glob": _globbed,
    "brace": _braced,
    "uri": _uri,
}  # fmt: skip
"""Label of ``live`` -> reading that decodes a text. Labels of other platforms are missing."""
