"""Checks of the client's answers to questions of the server. Pure."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .messages import Params

_SEVERAL_BLOCKS_SINCE = "2025-11-25"

_BLOCKS = {
    "text": ("", "text"),
    "image": ("", "data"),
    "audio": ("2025-03-26", "data"),
    "tool_use": ("2025-11-25", "name"),
    "tool_result": ("2025-11-25", "toolUseId"),
}
"""Type of a content block -> the first revision with it, and one of its string members."""


def problem_with(method: str, answer: Params, revision: str) -> str | None:
    """Return the problem with an answer, or None if the answer is valid.

    Source: schema.ts#ElicitResult, schema.ts#CreateMessageResult, schema.ts#ListRootsResult.
    The caller must check the content of a form against the schema that was sent.
    """
    if method == "elicitation/create":
        return _elicited(answer)
    if method == "roots/list":
        return _roots(answer)
    return _sampled(answer, revision)


def _elicited(answer: Params) -> str | None:
    if answer.get("action") not in ("accept", "decline", "cancel"):
        return "has no action that is accept, decline or cancel"
    if not isinstance(answer.get("content"), dict | None):
        return "has a content that is no object"
    return None


def _roots(answer: Params) -> str | None:
    roots = answer.get("roots")
    if not isinstance(roots, list):
        return "has no list of roots"
    if not all(isinstance(root, dict) and isinstance(root.get("uri"), str) for root in roots):
        return "has a root without a uri"
    return None


def _sampled(answer: Params, revision: str) -> str | None:
    if answer.get("role") not in ("user", "assistant"):
        return "has no role that is user or assistant"
    if not isinstance(answer.get("model"), str):
        return "names no model"
    content = answer.get("content")
    blocks: list[Any] = [content]
    if isinstance(content, list) and revision >= _SEVERAL_BLOCKS_SINCE:
        blocks = content
    if not all(_is_block(one, revision) for one in blocks):
        return "has a content that is no content block"
    return None


def _is_block(one: Any, revision: str) -> bool:
    kind = one.get("type") if isinstance(one, dict) else None
    if not isinstance(kind, str) or kind not in _BLOCKS:
        return False
    since, member = _BLOCKS[kind]
    return revision >= since and isinstance(one.get(member), str)
