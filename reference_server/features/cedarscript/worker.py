"""The worker: runs the library in a separate process, which can be killed.

The worker reads requests and writes answers, one JSON object a line. It ends at the end of its
input. After the warm-up, an audit hook stops every attempt to open a file or start a program. The
memory and the processor time are limited on systems with such limits.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import warnings

from . import policy
from .describe import describe, summary
from .indentation import IndentationRefusedError
from .library import Library, Unavailable
from .policy import Refused
from .steps import Steps, syntax_error
from .unified import unified

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

    Request = dict[str, Any]
    Answer = dict[str, Any]

_FORBIDDEN = (
    *("subprocess.", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.startfile"),
    *("os.system", "os.kill", "socket.", "shutil.", "pty.", "ctypes."),
    *("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate"),
)
_LONGEST_CAUSE = 300
_CLOSE = 0.75
_FEW = 3
_SEARCHED = 5_000

_WARM_UP = (
    "UPDATE FUNCTION \"f\" FROM FILE \"x.py\" REPLACE BODY WITH CONTENT '''\n@0:return 2\n'''",
    "@property\ndef f():\n    return 1\n",
    "@property\ndef f():\n    return 2\n",
)


class Worker:
    """Answers requests with a loaded library.

    A request has the member ``op``, ``parse`` or ``apply``, and the scripts in ``blocks``. For
    ``apply``, see also ``_apply``.
    """

    def __init__(self, library: Library, seconds: int) -> None:
        self._library = library
        self._seconds = seconds

    def answer(self, request: Request) -> Answer:
        """Return the answer to one request. The errors of a script are part of the answer.

        ``spent`` in an answer means that the process must not be used again.
        """
        _limit_time(self._seconds)
        try:
            if request["op"] == "parse":
                return {"commands": [describe(one, line) for one, line in self._parse(request)]}
            return self._apply(request)
        except Refused as refused:
            return {"refused": refused.facts}
        except (MemoryError, RecursionError) as error:
            return {"failed": {"kind": type(error).__name__, "text": ""}, "spent": True}

    def _parse(self, request: Request) -> list[tuple[Any, int]]:
        commands: list[tuple[Any, int]] = []
        for block in request["blocks"]:
            commands += self._parse_block(block["text"], block["line"], len(commands))
        return commands

    def _parse_block(self, text: str, first_line: int, before: int) -> list[tuple[Any, int]]:
        try:
            root = self._library.parser.parser.parse(text.encode()).root_node
            policy.check_tree(root, text)
            lines = [
                node.start_point[0] + first_line
                for node in root.children
                if node.type.endswith("_command")
            ]
            commands, errors = self._library.parser.parse_script(text)
            if errors:  # the grammar accepts more than the library, mostly patterns
                raise policy.invalid_regex(ValueError(str(errors[0].message)[:_LONGEST_CAUSE]))
        except Refused as refused:
            if "script_line" in refused.facts:
                refused.facts["script_line"] += first_line - 1
            raise
        for index, (command, line) in enumerate(zip(commands, lines, strict=True)):
            try:
                policy.check_command(command)
            except Refused as refused:
                refused.facts.setdefault("script_line", line)
                refused.facts["command_index"] = before + index + 1
                raise
        return list(zip(commands, lines, strict=True))

    def _apply(self, request: Request) -> Answer:
        """Carry out a script on the texts of its files.

        The request has ``keys`` (keys of files by path in the script), ``texts`` (texts by key,
        None for a missing file) and ``shown`` (names for diffs by key). If a command fails, no text
        is returned.
        """
        keys, before = request["keys"], request["texts"]
        texts = {key: _finish(text) for key, text in before.items()}
        results, steps = [], Steps()
        for index, (command, line) in enumerate(self._parse(request), 1):
            path = command.files_to_change[0]
            results.append(summary(command))
            try:
                texts[keys[path]] = self._carry_out(command, path, texts[keys[path]])
            except Refused as refused:
                refused.facts.update(command_index=index, file=path, script_line=line)
                raise
            except IndentationRefusedError as wrong:
                where = {"command_index": index, "file": path, "script_line": line}
                raise Refused(wrong.code, str(wrong), type="ExecutionError", **where) from None
            except (MemoryError, RecursionError):
                raise
            except Exception as error:  # noqa: BLE001 - the library may raise anything
                failed = {
                    "kind": type(error).__name__,
                    "text": str(error)[:_LONGEST_CAUSE],
                    "command_index": index,
                    "script_line": line,
                    "file": path,
                    "lines": _lines_like(command, texts[keys[path]] or ""),
                }
                return {"failed": failed}
            steps.add(keys[path], index, line, texts[keys[path]])
        files = {}
        for path, key in keys.items():
            was, text = before[key], texts[key]
            if was is not None and text is not None and not was.endswith("\n") and was:
                text = text.removesuffix("\n")  # the old file had no newline at its end
            if text == was or key in files:
                continue
            if text is not None and policy.is_python(path):
                steps.check(key, was, text, path)
            files[key] = {"text": text, "diff": unified(was, text, request["shown"][key])}
        return {"results": results, "files": files}

    def _carry_out(self, command: Any, path: str, text: str | None) -> str | None:
        if command.type == "create":
            if text is not None:
                raise Refused(
                    "EXISTS",
                    "There is a file of that name already; it was left as it is.",
                    "UPDATE FILE 'path' REPLACE WHOLE WITH CONTENT '...' replaces what it holds.",
                    type="ConflictError",
                )
            created: str = self._library.create(command.content)
            return created
        if text is None:
            raise Refused(
                "NOT_FOUND",
                "There is no such file.",
                "Check the path; it is relative to the root.",
                "CREATE FILE 'path' WITH CONTENT '...' makes a new file.",
                type="ExecutionError",
            )
        if command.type != "update":
            return None
        # For other file extensions, the library might look for a language without queries.
        name = "x.py" if policy.is_python(path) else "x.txt"
        changed = self._library.update(command, text, name)
        if changed == text:
            raise Refused(
                "NO_CHANGE",
                "The command would change nothing.",
                "In CASE, WHEN REGEX sees the line without the white space around it, SUB all "
                "of it.",
                type="ExecutionError",
            )
        return changed


def _finish(text: str | None) -> str | None:
    """Return a text with a newline at its end, unless it is empty or None."""
    return text + "\n" if text and not text.endswith("\n") else text


def _lines_like(command: Any, text: str) -> list[int]:
    """Return the numbers of lines that a marker of a command may mean, counted from 1.

    Only the first marker that does not match exactly one line is examined. If several lines match
    it, the first of them are returned, and otherwise the most similar ones. At most three numbers
    are returned.
    """
    from difflib import SequenceMatcher  # noqa: PLC0415 - loaded by the warm-up

    for marker in policy.markers(getattr(command, "action", None)):
        if marker.type != "line" or not isinstance(marker.value, str):
            continue
        wanted = marker.value.strip()
        stripped = [line.strip() for line in text.split("\n")[:_SEARCHED]]
        exact = [number for number, line in enumerate(stripped, 1) if line == wanted]
        if len(exact) == 1 or marker.marker_subtype == "regex":
            continue
        if exact:
            return exact[:_FEW]
        matcher = SequenceMatcher(b=wanted[:200])
        ranked = []
        for number, line in enumerate(stripped, 1):
            matcher.set_seq1(line[:200])
            if (
                matcher.real_quick_ratio() >= _CLOSE
                and matcher.quick_ratio() >= _CLOSE
                and (ratio := matcher.ratio()) >= _CLOSE
            ):
                ranked.append((-ratio, number))
        return sorted(number for _, number in sorted(ranked)[:_FEW])
    return []


def _limit_memory(size: int) -> None:
    """Limit the address space of this process, and forbid it to grow files and dump core.

    Do nothing on systems without such limits.
    """
    try:
        import resource  # noqa: PLC0415 - POSIX only
    except ImportError:
        return
    limits = {"RLIMIT_AS": size, "RLIMIT_CORE": 0, "RLIMIT_FSIZE": 0}
    for name, most in limits.items():
        try:
            resource.setrlimit(getattr(resource, name), (most, most))
        except (ValueError, OSError, AttributeError):
            continue


def _limit_time(seconds: int) -> None:
    """Limit the processor time of the next request. The system then ends this process.

    The limit works even if the server has ended. Do nothing on systems without such limits.
    """
    try:
        import resource  # noqa: PLC0415
    except ImportError:
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(used.ru_utime + used.ru_stime) + seconds + 1
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    except (ValueError, OSError):
        return


def _forbid(event: str, _arguments: tuple[Any, ...]) -> None:
    """Refuse to open files, start processes or use sockets. Audit hook of a warm worker."""
    if event == "open" or event.startswith(_FORBIDDEN):
        raise PermissionError(f"{event} in the worker")


def _warm_up(library: Library) -> None:
    """Carry out one edit, to load the modules that are otherwise loaded on first use."""
    script, before, after = _WARM_UP
    try:
        commands, _ = library.parser.parse_script(script)
        result = library.update(commands[0], before, "x.py")
    except Exception as error:  # noqa: BLE001 - the library may raise anything
        raise Unavailable(f"a first edit failed ({type(error).__name__})") from None
    if result != after:
        raise Unavailable("a first edit went wrong")
    _lines_like(commands[0], "")
    syntax_error(before)


def main(settings: Request, requests: BinaryIO, answers: BinaryIO) -> None:
    """Load the library, report whether it works, and answer requests until the input ends.

    Args:
        settings: ``memory``, the limit for the address space in bytes; ``largest``, the limit for
            the size of a file in bytes; ``seconds``, the processor time for one request.
    """

    def say(answer: Answer) -> None:
        answers.write(json.dumps(answer, ensure_ascii=False).encode() + b"\n")
        answers.flush()

    warnings.simplefilter("ignore")
    sys.dont_write_bytecode = True  # the limits forbid writing to files
    _limit_memory(settings["memory"])
    _limit_time(settings["seconds"])
    try:
        library = Library(settings["largest"])
        _warm_up(library)
    except Unavailable as reason:
        say({"ready": False, "reason": str(reason)})
        return
    except Exception as error:  # noqa: BLE001 - the library may raise anything
        say({"ready": False, "reason": f"the library does not work ({type(error).__name__})"})
        return
    worker = Worker(library, settings["seconds"])
    gc.freeze()
    sys.addaudithook(_forbid)
    say({"ready": True})
    for line in requests:
        answer = worker.answer(json.loads(line))
        say(answer)
        if answer.get("spent"):
            return  # it may keep its memory; the server starts a new worker


def run(settings: str) -> None:
    """Run the worker on the standard input and output of this process.

    The output of the library is discarded.
    """
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    main(json.loads(settings), requests, answers)
