"""The transcript of a live connection, which several threads write and wait for."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from mcp_touchstone.wire.transcript import Transcript


@dataclass(slots=True)
class LiveTranscript(Transcript):
    """A transcript that one thread at a time writes; every change wakes the threads that wait."""

    _change: threading.Condition = field(default_factory=threading.Condition)

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """Let one thread write, then wake the threads that wait."""
        with self._change:
            yield
            self._change.notify_all()

    def wait(self, seen: Callable[[], Any], seconds: float) -> Any:
        """Wait until ``seen`` returns a true value, the output ends, or the seconds have passed."""
        with self._change:
            self._change.wait_for(lambda: self.ended or self.overflow or seen(), max(0.0, seconds))
            return seen()
