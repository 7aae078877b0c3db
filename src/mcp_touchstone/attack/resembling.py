"""Names that only look like denied ones: what has them is served, or the list denies too much."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from mcp_touchstone.attack.bindings import Binding, Call, Operation
from mcp_touchstone.attack.payload import Payload
from mcp_touchstone.attack.siege import NAMELESS, Siege
from mcp_touchstone.talk import Broken

FREE: Final = "the server promised no deny list, so it may serve what it likes"


def serve(siege: Siege, threat: str, *groups: str) -> None:
    """Read plain files that a guard may mistake for others: their bytes have to come back.

    Raises:
        Broken: there was nothing to fire.
    """
    readers, refused, tried = siege.begin(), [], 0
    root = str(siege.field.root)
    for row, text in _near(siege, *groups):
        path = siege.field.root / text
        if row.operation == "create":
            for binding in siege.bindings.of(Operation.CREATE):
                siege.fired.add(row.id)
                reply = siege.wire.request(*_made(siege, path, binding), required=False)
                tried += 1
                if not path.is_file():
                    where = siege.field.shown(path)
                    refused.append((f"{binding.tool} did not make {where}", reply))
        if row.operation != "read":
            continue
        plain = siege.field.plain(path)
        for binding in readers:
            method, params = binding.call(binding.spelled(text, root), root)
            siege.fired.add(row.id)
            reply = siege.wire.request(method, params, required=False)
            tried += 1
            if not siege.gave(reply, plain):
                refused.append((f"{binding.tool or method} did not give {text}", reply))
    if not (tried or siege.field.denied.is_default):
        siege.unseen(threat, NAMELESS)
    elif not tried:
        raise Broken("no payload could be fired")
    elif refused and threat in siege.unpromised:
        siege.unseen(threat, FREE)
    else:
        siege.conclude(
            threat,
            f"{refused[0][0]}; {len(refused)} of {tried} calls" if refused else "",
            expected="what is on no list is served",
            passed=f"{tried} calls",
            at=refused[0][1] if refused else None,
        )


def _near(siege: Siege, *groups: str) -> Iterator[tuple[Payload, str]]:
    """Give names that are on no list, and may stand where they say."""
    for row, text in siege.field.each(siege.payloads(*groups)):
        path = siege.field.root / text
        stands = all(not one.exists() or one.is_dir() for one in path.parents)
        if stands and not path.is_dir() and not siege.field.denied.lists(Path(text).parts):
            yield row, text


def _made(siege: Siege, path: Path, binding: Binding) -> Call:
    """Give the call that makes a file in a folder that is there."""
    path.parent.mkdir(exist_ok=True)
    root = str(siege.field.root)
    text = binding.spelled(path.relative_to(siege.field.root).as_posix(), root)
    return binding.call(text, root, content="touchstone\n")
