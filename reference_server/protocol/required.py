"""The exception that ends a request of 2026-07-28 with a question (basic/patterns/mrtr)."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class InputRequired(Exception):  # noqa: N818 - it is no error
    """A handler has a question for the client; the request is answered with it.

    Attributes:
        result: The ``InputRequiredResult`` (schema.ts#InputRequiredResult).
    """

    def __init__(self, result: dict[str, Any]) -> None:
        super().__init__()
        self.result = result
