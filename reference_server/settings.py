"""What the operator can decide; the only way a decision reaches the other modules."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeAlias

    Hook: TypeAlias = Callable[[dict[str, Any]], None]

MEBIBYTE = 1024 * 1024


DENIED = (".git", "node_modules", "__pycache__", ".env", ".vs")
"""Names that no path may hold, at any depth, unless the operator says otherwise."""

DENIED_FOR_WRITES = ("bin", "obj")
"""Names that no path written to may hold: what a build makes is not edited by hand."""


class Settings:
    """The knobs of one server; plain values, fixed before it starts.

    Attributes:
        roots: Directories whose files may be read, in order of precedence; at least one.
        read_only: Whether nothing may be written.
        deny: Names and patterns that no path may match, see ``workspace.names``.
        deny_writes: More of them, for writing only.
        allow: Patterns one of which a file's path or name must match; none means every file.
        confirm_writes: Whether a write that destroys something needs the user's confirmation.
        state_key: A secret that several processes share, so that each takes up what another has
            asked; None keeps to what this one has asked.
        max_file_size: Largest file a tool opens or writes, in bytes.
        text_editor: Whether ``text_editor`` is offered.
        deprecated: Whether 2026-07-28 is offered what is deprecated in it.
        page_size: Most entries in one page of a list.
        log_level: ``debug``, ``info``, ``warning``, ``error`` or ``off``.
        log_format: ``json`` or ``text``.
        verbose_log: File that gets every event with its payloads, or None.
        hooks: Called with the facts of each request and session; see ``operation.hooks``.
        features: Names of entry points whose features are offered, too; see ``features.named``.
        max_line: Longest accepted line in bytes, its newline not counted.
        workers: Threads that run tools at the same time.
        queue: Tool calls that may wait for a thread before reading stops.
        drain_seconds: How long the answers still owed may take after the end of input.
        stop_seconds: The same after a signal.
        ask_seconds: How long the client may take to answer a question of ours.
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
