"""Two names exchanged for ever while calls are made: what a check before an open cannot survive."""

import contextlib
import ctypes
import json
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Self

from mcp_touchstone.attack.aimer import Shot
from mcp_touchstone.attack.bindings import Binding, Operation
from mcp_touchstone.attack.canary import Area
from mcp_touchstone.attack.field import remove
from mcp_touchstone.attack.payload import CANARY, Payload, fill
from mcp_touchstone.attack.siege import Siege
from mcp_touchstone.talk import Broken

HERE: Final = -100  # AT_FDCWD, linux/fcntl.h
EXCHANGE: Final = 2  # RENAME_EXCHANGE, linux/fs.h
CALLS: Final = 200
"""Calls for each payload and tool."""

ENOUGH: Final = 3
"""Hits after which a race is won."""

AIMED: Final = {
    "read": (Operation.READ,),
    "create": (Operation.CREATE,),
    "write": (Operation.WRITE,),
    "patch": (Operation.EDIT,),
    "delete": (Operation.DELETE,),
}


class _Exchanger:
    """Exchanges a name with another until it is told to stop: at once where the system can."""

    def __init__(self, one: Path, other: Path) -> None:
        self._names = os.fsencode(one), os.fsencode(other)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.turns = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        one, other = self._names
        rename = _renameat2()
        spare = one + b".spare"
        while not self._over.is_set():
            if rename is not None:
                rename(HERE, one, HERE, other, EXCHANGE)
            else:  # not at once: in between the name is not there
                with contextlib.suppress(OSError):
                    os.rename(one, spare)  # noqa: PTH104  (bytes)
                    os.rename(other, one)  # noqa: PTH104
                    os.rename(spare, other)  # noqa: PTH104
            self.turns += 1


def _renameat2() -> "ctypes._NamedFuncPointer | None":
    if sys.platform != "linux":
        return None
    return getattr(ctypes.CDLL(None), "renameat2", None)


def race(siege: Siege, threat: str, operations: frozenset[Operation]) -> None:
    """Fire calls at names that are exchanged with links outwards, and judge a threat.

    Raises:
        Broken: no call met both sides of the exchange, so there was no race.
    """
    raced: list[int] = []

    def shots() -> Iterator[Shot]:
        for row in siege.payloads("race.toctou", via="session"):
            told = json.loads(fill(row.text, {**siege.field.names, "i": "{i}"}))
            if told["do"] != "swap" or told["op"] not in AIMED or "lf" not in _kinds(told):
                continue
            for binding in siege.bindings.of(*AIMED[told["op"]]):
                if binding.operation in operations:
                    yield from _raced(siege, row, told, binding, raced)

    siege.judge_shots(threat, shots(), enough=ENOUGH)
    if not raced:
        raise Broken("no payload could be fired")


def _kinds(told: dict[str, str]) -> set[str]:
    """Give what is exchanged in the words of the fixture: both kinds lead outside."""
    return {"lf"} if told["b"] in {"race/l", "race/lf"} else set()


def _raced(
    siege: Siege, row: Payload, told: dict[str, str], binding: Binding, raced: list[int]
) -> Iterator[Shot]:
    one, other = _laid(siege, told)
    root = str(siege.field.root)
    before = (siege.field.root / "race" / "kept").read_bytes()
    with _Exchanger(one, other) as exchange:
        for number in range(CALLS):
            name = told["path"].replace("{i}", str(number))
            path = binding.spelled(name, root)
            call = binding.call(path, root, before=before, content=f"raced {number}\n")
            yield Shot(row, name, binding, call, live=True)
    raced.append(exchange.turns)


def _laid(siege: Siege, told: dict[str, str]) -> tuple[Path, Path]:
    """Make what is exchanged: a folder or file inside, and a link to its like outside."""
    field = siege.field
    top = field.root / "race"
    remove(top)
    top.mkdir()
    decoy = field.canaries.plant(f"{field.root.name}/race/kept", Area.INSIDE).content
    (top / "kept").write_text(decoy, encoding="utf-8", newline="\n")
    one, other = field.root / told["a"], field.root / told["b"]
    if told["b"] == "race/l":
        one.mkdir()
        (one / CANARY).write_text(decoy, encoding="utf-8", newline="\n")
        other.symlink_to(field.outside)
    else:
        one.write_text(decoy, encoding="utf-8", newline="\n")
        other.symlink_to(field.outside / CANARY)
    return one, other
