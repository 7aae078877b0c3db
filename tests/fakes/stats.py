"""Servers that describe files, with one fault each; and good ones."""

import os
from datetime import UTC, datetime

from tests.fakes.server import Guard, Refused


class DescribesFiles(Guard, families=("stats",)):
    """Describes the files of its root; what leads outside is refused."""

    tools: tuple[str, ...] = ("read_file", "get_file_info", "list_sizes")

    def get_file_info(self, path: str) -> str:
        known = os.stat(self.described(path))
        day = datetime.fromtimestamp(known.st_mtime, UTC).isoformat()
        return f"size: {known.st_size}\nmodified: {day}"

    def list_sizes(self, path: str) -> str:
        folder = self.strictly(path)
        found = []
        for name in sorted(os.listdir(folder)):
            size = self.sized(os.path.join(folder, name))
            found.append(f"{name} {size / 1024:.1f} KB")
        return "\n".join(found)

    def described(self, path: str) -> str:
        return self.strictly(path)

    def sized(self, path: str) -> int:
        return os.lstat(path).st_size


class DescribesLinks(DescribesFiles):
    """Describes links themselves, with the text of their targets."""

    def get_file_info(self, path: str) -> str:
        whole = os.path.join(self.strictly(os.path.dirname(path)), os.path.basename(path))
        known = os.lstat(whole)
        target = f"\ntarget: {os.readlink(whole)}" if os.path.islink(whole) else ""
        return f"size: {known.st_size}\nmodified: {known.st_mtime}{target}"


class SizesOfTargets(DescribesFiles, trips={"stats-links"}):
    """Lists the sizes of what links lead to."""

    def sized(self, path: str) -> int:
        return os.stat(path).st_size if os.path.exists(path) else 0


class DescribesTargets(DescribesFiles, trips={"stats-links"}):
    """Checks the path as text, and describes what a link in it leads to."""

    def described(self, path: str) -> str:
        plain = os.path.normpath(os.path.join(self.root, path))
        if not plain.startswith(self.root + os.sep):
            raise Refused("outside")
        return plain


class DescribesAnyPath(DescribesFiles, trips={"stats-paths"}):
    """Describes links themselves, and files by any path."""

    def described(self, path: str) -> str:
        whole = os.path.join(self.root, path)
        return whole if not self.has_links(path) else self.strictly(path)


class NamesTargets(DescribesFiles, trips={"stats-names"}):
    """Names in its refusal what a link leads to."""

    def described(self, path: str) -> str:
        try:
            return self.strictly(path)
        except Refused as error:
            real = os.path.realpath(os.path.join(self.root, path))
            raise Refused(f"{real} is outside") from error
