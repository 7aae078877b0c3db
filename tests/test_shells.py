"""Lines of an attack: what payloads become, and the commands that write them again."""

import json
import subprocess

import pytest

from mcp_touchstone.attack import payload, shells
from mcp_touchstone.attack.shells import Names
from mcp_touchstone.loader import home

LIBRARY = payload.load(home() / "security_suite" / "payloads")
ROWS = {row.id: row for rows in LIBRARY.values() for row in rows}
NAMES = Names(None, "read_file", "path", known={"outside_name": "outside", "canary": "c.txt"})


@pytest.mark.parametrize(
    ("row", "size"),
    [("frame.oversize-01", 1 << 20), ("frame.oversize-05", 32 << 20), ("json.number-15", 5000)],
)
def test_a_recipe_makes_what_it_says(row: str, size: int) -> None:
    made = shells.load(ROWS[row], NAMES, (1, 2))

    assert size <= made.size < size + 200
    assert len(repr(made.parts)) < 1000


def test_nesting_is_well_formed_and_a_call() -> None:
    made = shells.load(ROWS["json.depth-01"], NAMES, (7, 8))
    opening, closing = made.data.find(b"["), made.data.rfind(b"]") + 1

    # A reader may stop long before such a depth: ours on Python 3.11 does.
    assert made.data[opening:closing].strip(b"[") == b"]" * 1000
    value = json.loads(made.data[:opening] + b"0" + made.data[closing:])
    assert value["id"] == 7
    assert value["params"]["name"] == "read_file"


def test_what_else_a_tool_needs_is_sent_along() -> None:
    names = Names(None, "editor", "path", {"command": "view"}, prefix="/r")
    made = shells.load(ROWS["rpc.type-14"], names, (1, 2))

    assert json.loads(made.data)["params"]["arguments"] == {
        "command": "view", "path": "/r/ok.txt", "extra": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    "row", ["json.string-10", "json.string-17", "frame.smuggle-02", "rpc.id-16"]
)
def test_the_commands_write_the_same_bytes(row: str) -> None:
    made = shells.load(ROWS[row], NAMES, (1, 2))
    script = "\n".join(shells.printed([made], ("/no/such", "@D@")))

    done = subprocess.run(["sh", "-c", script], capture_output=True, check=True, timeout=30)

    assert done.stdout == made.data + b"\n"
