"""Servers that break a rule of basic/stdio: purity, framing, encoding."""

import json
import os
from typing import Any

from tests.mutants.kit import META, MODERN, Fault, Json, Out, encode, mutant, params


def compact(message: Any) -> str:
    """Write a message as ASCII, with escapes for the rest."""
    return json.dumps(message, separators=(",", ":"))


def is_listing(request: Json) -> bool:
    """Whether a request asks for the tools."""
    return request.get("method") == "tools/list"


# --- nothing but messages


@mutant("stdio-stdout-only-messages")
class PrintsABanner(Fault):
    """Greets on stdout before it serves."""

    def start(self) -> None:
        self.tell(b"filesystem server 1.0 running on stdio\n")


@mutant("stdio-stdout-only-messages", revision=MODERN)
class LogsToStdout(Fault):
    """Writes a log line to stdout each time the tools are listed."""

    def said(self, message: Any, request: Json) -> Out:
        log = b"[INFO] tools were listed\n" if is_listing(request) else b""
        return log + encode(message)


@mutant("stdio-stdout-only-messages", revision="2024-11-05")
class SaysGoodbye(Fault):
    """Writes a parting word to stdout when its input ends."""

    def end(self) -> None:
        self.tell(b"\x1b[32mbye\x1b[0m\n")


@mutant("stdio-stdout-only-messages", revision="2025-06-18")
class FramesLikeALanguageServer(Fault):
    """Puts a Content-Length header before each message, and no line feed behind it."""

    def said(self, message: Any, request: Json) -> Out:
        del request
        body = encode(message).rstrip(b"\n")
        return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


@mutant("stdio-stdout-only-messages", revision="2025-03-26")
class StartsWithAByteOrderMark(Fault):
    """Opens its output with a byte order mark, as a Windows text stream does."""

    def start(self) -> None:
        self.tell(b"\xef\xbb\xbf")


@mutant("stdio-stdout-only-messages")
class WritesNotANumber(Fault):
    """Writes a NaN, which Python's json does unless told otherwise."""

    def said(self, message: Any, request: Json) -> Out:
        if is_listing(request) and "result" in message:
            message["result"]["_meta"] = {"com.example/load": float("nan")}
        return message  # type: ignore[no-any-return]


@mutant("stdio-stdout-only-messages")
class WritesABareScalar(Fault):
    """Prints the return value of a handler: a line that is JSON, and no message."""

    def said(self, message: Any, request: Json) -> Out:
        return encode(message) + (b"true\n" if is_listing(request) else b"")


@mutant("stdio-stdout-only-messages", outcome="warn")
class EndsMessagesWithABlankLine(Fault):
    """Ends each message with two line feeds."""

    def said(self, message: Any, request: Json) -> Out:
        del request
        return encode(message) + b"\n"


@mutant("stdio-stdout-only-messages", outcome="warn")
class SendsAHeartbeatOfItsOwn(Fault):
    """Sends a notification that no revision defines."""

    def said(self, message: Any, request: Json) -> Out:
        beat = {"jsonrpc": "2.0", "method": "notifications/heartbeat"}
        listed = is_listing(request) and "result" in message
        return encode(message) + (encode(beat) if listed else b"")


# --- one line a message


@mutant("stdio-no-embedded-newlines")
class PrettyPrints(Fault):
    """Writes its messages indented, over many lines."""

    def said(self, message: Any, request: Json) -> Out:
        del request
        return json.dumps(message, indent=2).encode() + b"\n"


@mutant("stdio-no-embedded-newlines", revision=MODERN)
class PrettyPrintsListsOnly(Fault):
    """Writes the list of tools, and nothing else, over many lines."""

    def said(self, message: Any, request: Json) -> Out:
        if is_listing(request):
            return json.dumps(message, indent="\t").encode() + b"\n"
        return message  # type: ignore[no-any-return]


@mutant("stdio-newline-terminated")
class ForgetsTheLineFeed(Fault):
    """Writes messages with nothing behind them."""

    def said(self, message: Any, request: Json) -> Out:
        del request
        return encode(message).rstrip(b"\n")


@mutant("stdio-newline-terminated", startup=3.0)
class NeverFlushes(Fault):
    """Lets its output stand in a buffer until its input ends."""

    def __init__(self) -> None:
        super().__init__()
        self.buffer = b""

    def said(self, message: Any, request: Json) -> Out:
        del request
        self.buffer += encode(message)
        return None

    def end(self) -> None:
        self.tell(self.buffer)


@mutant("stdio-newline-terminated", outcome="warn")
class LosesTheLastLineFeed(Fault):
    """Ends its output with a message that lacks its line feed."""

    def end(self) -> None:
        self.tell(b'{"jsonrpc":"2.0","id":"last","method":"ping"}')


# --- UTF-8


@mutant("stdio-utf8-output")
class WritesUtf16(Fault):
    """Writes UTF-16 with a byte order mark first, as a redirected PowerShell does."""

    def start(self) -> None:
        self.tell(b"\xff\xfe")

    def said(self, message: Any, request: Json) -> Out:
        del request
        return encode(message).decode().encode("utf-16-le")


@mutant("stdio-utf8-output", revision=MODERN)
class WritesUtf16BigEndian(Fault):
    """Writes UTF-16, big end first."""

    def said(self, message: Any, request: Json) -> Out:
        del request
        return encode(message).decode().encode("utf-16-be")


@mutant("stdio-utf8-output", revision="2025-03-26")
class LeavesAByteOrderMark(Fault):
    """Writes the mark of UTF-16 and ends, as one does that is told to stop before it has spoken."""

    def end(self) -> None:
        self.tell(b"\xff\xfe")


@mutant("stdio-utf8-output", revision="2025-03-26")
class WritesLatin1(Fault):
    """Writes Latin-1 where that has the characters, as a Windows locale makes Python do."""

    def said(self, message: Any, request: Json) -> Out:
        del request
        try:
            return encode(message).decode().encode("latin-1")
        except UnicodeEncodeError:
            return message  # type: ignore[no-any-return]


@mutant("stdio-utf8-output", outcome="warn")
class EscapesHalfASurrogatePair(Fault):
    """Cuts a description in the middle of a surrogate pair, as JavaScript's slice does."""

    def said(self, message: Any, request: Json) -> Out:
        if is_listing(request) and "result" in message:
            message["result"]["tools"][0]["description"] = "Reads a file \ud83e"
        return compact(message).encode() + b"\n"


@mutant("stdio-utf8-input")
class ReadsLatin1(Fault):
    """Takes each byte it reads for a character."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        del message
        return line.decode("latin-1").encode()


@mutant("stdio-utf8-input", revision=MODERN)
class AnswersTextWithQuestionMarks(Fault):
    """Reads ASCII and puts a question mark for everything else."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        del message
        return line.decode().encode("ascii", "replace")


@mutant("stdio-utf8-input", revision="2025-06-18")
class DiesOfAnEmoji(Fault):
    """Dies of a character outside the BMP."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        del message
        if b"\xf0" in line:
            os._exit(1)
        return line


@mutant("stdio-utf8-input", revision="2025-06-18")
class RefusesBytesBeyondAscii(Fault):
    """Answers a line with a byte over 127 with a parse error."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if line.isascii() or message is None:
            return line
        readable = str(message.get("id")).isascii()
        error = {"code": -32700, "message": "Parse error"}
        own = message.get("id") if readable else None
        self.tell({"jsonrpc": "2.0", "id": own, "error": error})
        return None


@mutant("stdio-utf8-input")
class RefusesForeignNames(Fault):
    """Takes a client's name for an identifier and refuses what is not ASCII."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if isinstance(message, dict) and "id" in message:
            meta = params(message).get("_meta", {})
            client = params(message).get("clientInfo") or meta.get(META + "clientInfo") or {}
            if not str(client.get("name")).isascii():
                self.refuse(message, -32602, "clientInfo.name must match [a-z-]+")
                return None
        return line


@mutant("stdio-utf8-input", revision=MODERN)
class RefusesForeignNamesPerRequest(RefusesForeignNames):
    """Takes the client's name in _meta for an identifier and refuses what is not ASCII."""
