"""Compute whether a payload reaches its target on an unprotected server.

Readings decode the text of the payload first. Then the *lexical* model removes dot-dot
(``normpath``) before it resolves a path, and the *physical* model resolves a path as the kernel
does, with links. A payload that is declared live but reaches nothing on a tree is counted as dead.
"""

import contextlib
import html
import os
import re
import stat
import unicodedata
from collections.abc import Callable, Iterable
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import unquote, unquote_to_bytes, urlsplit

from mcp_touchstone.security.fixture_tree import FixtureTree
from mcp_touchstone.security.payload import CANARY, Payload

FIRST_STEP: Final = frozenset({"posix", "lexical"})
PAIR: Final = " -> "
"""Separator of source and destination in a payload for moves and copies."""

Reading = Callable[[str, FixtureTree], Iterable[str]]


def aim(payload: Payload, text: str, tree: FixtureTree) -> str | None:
    """Return the path that a payload reaches by one of its readings; None if it reaches none.

    The path is a file or folder outside the root with a canary, or a denied path in the root if
    the payload is about a deny list. For a payload that creates something, it is the new path.
    """
    denied = payload.group.startswith("deny.")
    target = f"denied {payload.operation}" if denied else payload.target
    for label in payload.live or (("posix",) if denied else ()):
        found = _reached(label, text, target, tree)
        if found is not None:
            return found
    return None


def _reached(label: str, text: str, target: str, tree: FixtureTree) -> str | None:
    readings = [text]
    for step in label.split("+"):
        if step not in FIRST_STEP:
            read = READINGS.get(step)
            if read is None:
                return None
            readings = [one for reading in readings for one in read(reading, tree)]
    models = {"posix": (_physical,), "lexical": (_lexical,)}.get(label, (_physical, _lexical))
    for reading in readings:
        for model in models:
            found = _aimed(model(reading, tree), target, tree)
            if found is not None:
                return found
    return None


def lexical(text: str, root: str) -> str:
    """Return a path joined to a root, with dot-dot removed; links are not resolved."""
    return os.path.normpath(os.path.join(root, text))


def _lexical(text: str, tree: FixtureTree) -> str:
    return lexical(text, str(tree.root))


def _physical(text: str, tree: FixtureTree) -> str:
    return os.path.join(str(tree.root), text)


def aim_of_pair(text: str, tree: FixtureTree) -> str | None:
    """Return the source or else the new path of a move or copy outside the root; None if none."""
    return taken(text, tree) or put(text, tree)


class Carriage(StrEnum):
    """Forbidden effects of a move or copy."""

    IN = "takes what lies outside"
    OUT = "puts something outside"
    OVER = "puts something where a link leads"
    TREE = "takes a folder, and the targets of its links"
    DENIED = "takes or replaces a denied file"


def carriage(text: str, tree: FixtureTree) -> Carriage | None:
    """Return the effect of a move or copy on an unprotected server; None if harmless or endless."""
    source, _, destination = text.partition(PAIR)
    here, there = _physical(source, tree), _physical(destination, tree)
    if _endless(here, tree):
        return None
    if taken(text, tree) is not None:
        return Carriage.IN
    if put(text, tree) is not None:
        return Carriage.OVER if stat.S_ISLNK(_mode(there, tree)) else Carriage.OUT
    if _is_listed(here, tree) or _is_listed(there, tree):
        return Carriage.DENIED
    return Carriage.TREE if _leads_out(here, tree) else None


def is_inside(path: str, tree: FixtureTree) -> bool:
    """Return whether an absolute path without links is in the root."""
    return _parts(path, tree) is not None


def _mode(path: str, tree: FixtureTree) -> int:
    """Return the mode of a path, whose last part may be a link; 0 if it is missing."""
    folder, _, name = path.rpartition("/")
    with contextlib.suppress(OSError):
        real = tree.path.tree.real(folder or "/")
        return tree.path.tree.lstat(os.path.join(real, name)).st_mode
    return 0


def _is_folder(path: str, tree: FixtureTree) -> bool:
    """Return whether a path is a folder, or a link to one."""
    with contextlib.suppress(OSError):
        return stat.S_ISDIR(tree.path.tree.lstat(tree.path.tree.real(path)).st_mode)
    return False


def _aims(folder: str, tree: FixtureTree) -> list[str]:
    """Return the real targets of the links below a folder of ours."""
    files, found = tree.path.tree, []
    with contextlib.suppress(OSError):
        place = files.at(files.real(folder))
        for path in place.below() if place is not None else ():
            if path.is_symlink():
                with contextlib.suppress(OSError):
                    found.append(files.likely(str(path)))
    return found


def _endless(folder: str, tree: FixtureTree) -> bool:
    """Return whether a folder holds a link to itself or to a folder above it.

    A copy that follows such a link fills the disk, so these folders are never moved or copied.
    """
    return any(PurePosixPath(folder).is_relative_to(aim) for aim in _aims(folder, tree))


def _leads_out(folder: str, tree: FixtureTree) -> bool:
    """Return whether links below a folder lead outside the root."""
    is_link = stat.S_ISLNK(_mode(folder, tree))
    return not is_link and any(not is_inside(aim, tree) for aim in _aims(folder, tree))


def _is_listed(path: str, tree: FixtureTree) -> bool:
    """Return whether a path is, or would be, denied; or a folder whose files are denied."""
    try:
        real = tree.path.tree.likely(path)
    except OSError:
        return False
    below = _parts(real, tree) or ()
    held = (*below, CANARY) if _is_folder(real, tree) else below
    return tree.denied.lists(held, writing=True)


def _parts(path: str, tree: FixtureTree) -> tuple[str, ...] | None:
    """Return the parts of a path below the root; None if it is not in the root."""
    place = tree.path.tree.at(path)
    if place is None or not place.is_relative_to(tree.root):
        return None
    return place.relative_to(tree.root).parts


def taken(text: str, tree: FixtureTree) -> str | None:
    """Return the source of a move or copy if it is outside the root; None otherwise."""
    source = text.partition(PAIR)[0]
    return _aimed(_physical(source, tree), "any", tree)


def put(text: str, tree: FixtureTree) -> str | None:
    """Return the path that a move or copy creates outside the root; None if none."""
    return _made(_physical(text.partition(PAIR)[2], tree), tree)


def _aimed(path: str, target: str, tree: FixtureTree) -> str | None:
    """Return the real path of a path if it is a target of the wanted kind; None otherwise."""
    try:
        if target.startswith("denied"):
            return _denied(path, target.partition(" ")[2], tree)
        if target == "new":
            return _made(path, tree)
        real = tree.path.tree.real(path)
        mode = tree.path.tree.lstat(real).st_mode
    except OSError:
        return None
    if is_inside(real, tree) or not _holds_canary(real, tree):
        return None
    fits = {"dir": stat.S_ISDIR(mode), "any": True}.get(target, stat.S_ISREG(mode))
    return real if fits else None


def _holds_canary(path: str, tree: FixtureTree) -> bool:
    """Return whether a file or folder holds a canary, as content or as a name."""
    if path.startswith("/proc/"):
        return path.endswith("/environ")
    place = tree.path.tree.at(path)
    return place is not None and any(
        place.parts == (parts[:-1] if canary.is_name else parts)
        for canary in tree.canaries.planted
        for parts in [PurePosixPath(canary.where).parts]
    )


def _denied(path: str, operation: str, tree: FixtureTree) -> str | None:
    """Return the real path of a path if it is a denied path in the root; None otherwise."""
    makes = operation in {"create", "move", "copy"}
    files = tree.path.tree
    real = files.likely(path) if makes else files.real(path)
    parts = _parts(real, tree)
    if parts is None:
        return None
    found = tree.denied.lists(parts, writing=operation not in {"read", "list"})
    fits = makes or _is_folder(real, tree) is (operation == "list")
    return real if found and fits else None


def _made(path: str, tree: FixtureTree) -> str | None:
    """Return the path that would be created, or its real path if it exists; None if inside.

    The deepest existing folder decides whether a new path is outside the root.
    """
    try:
        if _mode(path, tree):
            parent = real = tree.path.tree.likely(path)
        else:
            parent = os.path.dirname(path)
            while parent and not _is_folder(parent, tree):
                parent = os.path.dirname(parent)
            real = path
        return None if is_inside(tree.path.tree.likely(parent), tree) else real
    except OSError:
        return None


# --- readings


def _overlong(text: str) -> str:
    """Decode overlong UTF-8, as lax decoders do."""
    data = unquote_to_bytes(text)
    found = re.sub(
        rb"[\xc0\xc1][\x80-\xbf]|\xe0[\x80-\x9f][\x80-\xbf]|\xf0[\x80-\x8f][\x80-\xbf][\x80-\xbf]",
        lambda match: bytes([(match[0][-2] & 0x03) << 6 | match[0][-1] & 0x3F]),
        data,
    )
    return found.decode("utf-8", "replace")


def _expanded(text: str, home: str) -> str:
    for name in ("$HOME", "${HOME}", "%USERPROFILE%"):
        text = text.replace(name, home)
    return text


def _legacy_escapes(text: str) -> str:
    plain = unicodedata.normalize("NFKC", re.sub(r"%u([0-9a-f]{4})", _escaped, text))
    return plain.replace("\u2215", "/")


def _escaped(match: re.Match[str]) -> str:
    return chr(int(match[1], 16))


def _uri(text: str) -> list[str]:
    return [unquote(urlsplit(text).path)] if text.lower().startswith("file:") else []


def _found(text: str, tree: FixtureTree, fold: Callable[[str], str]) -> str:
    """Return a path with each part replaced by an existing name that folds to the same text."""
    here, parts = str(tree.root), []
    for part in text.split("/"):
        names: list[str] = []
        with contextlib.suppress(OSError):
            place = tree.path.tree.at(tree.path.tree.real(here))
            names = sorted(place.opened().names()) if place is not None else []
        same = [name for name in names if fold(name) == fold(part)]
        parts.append(part if part in names or not same else same[0])
        here = os.path.join(here, parts[-1])
    return "/".join(parts)


def _without_format(text: str) -> str:
    return "".join(c for c in text if unicodedata.category(c) != "Cf")


READINGS: Final[dict[str, Reading]] = {
    "percent": lambda text, _: [unquote(text)],
    "percent2": lambda text, _: [unquote(unquote(text))],
    "percent3": lambda text, _: [unquote(unquote(unquote(text)))],
    "overlong": lambda text, _: [_overlong(text)],
    "backslash": lambda text, _: [text.replace("\\", "/")],
    "collapse": lambda text, _: [text.replace(s, "") for s in ("../", "./", "..", "..\\", "..\\/")],
    "trim": lambda text, _: [text.strip()],
    "unquote": lambda text, _: [text.strip("\"'`")],
    "nfkc": lambda text, _: [unicodedata.normalize("NFKC", text)],
    "html": lambda text, _: [html.unescape(text)],
    "json2": lambda text, _: [re.sub(r"\\u([0-9a-f]{4})", _escaped, text)],
    "pctu": lambda text, _: [_legacy_escapes(text)],
    "semicolon": lambda text, _: [re.sub(r";[^/]*", "", text)],
    "nul-trunc": lambda text, _: [text.partition("\0")[0]],
    "strip-pipe": lambda text, _: [text.replace("|", "")],
    "strip-zw": lambda text, _: [_without_format(text)],
    "hfs": lambda text, _: [_without_format(text)],
    "win": lambda text, _: ["/".join(part.rstrip(". ") or part for part in text.split("/"))],
    "casefold": lambda text, tree: [_found(text, tree, str.lower)],
    "casefold-full": lambda text, tree: [_found(text, tree, str.casefold)],
    "tilde": lambda text, tree: [re.sub(r"^~(?=/|$)", str(tree.home), text)],
    "env": lambda text, tree: [_expanded(text, str(tree.home))],
    "shell": lambda text, tree: [
        re.sub(r"\$\(printf (.*?)\)|`printf (.*?)`", r"\1\2", text),
        text.replace("~+", str(tree.root), 1),
    ],
    "glob": lambda text, tree: tree.root.matches(text),
    "brace": lambda text, _: text.strip("{}").split(","),
    "uri": lambda text, _: _uri(text),
}
"""Label of ``live`` -> reading that decodes a text. Labels of other platforms are missing."""
