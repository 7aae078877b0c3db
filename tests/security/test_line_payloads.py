"""Payload lines of an attack, and the shell commands that write them."""

import json
import subprocess

from mcp_touchstone.catalog.loader import home
from mcp_touchstone.security import line_payloads, payload
from mcp_touchstone.security.line_payloads import Names
from tests.cases import cases

LIBRARY = payload.load(home() / "security_suite" / "payloads")
ROWS = {row.id: row for rows in LIBRARY.values() for row in rows}
NAMES = Names(None, "read_file", "path", known={"outside_name": "outside", "canary": "c.txt"})


@cases(("frame.oversize-01", 1 << 20), ("frame.oversize-05", 32 << 20), ("json.number-15", 5000))
def test_recipe_generates_a_payload_of_its_size(row: str, size: int) -> None:
    made = line_payloads.load(ROWS[row], NAMES, (1, 2))

    assert size <= made.size < size + 200
    assert len(repr(made.parts)) < 1000


def test_nested_payload_is_a_well_formed_call() -> None:
    made = line_payloads.load(ROWS["json.depth-01"], NAMES, (7, 8))
    opening, closing = made.data.find(b"["), made.data.rfind(b"]") + 1

    # A reader may stop long before such a depth: ours on Python 3.11 does.
    assert made.data[opening:closing].strip(b"[") == b"]" * 1000
    value = json.loads(made.data[:opening] + b"0" + made.data[closing:])
    assert value["id"] == 7
    assert value["params"]["name"] == "read_file"


def test_payload_includes_the_required_tool_arguments() -> None:
    names = Names(None, "editor", "path", {"command": "view"}, prefix="/r")
    made = line_payloads.load(ROWS["rpc.type-14"], names, (1, 2))

    assert json.loads(made.data)["params"]["arguments"] == {
        "command": "view",
        "path": "/r/ok.txt",
        "extra": 1,
    }


@cases("json.string-10", "json.string-17", "frame.smuggle-02", "rpc.id-16")
def test_shell_commands_write_the_bytes_of_the_payload(row: str) -> None:
    made = line_payloads.load(ROWS[row], NAMES, (1, 2))
    script = "\n".join(line_payloads.printed([made], ("/no/such", "@D@")))

    done = subprocess.run(["sh", "-c", script], capture_output=True, check=True, timeout=30)

    assert done.stdout == made.data + b"\n"
