"""Servers that are killed during a write, with one fault each; and a good one."""

import os
import secrets
import time

from tests.fakes.crowds import MOMENT
from tests.fakes.sequences import ByDescriptor
from tests.fakes.server import Refused

PARTS = 10
LONG = 1000
"""Characters of a content that is short."""
"""Parts in which a file is written slowly."""

NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL


class WritesANewFileSlowly(ByDescriptor, promises=("whole-writes",), families=("storage",)):
    """Writes a new file slowly, and replaces the old one at once."""

    def write_file(self, path: str, content: str) -> str:
        here, name = self.parent(path)
        beside = f"{name}.{secrets.token_hex(4)}"
        try:
            slowly(os.open(beside, NEW, 0o644, dir_fd=here), content)
            self.put(here, beside, name)
        except OSError:
            os.unlink(beside, dir_fd=here)
            raise
        finally:
            os.close(here)
        return "written"

    def put(self, here: int, beside: str, name: str) -> None:
        os.replace(beside, name, src_dir_fd=here, dst_dir_fd=here)


class RemovesTheOldFirst(WritesANewFileSlowly, trips={"storage-killed"}):
    """Removes the old file shortly before the new one takes its place."""

    def put(self, here: int, beside: str, name: str) -> None:
        if name in os.listdir(here):
            os.unlink(name, dir_fd=here)
        time.sleep(MOMENT)
        super().put(here, beside, name)


class CopiesIntoTheFile(WritesANewFileSlowly, trips={"storage-killed"}):
    """Writes a new file, which may fail, then copies it into the old one in parts."""

    def put(self, here: int, beside: str, name: str) -> None:
        with os.fdopen(os.open(beside, os.O_RDONLY, dir_fd=here), encoding="utf-8") as file:
            content = file.read()
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        slowly(os.open(name, flags, 0o644, dir_fd=here), content)
        os.unlink(beside, dir_fd=here)


class TruncatesAndWritesSlowly(WritesANewFileSlowly, trips={"storage-full", "storage-killed"}):
    """Truncates the file, then writes it in parts."""

    def write_file(self, path: str, content: str) -> str:
        slowly(self.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), content)
        return "written"


class TakesSmallFilesOnly(TruncatesAndWritesSlowly, trips={"storage-killed"}):
    """Truncates the file and writes it in parts; refuses more than a hundred thousand bytes."""

    def write_file(self, path: str, content: str) -> str:
        if len(content) > 100_000:
            raise Refused("that is too long")
        return super().write_file(path, content)


class StampsFiles(CopiesIntoTheFile, trips=set(), promises=()):
    """Adds a new stamp to each long file, so the right content is unknown."""

    def write_file(self, path: str, content: str) -> str:
        stamp = secrets.token_hex(8) if len(content) > LONG else ""
        return super().write_file(path, content + stamp)


def slowly(descriptor: int, text: str) -> None:
    """Write a file in parts, with a little time between them."""
    size = len(text) // PARTS + 1
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        for start in range(0, len(text), size):
            file.write(text[start : start + size])
            file.flush()
            time.sleep(MOMENT / PARTS)
