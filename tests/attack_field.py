"""The file trees that the payloads of ``security_suite`` name, built from ``fixtures.toml``.

Each file has a canary: random bytes that occur nowhere else and so identify the file.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import socket
import stat
import tomllib
from typing import TYPE_CHECKING, Any

from mcp_touchstone.target.deny_list import DEFAULT
from tests.conftest import HERE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SUITE = HERE.parent / "security_suite"
CANARY_NAME = "canary-file.txt"
MARK = "MCPCANARY-"
DENIED = (".git", "node_modules", "__pycache__", ".env", ".vs")


def payloads(*families: str) -> Iterator[dict[str, Any]]:
    """Return the payloads of some files, each with the id of its class."""
    for family in families:
        text = (SUITE / "payloads" / f"{family}.toml").read_text(encoding="utf-8")
        for group in tomllib.loads(text)["class"]:
            for payload in group["payload"]:
                yield {**group, "class": group["id"], **payload}


class Field:
    """A throw-away parent with a root and what surrounds it.

    Attributes:
        root: The directory a server gets.
        outside: A directory beside it that holds canaries.
    """

    def __init__(self, base: Path) -> None:
        self.base = base
        self.root = base / "root"
        self.outside = base / "outside"
        self.sibling = base / "rootEvil"
        self.canary = secrets.token_hex(16)
        for directory in (self.root, self.outside, self.sibling, base / "home"):
            directory.mkdir(parents=True)
        self._places = {
            "outside": self.outside,
            "sibling": self.sibling,
            "base": base,
            "home": base / "home",
            "upper": base / self.root.name.upper(),
        }
        text = (SUITE / "fixtures.toml").read_text(encoding="utf-8")
        for fixture in tomllib.loads(text)["fixture"]:
            if fixture["id"] in ("base", "siblings", "links", "denied", "special"):
                for entry in fixture.get("entry", ()):
                    self._build(entry)
        for payload in payloads("deny"):
            if payload["class"] == "deny.nearmiss" and payload["op"] == "read":
                self._file(self.root / self.fill(payload["payload"]), b"near miss\n")
        self._file(self.root / "p.txt", b"line1\nline2\nline3\n")

    # --- building

    def _build(self, entry: dict[str, Any]) -> None:
        if "path" not in entry or entry.get("at") == "env" or entry["type"] == "name-canary":
            return
        name = self.fill(entry["path"])
        place = (self._places[entry["at"]] if "at" in entry else self.root) / name
        kind = entry["type"]
        if kind == "canary":
            self._file(place, (f"{MARK}{self.canary}-{name}\n" * 4).encode())
        elif kind == "file" and "bytes" not in entry and "mode" not in entry:
            self._file(place, entry.get("text", "x\n").encode())
        elif kind == "symlink" and "target" in entry:
            place.parent.mkdir(parents=True, exist_ok=True)
            if not place.is_symlink():
                place.symlink_to(self.fill(entry["target"]))
        elif kind == "fifo" and hasattr(os, "mkfifo"):
            os.mkfifo(place)
        elif kind == "socket" and hasattr(socket, "AF_UNIX"):
            with socket.socket(socket.AF_UNIX) as listener:
                here = os.open(place.parent, os.O_RDONLY)
                try:
                    listener.bind(f"/proc/self/fd/{here}/{place.name}")
                except OSError:
                    return
                finally:
                    os.close(here)

    @staticmethod
    def _file(place: Path, data: bytes) -> None:
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.is_symlink() or place.is_dir():
            return
        place.write_bytes(data)

    # --- speaking

    def texts(self, template: str) -> Iterator[str]:
        """Return the texts of a payload: one for each name in it."""
        for text in DEFAULT.texts(template):
            yield self.fill(text)

    def fill(self, template: str) -> str:
        """Put this field's names into a payload."""
        template = next(DEFAULT.texts(template))
        values = {
            "root": str(self.root),
            "root_name": self.root.name,
            "root_noslash": str(self.root)[1:],
            "root_real": str(self.root.resolve()),
            "root_upper": str(self.root.with_name(self.root.name.upper())),
            "root_bs": str(self.root).replace("/", "\\"),
            "base": str(self.base),
            "outside": str(self.outside),
            "outside_name": self.outside.name,
            "outside_noslash": str(self.outside)[1:],
            "outside_bs": str(self.outside).replace("/", "\\"),
            "sibling": str(self.sibling),
            "sibling_name": self.sibling.name,
            "canary": CANARY_NAME,
            "canary_nfd": CANARY_NAME,
            "nonce": secrets.token_hex(4),
            "i": "1",
            "pid": str(os.getpid()),
        }
        for name, value in values.items():
            template = template.replace("{" + name + "}", value)
        return template

    # --- looking

    def leaks(self, text: str) -> bool:
        """Return whether the output of a server contains a canary."""
        return self.canary in text

    def forbidden(self) -> dict[str, Any]:
        """Return the paths no call may change: outside the root, or denied inside it."""
        found = {}
        for path in self.base.rglob("*"):
            inside = path.is_relative_to(self.root)
            parts = path.relative_to(self.root if inside else self.base).parts
            if not inside or any(part in (*DENIED, "bin", "obj") for part in parts):
                found[str(path.relative_to(self.base))] = _fact(path)
        return found

    def laundered(self) -> list[str]:
        """Return the files inside the root that hold a canary they did not have before."""
        needle = self.canary.encode()
        return [
            str(path)
            for path in self.root.rglob("*")
            if stat.S_ISREG(path.lstat().st_mode)
            and not any(part in DENIED for part in path.relative_to(self.root).parts)
            and needle in path.read_bytes()
        ]


def _fact(path: Path) -> tuple[Any, ...]:
    found = path.lstat()
    kind = stat.S_IFMT(found.st_mode)
    if kind == stat.S_IFLNK:
        return ("link", str(path.readlink()))
    if kind != stat.S_IFREG:
        return (kind, stat.S_IMODE(found.st_mode))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return (digest, stat.S_IMODE(found.st_mode), found.st_ino, found.st_mtime_ns)
