"""Servers that do several calls at once, with one fault each; and a good one."""

import os
import secrets
import threading
import time
from pathlib import Path
from typing import Any

from tests.fakes.server import Guard, Refused

MOMENT = 0.1
"""Seconds in which another call can come between."""


class AtOnce(Guard, promises=("whole-writes",), tools=("read_file", "write_file", "edit_file")):
    """Runs each call on a thread of its own, and replaces the file by a new one."""

    families: tuple[str, ...] = ("crowds",)

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.speaking = threading.Lock()
        self.changing = threading.Lock()

    def take(self, message: Any) -> None:
        if isinstance(message, dict) and message.get("method") == "tools/call":
            threading.Thread(target=super().take, args=(message,)).start()
        else:
            super().take(message)

    def emit(self, answer: dict[str, Any]) -> None:
        with self.speaking:
            super().emit(answer)

    def put(self, place: Path, text: str) -> None:
        beside = place.with_name(f"{place.name}.{secrets.token_hex(4)}")
        try:
            beside.write_text(text, encoding="utf-8")
            os.replace(beside, place)
        finally:
            beside.unlink(missing_ok=True)

    def write_file(self, path: str, content: str) -> str:
        self.put(Path(self.place(path, writing=True)), content)
        return "written"

    def edit_file(self, path: str, old_text: str, new_text: str) -> str:
        with self.changing:
            return self.edit(Path(self.place(path, writing=True)), old_text, new_text)

    def edit(self, place: Path, old: str, new: str) -> str:
        before = place.read_text(encoding="utf-8")
        if before.count(old) != 1:
            raise Refused("that text does not stand there once")
        self.put(place, before.replace(old, new))
        return "edited"


class WritesInPlace(AtOnce, trips={"crowds-whole"}):
    """Truncates the file and writes it in parts, without a lock."""

    def write_file(self, path: str, content: str) -> str:
        with Path(self.place(path, writing=True)).open("w", encoding="utf-8") as file:
            time.sleep(MOMENT)
            file.write(content)
        return "written"


class LosesConcurrentEdits(AtOnce, trips={"crowds-confirmed"}):
    """Writes back its edit after a pause, without a lock."""

    def edit_file(self, path: str, old_text: str, new_text: str) -> str:
        return self.edit(Path(self.place(path, writing=True)), old_text, new_text)

    def put(self, place: Path, text: str) -> None:
        time.sleep(MOMENT)
        super().put(place, text)


class ConfirmsAnything(AtOnce):
    """Confirms edits that it did not make, also of a single call."""

    def edit(self, place: Path, old: str, new: str) -> str:
        before = place.read_text(encoding="utf-8")
        if old in before:
            self.put(place, before.replace(old, new))
        return "edited"
