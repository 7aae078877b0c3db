"""The files the server may touch, and the rules for touching them.

path --paths--> parts --names--> permitted parts --descent--> descriptor --tree--> bytes
edit --journal--> either every file of it is new, or every file is as it was
"""

from __future__ import annotations

from .edit import Change, Edit
from .entries import Entry, Snapshot
from .tree import Workspace

__all__ = ["Change", "Edit", "Entry", "Snapshot", "Workspace"]
