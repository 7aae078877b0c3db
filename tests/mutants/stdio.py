"""Servers that break a rule of basic/stdio: purity, framing, encoding."""

import json
import os
from typing import Any

from tests.mutants.kit import META, MODERN, Fault, Json, Out, encode, has, mutant, mutants, params


def compact(message: Any) -> str:
    """Write a message as ASCII, with escapes for the rest."""
    return json.dumps(message, separators=(",", ":"))


def is_listing(request: Json) -> bool:
    """Whether a request asks for the tools."""
    return request.get("method") == "tools/list"


mutants("stdio-stdout-only-messages", of=Fault)(
    PrintsABanner=has(
        "Prints a greeting to stdout before it serves.",
        start=lambda self: self.emit(b"filesystem server 1.0 running on stdio\n"),
    ),
    SaysGoodbye=has(
        "Prints a farewell to stdout when its input ends.",
        "2024-11-05",
        end=lambda self: self.emit(b"\x1b[32mbye\x1b[0m\n"),
    ),
    StartsWithAByteOrderMark=has(
        "Begins its output with a byte order mark, like a Windows text stream.",
        "2025-03-26",
        start=lambda self: self.emit(b"\xef\xbb\xbf"),
    ),
)


@mutant("stdio-stdout-only-messages", revision=MODERN)
class LogsToStdout(Fault):
    """Writes a log line to stdout each time the tools are listed."""

    def said(self, message: Any, request: Json) -> Out:
        log = b"[INFO] tools were listed\n" if is_listing(request) else b""
        return log + encode(message)


@mutant("stdio-stdout-only-messages", revision="2025-06-18")
class FramesLikeALanguageServer(Fault):
    """Writes a Content-Length header before each message, and no line feed after it."""

    def said(self, message: Any, request: Json) -> Out:
        body = encode(message).rstrip(b"\n")
        return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


@mutant("stdio-stdout-only-messages")
class WritesNotANumber(Fault):
    """Writes a NaN, which is the default of Python's json."""

    def said(self, message: Any, request: Json) -> Out:
        if is_listing(request) and "result" in message:
            message["result"]["_meta"] = {"com.example/load": float("nan")}
        return message  # type: ignore[no-any-return]


mutants("stdio-stdout-only-messages", of=Fault)(
    WritesABareScalar=has(
        "Prints the return value of a handler: JSON that is not a message.",
        said=lambda self, message, request: (
            encode(message) + (b"true\n" if is_listing(request) else b"")
        ),
    )
)
mutants("stdio-stdout-only-messages", of=Fault, outcome="warn")(
    EndsMessagesWithABlankLine=has(
        "Ends each message with two line feeds.",
        said=lambda self, message, *_: encode(message) + b"\n",
    )
)


@mutant("stdio-stdout-only-messages", outcome="warn")
class SendsAnUndefinedNotification(Fault):
    """Sends an undefined notification."""

    def said(self, message: Any, request: Json) -> Out:
        beat = {"jsonrpc": "2.0", "method": "notifications/heartbeat"}
        listed = is_listing(request) and "result" in message
        return encode(message) + (encode(beat) if listed else b"")


mutants("stdio-no-embedded-newlines", of=Fault)(
    PrettyPrints=has(
        "Writes its messages indented, over several lines.",
        said=lambda self, message, *_: json.dumps(message, indent=2).encode() + b"\n",
    )
)
mutants("stdio-no-embedded-newlines", of=Fault, revision=MODERN)(
    PrettyPrintsListsOnly=has(
        "Writes only the list of tools over several lines.",
        said=lambda self, message, request: (
            json.dumps(message, indent="\t").encode() + b"\n" if is_listing(request) else message
        ),
    )
)
mutants("stdio-newline-terminated", of=Fault)(
    OmitsLineFeeds=has(
        "Writes messages without line feeds.",
        said=lambda self, message, *_: encode(message).rstrip(b"\n"),
    )
)


@mutant("stdio-newline-terminated", startup=3.0)
class NeverFlushes(Fault):
    """Buffers its output until its input ends."""

    buffer = b""

    def said(self, message: Any, request: Json) -> Out:
        self.buffer += encode(message)
        return None

    def end(self) -> None:
        self.emit(self.buffer)


mutants("stdio-newline-terminated", of=Fault, outcome="warn")(
    OmitsTheLastLineFeed=has(
        "Ends its output with a message without a line feed.",
        end=lambda self: self.emit(b'{"jsonrpc":"2.0","id":"last","method":"ping"}'),
    )
)
mutants("stdio-utf8-output", of=Fault)(
    WritesUtf16=has(
        "Writes UTF-16 with a byte order mark, like a redirected PowerShell.",
        start=lambda self: self.emit(b"\xff\xfe"),
        said=lambda self, message, *_: encode(message).decode().encode("utf-16-le"),
    ),
    WritesUtf16BigEndian=has(
        "Writes UTF-16 in big-endian order.",
        MODERN,
        said=lambda self, message, *_: encode(message).decode().encode("utf-16-be"),
    ),
    WritesOnlyAByteOrderMark=has(
        "Writes the byte order mark of UTF-16 and exits.",
        "2025-03-26",
        end=lambda self: self.emit(b"\xff\xfe"),
    ),
)


@mutant("stdio-utf8-output", revision="2025-03-26")
class WritesLatin1(Fault):
    """Writes Latin-1 if it has the characters, like Python in a Windows locale."""

    def said(self, message: Any, request: Json) -> Out:
        try:
            return encode(message).decode().encode("latin-1")
        except UnicodeEncodeError:
            return message  # type: ignore[no-any-return]


def _decoded_in(size: int, message: Any) -> bytes:
    return _in_pieces(json.dumps(message, ensure_ascii=False).encode(), size) + b"\n"


mutants("stdio-utf8-output", of=Fault)(
    DecodesEach8KiBOfItsAnswers=has(
        "Decodes each 8 KiB of its answers for itself.",
        said=lambda self, message, *_: _decoded_in(8 << 10, message),
    )
)


@mutant("stdio-utf8-output", outcome="note")
class WritesInTheEncodingOfTheSystem(Fault):
    """Writes in the encoding that the system prefers, like Python's print."""

    def said(self, message: Any, request: Json) -> Out:
        encoding = os.environ.get("PYTHONIOENCODING", "utf-8")
        return json.dumps(message, ensure_ascii=False).encode(encoding, "replace") + b"\n"


mutants("stdio-utf8-output", of=Fault, outcome="note", revision=MODERN)(
    ExitsInAForeignLocale=has(
        "Exits at a letter that the encoding of the system lacks.",
        heard=lambda self, line, message: (
            os._exit(1)
            if os.environ.get("PYTHONIOENCODING", "utf-8") != "utf-8" and not line.isascii()
            else line
        ),
    )
)


@mutant("stdio-utf8-output", outcome="warn")
class EscapesHalfASurrogatePair(Fault):
    """Cuts a description inside a surrogate pair, like JavaScript's slice."""

    def said(self, message: Any, request: Json) -> Out:
        if is_listing(request) and "result" in message:
            message["result"]["tools"][0]["description"] = "Reads a file \ud83e"
        return compact(message).encode() + b"\n"


mutants("stdio-utf8-input", of=Fault)(
    ReadsLatin1=has(
        "Reads each byte as one character.",
        heard=lambda self, line, *_: line.decode("latin-1").encode(),
    ),
    ReadsNonAsciiAsQuestionMarks=has(
        "Reads ASCII and replaces other characters by question marks.",
        MODERN,
        heard=lambda self, line, *_: line.decode().encode("ascii", "replace"),
    ),
)


def _in_pieces(line: bytes, size: int) -> bytes:
    """Decode each piece of a line for itself."""
    pieces = [line[at : at + size] for at in range(0, len(line), size)]
    return "".join(piece.decode("utf-8", "replace") for piece in pieces).encode()


mutants("stdio-utf8-input", of=Fault)(
    DecodesEachRead=has(
        "Decodes each 8 KiB of its input for themselves.",
        heard=lambda self, line, *_: _in_pieces(line, 8192),
    ),
    DecodesLongReads=has(
        "Decodes each 64 KiB of its input for themselves.",
        MODERN,
        heard=lambda self, line, *_: _in_pieces(line, 65536),
    ),
)
mutants("stdio-carriage-return", of=Fault)(
    ExitsOnACarriageReturn=has(
        "Exits at a line that ends with CR LF.",
        heard=lambda self, line, *_: os._exit(0) if line.endswith(b"\r") else line,
    ),
    DropsACarriageReturn=has(
        "Ignores a line that ends with CR LF.",
        MODERN,
        heard=lambda self, line, *_: None if line.endswith(b"\r") else line,
    ),
)
mutants("stdio-utf8-input", of=Fault, revision="2025-06-18")(
    DiesOfAnEmoji=has(
        "Exits at a character outside the BMP.",
        heard=lambda self, line, message: os._exit(1) if b"\xf0" in line else line,
    )
)


@mutant("stdio-utf8-input")
class RefusesNonAsciiNames(Fault):
    """Refuses a client name that is not ASCII."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if isinstance(message, dict) and "id" in message:
            meta = params(message).get("_meta", {})
            client = params(message).get("clientInfo") or meta.get(META + "clientInfo") or {}
            if not str(client.get("name")).isascii():
                self.refuse(message, -32602, "clientInfo.name must match [a-z-]+")
                return None
        return line


mutants("stdio-utf8-input", of=RefusesNonAsciiNames, revision=MODERN)(
    RefusesNonAsciiNamesPerRequest="Refuses a client name in _meta that is not ASCII."
)
