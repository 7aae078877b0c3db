"""Guards with a fault about links, and about bases; and good ones."""

import os
import threading
import time
from typing import Any

from tests.fakes.server import STRING, Guard, Refused, fakes, has

READ = "links-read"
WRITE = "links-write"
WALK = "links-walk"
BASE = "bases-argument"
SMUGGLED = "bases-smuggled"


class Lexical(Guard):
    """Has a check that ignores links."""

    def lexically(self, text: str) -> str:
        path = os.path.normpath(os.path.join(self.root, text))
        if path != self.root and not path.startswith(self.root + os.sep):
            raise Refused(f"{text} is outside")
        return path


class ChecksTheLastComponentOnly(Lexical, trips={READ, WRITE, "moves-in", "moves-out"}):
    """Refuses a path that is a link and follows a path through a link."""

    def place(self, text: str, *, writing: bool) -> str:
        path = self.lexically(text)
        if os.path.islink(path):
            raise Refused(f"{text} is a link")
        return path


class TrustsDanglingLinks(Lexical, trips={WRITE}):
    """Treats a dangling link as a missing file, and creates its target."""

    def place(self, text: str, *, writing: bool) -> str:
        path = self.lexically(text)
        if writing and not os.path.exists(path):
            return os.path.join(self.strictly(os.path.dirname(path)), os.path.basename(path))
        return self.strictly(text)


class WalksThroughLinks(Guard, trips={WALK}):
    """Checks the start of a listing and follows every link below it."""

    def list_directory(self, path: str) -> str:
        found = []
        for name in sorted(os.listdir(top := self.strictly(path))):
            found.append(name)
            if os.path.isdir(below := os.path.join(top, name)):
                found += os.listdir(below)
        return "\n".join(found)


class WalksEndlessly(WalksThroughLinks):
    """Follows links in a listing, without an end if one leads to its top."""

    def list_directory(self, path: str) -> str:
        place = self.place(path, writing=False)
        if any(os.path.realpath(one.path) == "/" for one in os.scandir(place)):
            time.sleep(3600)
        return super().list_directory(path)


class TrustsTheBaseOfTheCall(Guard, trips={BASE}):
    """Checks the path against the base of the call."""

    def schema(self, tool: str) -> dict[str, Any]:
        known = super().schema(tool)
        reads = tool in {"read_file", "list_directory"}
        return known | {"properties": known["properties"] | ({"cwd": STRING} if reads else {})}

    def run(self, tool: str, given: dict[str, Any]) -> str:
        base = given.pop("cwd", None)
        if base is None:
            return super().run(tool, given)
        return str(getattr(type(self)(os.path.join(self.root, base)), tool)(**given))


class TakesOptionsFromCalls(Guard, trips={SMUGGLED}):
    """Merges the arguments of a call into its options."""

    def run(self, tool: str, given: dict[str, Any]) -> str:
        known = self.schema(tool)["properties"]
        self.unsafe = bool(given.get("unsafe"))
        return super().run(tool, {k: v for k, v in given.items() if k in known})

    def place(self, text: str, *, writing: bool) -> str:
        return os.path.join(self.root, text) if self.unsafe else self.strictly(text)


class OpensPipes(Guard, trips={"special-pipes"}):
    """Opens any file, also a pipe, and waits for it."""

    def read_file(self, path: str) -> str:
        with open(self.strictly(path), encoding="utf-8", errors="replace") as file:
            return file.read()


class WaitsInThreads(OpensPipes):
    """Makes each call in a thread of its own, so a read that waits for ever holds up no other."""

    def take(self, message: Any) -> None:
        threading.Thread(target=super().take, args=(message,), daemon=True).start()


class ReadsPipesInThreads(WaitsInThreads, trips=set()):
    """Opens a pipe too, in a thread of its own, and does not wait for what is written to it."""

    def read_file(self, path: str) -> str:
        flags = os.O_RDONLY | os.O_NONBLOCK
        with open(os.open(self.strictly(path), flags), encoding="utf-8", errors="replace") as file:
            return file.read()


class TrustsProc(Guard, trips={"special-procfs"}):
    """Allows paths below /proc, to show the state of the system."""

    def place(self, text: str, *, writing: bool) -> str:
        return text if text.startswith("/proc/") and not writing else self.strictly(text)

    def read_file(self, path: str) -> str:
        place = self.place(path, writing=False)
        return super().read_file(path) if not os.path.isfile(place) else open(place).read()


class FollowsNoLink(Lexical):
    """Refuses every path through a link."""

    def place(self, text: str, *, writing: bool) -> str:
        path = self.lexically(text)
        if self.has_links(text) or os.path.realpath(path) != path:
            raise Refused(f"{text} goes through a link")
        return path


class ReplacesLinks(Guard):
    """Writes a new file and renames it: a link is replaced, not followed."""

    def write_file(self, path: str, content: str) -> str:
        folder, name = os.path.split(path)
        place = os.path.join(self.strictly(folder or "."), name)
        if name in {"", ".", ".."}:
            raise Refused("that is no name")
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place + ".part", "w", encoding="utf-8") as part:
            part.write(content)
        os.replace(place + ".part", place)
        return "written"


class ChecksTheBase(TrustsTheBaseOfTheCall, trips=set()):
    """Checks the base of the call against the root, then the path against the root."""

    def run(self, tool: str, given: dict[str, Any]) -> str:
        base = self.strictly(given.pop("cwd", "."))
        given["path"] = os.path.join(base, given["path"]) if "path" in given else ""
        return str(getattr(self, tool)(**{k: v for k, v in given.items() if v}))


fakes(__name__)(
    FollowsLinks=has(
        Lexical,
        "Normalises the path, compares it correctly, and follows links when it opens it.",
        READ,
        WRITE,
        "moves-in",
        "moves-out",
        place=lambda self, text, *, writing: self.lexically(text),
    ),
    FollowsLinksToRead=has(
        Lexical,
        "Resolves links only for writes.",
        READ,
        place=lambda self, text, *, writing: (
            self.strictly(text) if writing else self.lexically(text)
        ),
    ),
    FollowsLinksToWrite=has(
        Lexical,
        "Resolves links only for reads.",
        WRITE,
        tools=("read_file", "list_directory", "write_file", "edit_file", "make_directory"),
        place=lambda self, text, *, writing: (
            self.lexically(text) if writing else self.strictly(text)
        ),
    ),
)
