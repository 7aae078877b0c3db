"""What changed in a server since it was approved. Values; ``golden.lock_file`` compares."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class ChangeKind(StrEnum):
    """A kind of change."""

    RUG_PULL = "rug pull"
    """The words that a model reads changed, and nothing else of the item."""

    DEFINITION = "definition"
    PACKAGE = "package"
    FILE = "file"
    ABILITY = "ability"
    VERDICT = "verdict"


@dataclass(frozen=True, slots=True)
class LockChange:
    """One member that differs from the lock.

    Attributes:
        member: its place: ``tools.read.description``.
        old: the approved value, as short text; empty if it is new.
        new: the present one; empty if it is gone.
    """

    kind: ChangeKind
    member: str
    old: str = ""
    new: str = ""


@dataclass(frozen=True, slots=True)
class Locked:
    """The comparison of a run with a lock.

    Attributes:
        file: the name of the lock.
        name: the server in it.
        changes: what differs.
        note: what was not compared, in a sentence; empty if all was.
    """

    file: str
    name: str
    changes: tuple[LockChange, ...] = ()
    note: str = ""

    def document(self) -> dict[str, Any]:
        """Return it as JSON."""
        return asdict(self)

    @classmethod
    def read(cls, row: Mapping[str, Any]) -> "Locked":
        """Read the JSON that ``document`` returned."""
        changes = (
            LockChange(ChangeKind(one["kind"]), one["member"], one["old"], one["new"])
            for one in row["changes"]
        )
        return cls(row["file"], row["name"], tuple(changes), row["note"])
