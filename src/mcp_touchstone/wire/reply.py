"""The reply to one request of ours: an answer, or the reason there is none. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcp_touchstone.wire.framing import brief, code_in, integral


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply to one request: an answer, or the reason there is none.

    Attributes:
        asked: number of our line.
        entry: number of the line with the answer; None if there is none.
        value: the answer.
        why: the reason there is none, for a person.
        timed_out: whether there is none because the time ran out: one could still come.
    """

    asked: int
    entry: int | None = None
    value: Mapping[str, Any] | None = None
    why: str = ""
    timed_out: bool = False

    @property
    def answered(self) -> bool:
        """Whether an answer came."""
        return self.value is not None

    @property
    def result(self) -> dict[str, Any] | None:
        """The result object; None for an error, for silence, and for a result of another type."""
        found = (self.value or {}).get("result")
        return found if isinstance(found, dict) else None

    @property
    def succeeded(self) -> bool:
        """Whether it is a final result without an error."""
        result = self.result
        final = result is not None and result.get("resultType", "complete") == "complete"
        return final and not self.is_tool_error

    @property
    def asks(self) -> bool:
        """Whether it is a result that asks for input."""
        return (self.result or {}).get("resultType") == "input_required"

    @property
    def is_tool_error(self) -> bool:
        """Whether it is a result that reports a failure of the tool."""
        return (self.result or {}).get("isError") is True

    @property
    def ran(self) -> bool:
        """Whether it is a result that reports no failure of the tool, and asks for no input."""
        return self.result is not None and not (self.is_tool_error or self.asks)

    @property
    def error(self) -> dict[str, Any] | None:
        """The error object; None for a result, for silence, and for an error of another type."""
        found = (self.value or {}).get("error")
        return found if isinstance(found, dict) else None

    @property
    def is_error(self) -> bool:
        """Whether the answer has an ``error`` member and no ``result``, or null for one."""
        value = self.value
        return value is not None and "error" in value and value.get("result") is None

    @property
    def code(self) -> Any:
        """The error code; None if there is none."""
        return code_in(self.error)

    @property
    def unreadable(self) -> bool:
        """Whether it is an error whose code is no whole number; another rule reports it."""
        return self.is_error and not integral(self.code)

    def refused(self, *codes: int) -> bool:
        """Return whether it is an error with one of these codes, or with an unreadable one.

        Rules on the envelope report an error without a readable code.
        """
        return self.code in codes or self.unreadable

    def __str__(self) -> str:
        """Return it as text, for the ``actual`` of a judgement."""
        if self.value is None:
            return self.why
        if "error" in self.value:
            error = self.error or {}
            return f"error {brief(error.get('code'))} {brief(error.get('message'), 80)}"
        return f"result {brief(self.value.get('result'))}"
