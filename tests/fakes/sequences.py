"""Guards that fail after several steps or in a race, and good ones."""

import os
import time
from pathlib import Path

from tests.fakes.server import Guard, Refused

ESCAPE = "sequences-escape"


class RemembersChecks(Guard, trips={ESCAPE}, families=("sequences",)):
    """Checks a path once, and trusts it afterwards."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.known: set[str] = set()

    def place(self, text: str, *, writing: bool) -> str:
        if text not in self.known:
            self.strictly(text)
            self.known.add(text)
        return os.path.join(self.root, text)


class ChecksEachTime(Guard, families=("sequences",)):
    """Checks a path each time."""


class ByDescriptor(Guard, tools=("read_file", "write_file"), tiers=("race",)):
    """Opens each component without following links, and uses the opened descriptors."""

    families: tuple[str, ...] = ("races", "sequences")

    def parent(self, text: str) -> tuple[int, str]:
        """Open the folder of a path; return its descriptor and the last name."""
        below = text.removeprefix(self.root).strip("/")
        *folders, name = [part for part in below.split("/") if part not in {"", "."}]
        if ".." in (*folders, name) or (text[:1] == "/" and not text.startswith(self.root + "/")):
            raise Refused("that path is not allowed")
        here = os.open(self.root, os.O_RDONLY)
        for part in folders:
            try:
                deeper = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY, dir_fd=here)
            finally:
                os.close(here)
            here = deeper
        return here, name

    def open(self, text: str, flags: int) -> int:
        here, name = self.parent(text)
        try:
            return os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644, dir_fd=here)
        finally:
            os.close(here)

    def read_file(self, path: str) -> str:
        with os.fdopen(self.open(path, os.O_RDONLY), encoding="utf-8", errors="replace") as file:
            return file.read()

    def write_file(self, path: str, content: str) -> str:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        with os.fdopen(self.open(path, flags), "w", encoding="utf-8") as file:
            file.write(content)
        return "written"


class ReadsAfterTheCheck(ByDescriptor, trips={"races-read"}, families=("races",)):
    """Resolves and checks, and shortly after opens by name, to read."""

    def read_file(self, path: str) -> str:
        self.strictly(path)
        time.sleep(0.0005)
        return Path(os.path.join(self.root, path)).read_text(encoding="utf-8", errors="replace")


class WritesAfterTheCheck(ByDescriptor, trips={"races-write"}, families=("races",)):
    """Resolves and checks, and shortly after opens by name, to write."""

    def write_file(self, path: str, content: str) -> str:
        self.strictly(path)
        time.sleep(0.0005)
        Path(os.path.join(self.root, path)).write_text(content, encoding="utf-8")
        return "written"
