"""What a tool says when it cannot do its work: the one error that every part may raise. Pure."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class ToolError(Exception):
    """A tool could not do its work: a result with ``isError`` that the model can read and act on.

    Source: server/tools#error-handling. Nothing in it may name a path above the root, quote file
    contents or show a trace.

    Args:
        message: What is wrong and, if one sentence can say it, what to do.
        code: ``UPPER_SNAKE``, for a program.
        type: The kind of trouble: ``ValidationError``, ``PolicyError``, ``ParseError``,
            ``ExecutionError``, ``ConflictError`` or ``SystemError``.
        field: The argument at fault.
        details: One more sentence about the cause.
        context: Where, as far as it applies: ``file`` and a ``line`` of it; in a script
            ``command_index``, ``script_line`` and ``script_column``. All count from 1.
        suggestions: What to change in the call.
        recovery_steps: What to do, in order, to get on.
        related_tools: Tools that may help.
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
        """Give the error as an object; members without a value are left out."""
        body: dict[str, Any] = {"type": self.type, "code": self.code, "message": self.message}
        for name in ("field", "details", "context"):
            if getattr(self, name) is not None:
                body[name] = getattr(self, name)
        for name in ("suggestions", "recovery_steps", "related_tools"):
            if getattr(self, name):
                body[name] = list(getattr(self, name))
        return body
