"""Access to the files below the roots, under the policy.

path --paths--> parts --names--> permitted parts --descent--> descriptor --tree--> bytes
edit --journal--> either all of its files change, or none does
"""

from __future__ import annotations

from .edit import Edit
from .entries import Change, Entry, Snapshot
from .tree import Workspace

__all__ = ["Change", "Edit", "Entry", "Snapshot", "Workspace"]
