"""The operator's decisions, which reach the other modules only in this form."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeAlias

    Hook: TypeAlias = Callable[[dict[str, Any]], None]

MEBIBYTE = 1024 * 1024


DENIED = (".git", "node_modules", "__pycache__", ".env", ".vs")
"""Names that no path may contain, at any depth, by default."""

DENIED_FOR_WRITES = ("bin", "obj")
"""Names that no path may contain for writing, because builds generate these directories."""


class Settings:
    """The settings of one server; plain values that do not change after its start.

    Attributes:
        roots: Directories with the readable files, in order of precedence; at least one.
        read_only: Whether the server refuses to write.
        deny: Names and patterns that no path may match, see ``workspace.names``.
        deny_writes: Additional names and patterns, for writing only.
        allow: Patterns; the path or the name of a file must match one. Without any, all files are
            allowed.
        confirm_writes: Whether a destructive write needs the user's confirmation.
        state_key: A secret that several processes share, so that each accepts the questions of the
            others. With None, a process accepts only its own.
        state_folder: Directory for the plans of unfinished edits; ``""`` for none. It is made when
            it is needed. By default it is in the user's state folder (XDG Base Directory).
        max_file_size: Size of the largest file that a tool opens or writes, in bytes.
        text_editor: Whether to offer ``text_editor``.
        deprecated: Whether to offer deprecated features in 2026-07-28.
        page_size: Maximum number of entries in one page of a list.
        log_level: ``debug``, ``info``, ``warning``, ``error`` or ``off``.
        log_format: ``json`` or ``text``.
        verbose_log: File for all events with their payloads, or None.
        hooks: Called with the facts of each request and session; see ``operation.hooks``.
        features: Names of entry points with more features; see ``bundle.named``.
        max_line: Longest accepted line in bytes, without its newline.
        workers: Number of threads that run tools.
        queue: Number of tool calls that may wait for a thread before reading stops.
        drain_seconds: Time limit for the pending answers after the end of input.
        stop_seconds: The same after a signal.
        ask_seconds: Time limit for the client's answer to a question.
    """

    def __init__(
        self,
        roots: Sequence[str] = (".",),
        *,
        read_only: bool = False,
        deny: Sequence[str] = DENIED,
        deny_writes: Sequence[str] = DENIED_FOR_WRITES,
        allow: Sequence[str] = (),
        confirm_writes: bool = False,
        state_key: str | None = None,
        state_folder: str | None = None,
        max_file_size: int = 10 * MEBIBYTE,
        text_editor: bool = True,
        deprecated: bool = False,
        page_size: int = 100,
        log_level: str = "warning",
        log_format: str = "json",
        verbose_log: str | None = None,
        hooks: Sequence[Hook] = (),
        features: Sequence[str] = (),
        max_line: int = 16 * MEBIBYTE,
        workers: int = 4,
        queue: int = 64,
        drain_seconds: float = 30.0,
        stop_seconds: float = 5.0,
        ask_seconds: float = 120.0,
    ) -> None:
        self.roots = tuple(roots)
        self.read_only = read_only
        self.deny = tuple(deny)
        self.deny_writes = tuple(deny_writes)
        self.allow = tuple(allow)
        self.confirm_writes = confirm_writes
        self.state_key = state_key
        self.state_folder = _users_folder() if state_folder is None else state_folder
        self.max_file_size = max_file_size
        self.text_editor = text_editor
        self.deprecated = deprecated
        self.page_size = page_size
        self.log_level = log_level
        self.log_format = log_format
        self.verbose_log = verbose_log
        self.hooks = tuple(hooks)
        self.features = tuple(features)
        self.max_line = max_line
        self.workers = workers
        self.queue = queue
        self.drain_seconds = drain_seconds
        self.stop_seconds = stop_seconds
        self.ask_seconds = ask_seconds


def _users_folder() -> str:
    """Return the default ``state_folder``; its last name is one that clients never see."""
    given = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_STATE_HOME", "")
    base = given if os.path.isabs(given) else os.path.expanduser("~/.local/state")  # noqa: PTH111, PTH117
    return os.path.join(base, "mcp-touchstone", ".mcp-edit-plans") if os.path.isabs(base) else ""  # noqa: PTH117, PTH118
