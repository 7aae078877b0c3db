"""A small MCP server on stdio: notes that can be searched and added. Standard library only."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

REVISIONS = ("2025-06-18", "2025-11-25")
TEXT = {"type": "string", "minLength": 1}
TOOLS: list[dict[str, Any]] = [
    {
        "name": "search",
        "description": "Find the notes that contain a text.",
        "inputSchema": {"type": "object", "properties": {"text": TEXT}, "required": ["text"]},
        "outputSchema": {
            "type": "object",
            "properties": {"notes": {"type": "array", "items": {"type": "string"}}},
            "required": ["notes"],
        },
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "add",
        "description": "Add a note.",
        "inputSchema": {"type": "object", "properties": {"text": TEXT}, "required": ["text"]},
    },
]


class RequestError(Exception):
    """A request is answered with an error of the protocol: code and message."""


class Server:
    """Answers one message after another; the notes are a text file, one a line."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def answer(self, line: bytes) -> dict[str, Any] | None:
        """Give the answer to a line; None where it gets none."""
        try:
            message = json.loads(line)
        except ValueError:
            return error(None, -32700, "this is no JSON")
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            return error(None, -32600, "this is no message of JSON-RPC 2.0")
        if "method" not in message:
            return None if {"result", "error"} & {*message} else error(None, -32600, "no method")
        if "id" not in message:
            return None
        name, given = message["id"], message.get("params", {})
        if isinstance(name, bool) or not isinstance(name, str | int):
            return error(None, -32600, "an id is a string or a whole number")
        if not isinstance(message["method"], str):
            return error(name, -32600, "a method is a string")
        if not isinstance(given, dict):
            return error(name, -32602, "params is an object")
        try:
            return {"jsonrpc": "2.0", "id": name, "result": self._do(message["method"], given)}
        except RequestError as wrong:
            return error(name, *wrong.args)

    def _do(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "initialize":
            asked = params.get("protocolVersion")
            return {
                "protocolVersion": asked if asked in REVISIONS else REVISIONS[-1],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "notes", "version": "1.0"},
            }
        if method == "ping":
            return {}
        if method == "tools/list":
            if "cursor" in params:
                raise RequestError(-32602, "there is one page only")
            return {"tools": TOOLS}
        if method == "tools/call":
            return self._call(params.get("name"), params.get("arguments", {}))
        raise RequestError(-32601, f"there is no method {method}")

    def _call(self, name: Any, arguments: Any) -> dict[str, Any]:
        if name not in [tool["name"] for tool in TOOLS]:
            raise RequestError(-32602, f"there is no tool {name}")
        if not isinstance(arguments, dict):
            raise RequestError(-32602, "arguments is an object")
        text = arguments.get("text")
        if not isinstance(text, str) or not text:
            return text_result("text is missing: give a string that is not empty", failed=True)
        if name == "add":
            with self._file.open("a", encoding="utf-8") as file:
                file.write(" ".join(text.split()) + "\n")
            return text_result("added")
        found = [note for note in self._notes() if text in note]
        return text_result(json.dumps({"notes": found}), structured={"notes": found})

    def _notes(self) -> Iterator[str]:
        if self._file.exists():
            yield from self._file.read_text(encoding="utf-8").splitlines()


def text_result(text: str, *, failed: bool = False, structured: Any = None) -> dict[str, Any]:
    """Give the result of a tool."""
    result: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": failed}
    return result if structured is None else {**result, "structuredContent": structured}


def error(name: Any, code: int, message: str) -> dict[str, Any]:
    """Give an error; without an id where the request had none that can be read."""
    answer: dict[str, Any] = {"jsonrpc": "2.0", "error": {"code": code, "message": message}}
    return answer if name is None else {**answer, "id": name}


def main() -> None:
    """Serve until the client closes our input."""
    server = Server(Path(sys.argv[1]) / "notes.txt")
    for line in sys.stdin.buffer:
        answer = server.answer(line)
        if answer is not None:
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
