"""The CEDARScript tools: edit commands for code, carried out by a library in a process of its own.

    text --scan--> scripts --worker: policy--> commands --stage--> texts --worker--> texts and diffs
    texts and diffs --stage--> an edit of the workspace, if it is to be written

The library is an optional extra. Without it, ``list_capabilities`` says why and ``explain_error``
still explains; the other two tools are not offered.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..surface import Surface


def install(surface: Surface) -> None:
    """Offer the tools that can be offered."""
    from .tools import offer  # noqa: PLC0415 - most of what imports this package is its worker

    offer(surface)
