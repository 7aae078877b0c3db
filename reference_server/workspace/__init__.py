"""The files the server may touch, and the rules for touching them.

path --paths--> parts --names--> permitted parts --descent--> descriptor --tree--> bytes
edit --journal--> either every file of it is new, or every file is as it was
"""

from __future__ import annotations

from .edit import Change, Edit
from .entries import Entry, Snapshot
from .tree import Workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..surface import Surface

__all__ = ["Change", "Edit", "Entry", "Snapshot", "Workspace", "build"]


def build(surface: Surface) -> Workspace:
    """Open the roots of the settings."""
    return Workspace(surface.settings, surface.log)
