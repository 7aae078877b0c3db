"""Servers with one fault in the protocol; and good ones. Their guard is correct."""

import contextlib
import json
import os
import select
import sys
from pathlib import Path
from typing import Any

from tests.fakes.server import Guard, Refused, answered, fakes, has

BIG = 4 << 20
WAITING: dict[Any, str] = {}


class Talks(Guard, families=()):
    """A base for faults of the protocol."""


class TalksWell(Talks, families=("lines", "messages", "load")):
    """A correct server that is tested with all threats of the protocol."""


class ExitsOnSurrogates(Talks, trips={"lines-strings"}):
    """Prints the request to a log that accepts only UTF-8."""

    def parse(self, raw: bytes) -> list[Any]:
        found = super().parse(raw)
        if raw.isascii() and b"\\u" in raw:
            "".join(_strings(found)).encode()
        return found


class LooksForDotsInTheLine(Talks, trips={"lines-strings"}):
    """Checks for climbs in the raw line, and opens the decoded path."""

    raw = b""

    def parse(self, raw: bytes) -> list[Any]:
        self.raw = raw
        return super().parse(raw)

    def place(self, text: str, *, writing: bool) -> str:
        if "../" in text and b"../" not in self.raw:
            return os.path.join(self.root, text)
        return self.strictly(text)


class ExitsOnDepth(Talks, trips={"lines-depth"}):
    """Parses by recursion and does not catch the error."""

    def parse(self, raw: bytes) -> list[Any]:
        try:
            return [json.loads(raw)]
        except ValueError:
            return []


class ExitsOnOddArguments(Talks, trips={"lines-values"}):
    """Uses arguments as an object without a check."""

    def take(self, message: Any) -> None:
        params = message.get("params") if isinstance(message, dict) else None
        if isinstance(params, dict) and isinstance(params.get("arguments"), str | int):
            sys.exit(1)
        super().take(message)


class DeafAfterABlankLine(Talks):
    """Answers nothing once it has read an empty line."""

    def serve(self) -> None:
        for raw in sys.stdin.buffer:
            if not raw.strip():
                sys.stdin.buffer.read()
            for message in self.parse(raw):
                self.take(message)


class LeavesOnInvalidRequests(Talks):
    """Ends at each line that is no request of a method it knows."""

    def parse(self, raw: bytes) -> list[Any]:
        found = json.loads(raw)
        if not isinstance(found, dict) or found.get("jsonrpc") != "2.0":
            sys.exit(1)
        return [found]


class EditsOnly(Talks, tools=("read_file", "edit_file")):
    """Makes no files."""


class UnescapesBeforeItSplits(Talks, trips={"messages-inside"}):
    """Passes lines on unescaped to a worker that splits them again."""

    def parse(self, raw: bytes) -> list[Any]:
        inner = raw.decode("utf-8", "replace").replace("\\n", "\n").replace('\\"', '"')
        more = [one for line in inner.split("\n")[1:] for one in Talks.parse(self, line.encode())]
        return [*super().parse(raw), *(m for m in more if _is_probe(m))]


class LooksForTheNextBrace(Talks, trips={"messages-inside"}):
    """Continues at the next brace after an unreadable line."""

    def parse(self, raw: bytes) -> list[Any]:
        found, text = super().parse(raw), raw.decode("utf-8", "replace")
        if found or len(text) > 100_000:
            return found
        for at in [n for n, char in enumerate(text) if char == "{"]:
            with contextlib.suppress(ValueError, RecursionError):
                one = json.JSONDecoder().raw_decode(text[at:])[0]
                if "jsonrpc" in one:
                    return [one]
        return []


class PrintsRequests(Talks, trips={"messages-echoed"}):
    """Prints the requested path for debugging."""

    def run(self, tool: str, given: dict[str, Any]) -> str:
        path = given.get("path")
        if isinstance(path, str) and len(path) < BIG and "jsonrpc" in path:
            sys.stdout.write(f"{tool} {path}\n")
        return super().run(tool, given)


class PrintsFiles(Talks, trips={"messages-echoed"}):
    """Prints the files it reads."""

    def read_file(self, path: str) -> str:
        found = super().read_file(path)
        if "jsonrpc" in found:
            sys.stdout.write(found)
        return found


class ConcatenatesErrors(Talks, trips={"messages-echoed"}):
    """Writes errors by string concatenation."""

    def emit(self, answer: dict[str, Any]) -> None:
        if isinstance(answer["id"], str) and "\n" in answer["id"]:
            sys.stdout.write('{"jsonrpc":"2.0","id":"' + answer["id"] + '","result":{}}\n')
            sys.stdout.flush()
            return
        super().emit(answer)


class ChecksTheFirstOfTwo(Talks, trips={"messages-keys"}):
    """Checks the first of two equal members and opens the last."""

    def parse(self, raw: bytes) -> list[Any]:
        try:
            return [json.loads(raw, object_pairs_hook=_both)]
        except (ValueError, RecursionError):
            return []

    def read_file(self, path: str, **more: Any) -> str:
        self.strictly(path)
        last = more.get("path!", path)
        return Path(os.path.join(self.root, last)).read_text(encoding="utf-8", errors="replace")


class RunsNotifications(Talks, trips={"messages-without-id"}):
    """Dispatches every message with a method, and answers if there is an id."""

    def take(self, message: Any) -> None:
        if _is_call(message) and message.get("id") is None:
            answered(self, message)
        super().take(message)


class FailsOnUnknownAnswers(Talks, trips={"messages-misplaced"}):
    """Looks up every answer in a table, also unsolicited ones."""

    def take(self, message: Any) -> None:
        if isinstance(message, dict) and "result" in message and "method" not in message:
            WAITING.pop(str(message.get("id")))
        super().take(message)


class RunsBeforeTheHandshake(Talks, trips={"messages-early"}):
    """Runs calls before the handshake."""

    def take(self, message: Any) -> None:
        self.opened = True
        super().take(message)


class ExitsOnLongLines(Talks, trips={"load-oversize"}):
    """Exits if a line is longer than its buffer."""

    def parse(self, raw: bytes) -> list[Any]:
        if len(raw) > BIG:
            os._exit(1)
        return super().parse(raw)


class CopiesLongLines(Talks, trips={"load-memory"}):
    """Keeps a message forty times in memory."""

    copies: bytes | bytearray = b""

    def parse(self, raw: bytes) -> list[Any]:
        self.copies = bytearray(b"x") * (len(raw) * 40) if len(raw) > BIG else b""
        return super().parse(raw)


class HasAShortQueue(Talks, trips={"load-flood"}):
    """Reads much at once and keeps only as many requests as its queue can hold."""

    def serve(self) -> None:
        rest = b""
        while chunk := os.read(0, 1 << 20):
            *lines, rest = (rest + chunk).split(b"\n")
            pings = 0
            for line in lines:
                pings += line.endswith(b'"method":"ping"}')
                if pings <= 600 or not line.endswith(b'"method":"ping"}'):
                    for message in self.parse(line):
                        self.take(message)


class ExitsOnABlockedWrite(Talks, trips={"load-unread"}):
    """Exits if answers are not read for a while."""

    def emit(self, answer: dict[str, Any]) -> None:
        data = json.dumps(answer).encode() + b"\n"
        if "tools" not in (answer.get("result") or {}):
            super().emit(answer)
            return
        os.set_blocking(1, False)
        while data:
            if not select.select([], [1], [], 0.2)[1]:
                os._exit(1)
            data = data[os.write(1, data) :]
        os.set_blocking(1, True)


class ListsTwice(Talks, families=("load",)):
    """Answers each list of tools twice, also if it is read; a clause names that."""

    def emit(self, answer: dict[str, Any]) -> None:
        for _ in range(1 + ("tools" in (answer.get("result") or {}))):
            super().emit(answer)


class ListsOverSeveralLines(Talks, families=("load",)):
    """Writes each list of tools as indented JSON; a clause names that."""

    def emit(self, answer: dict[str, Any]) -> None:
        if "tools" in (answer.get("result") or {}):
            print(json.dumps(answer, indent=1), flush=True)
        else:
            super().emit(answer)


class ExitsOnOddCancellations(Talks, trips={"load-cancel"}):
    """Uses a cancelled id as a key without a check."""

    def take(self, message: Any) -> None:
        if isinstance(message, dict) and message.get("method") == "notifications/cancelled":
            WAITING.get((message.get("params") or {}).get("requestId"))
        super().take(message)


class AnswersWhatIsCancelledAgain(Talks, trips={"load-cancel"}):
    """Answers a request, and once more when it is cancelled."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.answered: set[Any] = set()

    def emit(self, answer: dict[str, Any]) -> None:
        self.answered.add(answer["id"])
        super().emit(answer)

    def take(self, message: Any) -> None:
        if isinstance(message, dict) and message.get("method") == "notifications/cancelled":
            request = (message.get("params") or {}).get("requestId")
            if isinstance(request, int) and request in self.answered:
                self.emit({"jsonrpc": "2.0", "id": request, "result": {}})
        super().take(message)


class LogsRefusals(Talks, trips={"load-stderr"}):
    """Writes a line to stderr for each refusal before it answers."""

    def refusal(self, text: str, arguments: dict[str, Any]) -> dict[str, Any]:
        os.write(2, text[:300].encode("utf-8", "replace").ljust(400) + b"\n")
        return super().refusal(text, arguments)


class OpensBeforeItLooks(Talks, trips={"load-descriptors"}):
    """Opens the root first and does not close it if the file is missing."""

    def read_file(self, path: str) -> str:
        here = os.open(self.root, os.O_RDONLY)
        found = super().read_file(path)
        os.close(here)
        return found


class TakesEachReadForALine(Talks, trips={"lines-pieces"}):
    """Treats the data of one read as complete lines."""

    def serve(self) -> None:
        while data := os.read(0, 1 << 20):
            while not data.endswith(b"\n") and select.select([0], [], [], 0.05)[0]:
                data += os.read(0, 1 << 20)
            for raw in data.split(b"\n"):
                for message in self.parse(raw):
                    self.take(message)


class DecodesEachRead(Talks, trips={"lines-pieces"}):
    """Decodes the data of each read, and exits at half a character."""

    def serve(self) -> None:
        text = ""
        while data := os.read(0, 1 << 20):
            try:
                text += data.decode()
            except UnicodeDecodeError as error:
                if error.reason == "unexpected end of data":
                    return
                text += data.decode("utf-8", "replace")
            *lines, text = text.split("\n")
            for line in lines:
                for message in self.parse(line.encode()):
                    self.take(message)


class SpinsOnHalfALine(Talks, trips={"load-idle"}):
    """Polls for the rest of a line without a pause."""

    def serve(self) -> None:
        rest = b""
        while True:
            if not select.select([0], [], [], 0 if rest else None)[0]:
                continue
            data = os.read(0, 1 << 20)
            if not data:
                return
            *lines, rest = (rest + data).split(b"\n")
            for raw in lines:
                for message in self.parse(raw):
                    self.take(message)


class CopiesLongLinesOnce(CopiesLongLines, trips=set(), families=("load",)):
    """Keeps a message forty times in memory in one process of several."""

    def parse(self, raw: bytes) -> list[Any]:
        mark = Path(self.root, ".copied")
        if len(raw) <= BIG or (mark.exists() and not self.copies):
            return Talks.parse(self, raw)
        mark.touch()
        return super().parse(raw)


class ReportsUnreadableLines(TalksWell):
    """Answers each unreadable line with an error without an id."""

    def parse(self, raw: bytes) -> list[Any]:
        found = super().parse(raw)
        if not found and raw.strip():
            self.emit({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "no"}})
        return found


class RefusesUnknownMembers(TalksWell):
    """Refuses a ping with additional members."""

    def take(self, message: Any) -> None:
        if isinstance(message, dict) and message.get("method") == "ping" and message.get("params"):
            error = {"code": -32602, "message": "ping takes nothing"}
            self.emit({"jsonrpc": "2.0", "id": message.get("id"), "error": error})
        else:
            super().take(message)


class RepeatsAllInErrors(TalksWell):
    """Repeats the request in every refusal, and refuses long lines."""

    def parse(self, raw: bytes) -> list[Any]:
        return [] if len(raw) > BIG else super().parse(raw)

    def refusal(self, text: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return super().refusal(f"{text}: {arguments}", arguments)


class LogsIfThereIsRoom(TalksWell):
    """Writes a line to stderr for each refusal, unless its pipe is full."""

    def refusal(self, text: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if select.select([], [2], [], 0)[1]:
            os.write(2, b"refused\n")
        return super().refusal(text, arguments)


class AnswersCallsWithoutAnId(TalksWell):
    """Runs a call with the id null, and answers it."""

    def take(self, message: Any) -> None:
        if _is_call(message) and message.get("id", 0) is None:
            self.emit({"jsonrpc": "2.0", "id": None, **answered(self, message)})
        super().take(message)


class RefusesStrangeValues(TalksWell):
    """Accepts only strings as arguments."""

    def run(self, tool: str, given: dict[str, Any]) -> str:
        if not all(isinstance(value, str) for value in given.values()):
            raise Refused("strings only")
        return super().run(tool, given)


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [one for pair in value.items() for part in pair for one in _strings(part)]
    if isinstance(value, list):
        return [one for part in value[:9] for one in _strings(part)]
    return []


def _is_call(message: Any) -> bool:
    return isinstance(message, dict) and message.get("method") == "tools/call"


def _is_probe(message: Any) -> bool:
    return isinstance(message, dict) and message.get("method") == "ping"


def _both(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        found[f"{key}!" if key in found else key] = value
    return found


fakes(__name__)(
    ExitsOnBadUtf8=has(
        Talks,
        "Decodes strictly and does not catch the error.",
        "lines-broken",
        parse=lambda self, raw: Talks.parse(self, raw.decode().encode()),
    ),
    JoinsLists=has(
        Talks,
        "Joins a list to a path, which is not checked.",
        "lines-values",
        place=lambda self, text, *, writing: (
            os.path.join(self.root, *text) if isinstance(text, list) else self.strictly(text)
        ),
    ),
)
