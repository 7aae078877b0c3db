"""The error that every part may raise if a tool cannot do its work. Pure."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class ToolError(Exception):
    """A tool failed; becomes a result with ``isError`` that the model can read and act on.

    Source: server/tools#error-handling. It must not contain a path above the root, the content of
    a file, or a traceback.

    Args:
        message: The problem and, if one sentence is enough, the solution.
        code: ``UPPER_SNAKE``, for a program.
        type: The kind of error: ``ValidationError``, ``PolicyError``, ``ParseError``,
            ``ExecutionError``, ``ConflictError`` or ``SystemError``.
        field: The invalid argument.
        details: One more sentence about the cause.
        context: The place, as far as it is known: ``file`` and its ``line``; in a script
            ``command_index``, ``script_line`` and ``script_column``. All count from 1.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str = "INVALID_INPUT",
        type: str = "ValidationError",  # noqa: A002 - the member's name on the wire
        field: str | None = None,
        details: str | None = None,
        context: dict[str, Any] | None = None,
        suggestions: Sequence[str] = (),
        recovery_steps: Sequence[str] = (),
        related_tools: Sequence[str] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.type = type
        self.field = field
        self.details = details
        self.context = context
        self.suggestions = suggestions
        self.recovery_steps = recovery_steps
        self.related_tools = related_tools

    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = {"type": self.type, "code": self.code, "message": self.message}
        for name in ("field", "details", "context"):
            if getattr(self, name) is not None:
                body[name] = getattr(self, name)
        for name in ("suggestions", "recovery_steps", "related_tools"):
            if getattr(self, name):
                body[name] = list(getattr(self, name))
        return body
