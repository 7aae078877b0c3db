"""Servers that break a rule of questions/roots."""

import os
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from tests.mutants.kit import (
    LATE,
    MODERN,
    AskingTool,
    Fault,
    Json,
    client_capabilities,
    controls,
    has,
    is_modern,
    mutant,
    mutants,
    params,
)

NOTED = "versioning-deprecated-features"
"""Trips with every server that asks for roots in 2026-07-28."""

OLD = "2024-11-05"
CHANGED = "notifications/roots/list_changed"


class _Rooted(Fault):
    """Requests the roots as soon as possible and when they change."""

    has_roots = False
    stuck = False
    _questions = 0

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if self.stuck:
            return None
        if not isinstance(message, dict):
            return line
        method = message.get("method")
        if method == "initialize":
            declared = params(message).get("capabilities")
            self.has_roots = isinstance(declared, dict) and "roots" in declared
        if method in {"notifications/initialized", CHANGED} and self.has_roots:
            self._questions += 1
            own = f"mine-{self._questions}"
            self.request_roots(own, again=method == CHANGED)
        if method is None and str(message.get("id")).startswith("mine-"):
            self.stuck = self.trips(message)
            return None
        return line

    def request_roots(self, own: str, *, again: bool) -> None:
        """Send roots/list, after the handshake or again after a change."""
        self.emit({"jsonrpc": "2.0", "id": own, "method": "roots/list"})

    def trips(self, answer: Json) -> bool:
        """Whether it hangs over an answer."""
        raise NotImplementedError


mutants("roots-handles-error", of=_Rooted)(
    HangsOnAnErrorForRoots=has(
        "Hangs when roots/list gets an error of the client's own.",
        trips=lambda self, answer: bool(answer.get("error", {}).get("code") == -32603),
    ),
    HangsWithoutRootsList=has(
        "Hangs when its client does not have roots/list.",
        OLD,
        trips=lambda self, answer: bool(answer.get("error", {}).get("code") == -32601),
    ),
)


@mutant("roots-handles-unavailable")
class HangsWithoutARoot(_Rooted):
    """Hangs when there is no root."""

    def trips(self, answer: Json) -> bool:
        return bool(answer.get("result", {}).get("roots") == [])


@mutant("roots-handles-unavailable")
class HangsWithoutARootAtTheOpening(HangsWithoutARoot):
    """Hangs when there is no root; requests the roots once in a session."""

    def request_roots(self, own: str, *, again: bool) -> None:
        if not again:
            super().request_roots(own, again=again)


@mutant("roots-handles-unavailable", revision=OLD)
class HangsOnAMissingRoot(_Rooted):
    """Hangs when a root does not exist."""

    def trips(self, answer: Json) -> bool:
        roots = answer.get("result", {}).get("roots", [])
        return not all(Path(root["uri"].removeprefix("file://")).exists() for root in roots)


@mutant("roots-handles-unavailable")
class HangsOnAMissingRootLate(HangsOnAMissingRoot):
    """Hangs when a root does not exist; requests changed roots late."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        forwarded = super().heard(line, message)
        return None if message == {"jsonrpc": "2.0", "method": CHANGED} else forwarded

    def request_roots(self, own: str, *, again: bool) -> None:
        action = partial(super().request_roots, own, again=again)
        if again:
            self.later(LATE, action)
        else:
            action()


mutants("roots-handles-list-changes", of=Fault)(
    ExitsWhenRootsChange=has(
        "Exits when the roots change.",
        heard=lambda self, line, message: (
            os._exit(1) if isinstance(message, dict) and message.get("method") == CHANGED else line
        ),
    )
)


@mutant("roots-handles-list-changes", outcome="note", revision=OLD)
class IgnoresChangedRoots(Fault):
    """Does not request the roots again when they change."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        changes = isinstance(message, dict) and message.get("method") == CHANGED
        return None if changes else line


class _Looks(AskingTool):
    """A tool that reads any file; without a session it requests the roots first."""

    PATH: ClassVar[Json] = {"path": {"type": "string"}}
    TOOL: ClassVar[Json] = {
        **AskingTool.TOOL,
        "inputSchema": {"type": "object", "properties": PATH, "required": ["path"]},
    }

    def on_ask(self, request: Json) -> None:
        given = params(request).get("inputResponses", {})
        roots = given.get("where", {}) if isinstance(given, dict) else None
        path = params(request).get("arguments", {}).get("path")
        able = is_modern(request) and "roots" in client_capabilities(request)
        if not isinstance(path, str) or not isinstance(roots, dict):
            self.refuse(request, -32602, "Invalid params")
        elif able and not roots:
            asked = {"where": self.question()}
            self.answer(request, {"resultType": "input_required", "inputRequests": asked})
        else:
            self.read(request, path, roots)

    def question(self) -> Json:
        """Return the question for the roots."""
        return {"method": "roots/list"}

    def read(self, request: Json, path: str, roots: Json) -> None:
        """Read the file, whatever the roots are."""
        try:
            text = (self.root / path).read_text(encoding="utf-8")
        except (OSError, ValueError):
            content = [{"type": "text", "text": "No such file"}]
            self.answer(request, {"content": content, "isError": True})
        else:
            self.answer(request, {"content": [{"type": "text", "text": text}]})


mutants("roots-respects-boundaries", of=_Looks)(
    ReadsOutsideTheRoots="Requests the roots, and reads any path."
)
mutants("roots-respects-boundaries", NOTED, of=_Looks, revision=MODERN, outcome="note")(
    ReadsOutsideStatelessRoots="Requests the roots of a request, and reads any path."
)


class _LooksInside(_Looks):
    """Reads only files below its roots."""

    def read(self, request: Json, path: str, roots: Json) -> None:
        if (self.root / path).resolve().is_relative_to(self.root.resolve()):
            super().read(request, path, roots)
        else:
            self.refuse(request, -32602, "Outside of the roots")


controls(
    "roots-list-request-shape",
    "roots-respects-boundaries",
    "roots-handles-unavailable",
    of=_LooksInside,
    revision=MODERN,
    breaks=(NOTED,),
)(ReadsInsideStatelessRoots="Requests the roots of a request, and reads only below them.")
mutants("roots-list-request-shape", NOTED, of=_LooksInside, revision=MODERN)(
    RequestsRootsWithAList=has(
        "Requests the roots with an array as params.",
        question=lambda *_: {"method": "roots/list", "params": []},
    )
)
mutants("roots-handles-unavailable", NOTED, of=_LooksInside, revision=MODERN)(
    HangsWithoutAStatelessRoot=has(
        "Never answers a request without a root.",
        read=lambda self, request, path, roots: (
            _LooksInside.read(self, request, path, roots) if roots.get("roots") != [] else None
        ),
    )
)
