"""Messages inside others, members given twice, requests without an id or before their time."""

import json
import secrets

from mcp_touchstone.suite import Barrage, Operation, Shell, Siege, attack, shells

BREAKS = ("\n", "\r\n", "\r", "\u2028", "\u0085")


def _inner(barrage: Barrage, markers: set[str], method: str = "") -> str:
    """Give a message as text, under an id of its own: a request, or else an answer."""
    marker = f"inner-{secrets.token_hex(6)}"
    markers.add(marker)
    if method:
        return json.dumps(barrage.siege.wire.build(method, id=marker))
    return json.dumps({"jsonrpc": "2.0", "id": marker, "result": {}})


def _nested(barrage: Barrage, markers: set[str]) -> list[Shell]:
    """Put requests into strings and arguments of lines, whole and broken."""
    probe = "server/discover" if barrage.siege.modern else "ping"
    found = []
    for cut in BREAKS:
        text = f"x{cut}{_inner(barrage, markers, probe)}{cut}"
        found.append(barrage.said("a request behind a line break", text))
        call = {"name": barrage.names().tool, "arguments": {"path": text}}
        found.append(barrage.said("a request behind a line break", "tools/call", call))
    value = json.loads(_inner(barrage, markers, probe))
    call = {"name": barrage.names().tool, "arguments": {"path": [value], "more": value}}
    whole = barrage.said("a request as an argument", "tools/call", call)
    found.append(whole)
    value = json.loads(_inner(barrage, markers, probe))
    call = {"name": barrage.names().tool, "arguments": {"path": value}}
    text = barrage.said("", "tools/call", call).data.decode()
    found += [
        shells.plain("cut", "a request in a line that breaks off", text[:-1]),
        shells.plain("comma", "a request in a line with a comma too many", text[:-1] + ",}"),
        shells.plain("junk", "a request behind junk", "x" + text),
        shells.plain("escape", "a request behind a wrong escape", '{"\\x":1,' + text[1:]),
    ]
    return found


def _echoing(barrage: Barrage, markers: set[str]) -> list[Shell]:
    """Put answers into whatever a server may repeat."""
    siege, found = barrage.siege, []
    root = str(siege.field.root)
    for cut in BREAKS:
        text = f"x{cut}{_inner(barrage, markers)}{cut}"
        note = f"an answer behind {json.dumps(cut)}"
        found += [
            barrage.said(note, text),
            barrage.said(note, "tools/call", {"name": text, "arguments": {}}),
            barrage.said(note, "resources/read", {"uri": text}),
            barrage.said(note, "prompts/get", {"name": text}),
            barrage.said(note, "logging/setLevel", {"level": text}),
            shells.plain("id", note, siege.wire.build("tools/list", id=text)),
        ]
        cancelled = {"requestId": f"no {text}", "reason": text}
        found.append(
            shells.plain(
                "cancelled",
                note,
                {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled},
            )
        )
        found += _speaking(siege, barrage, _inner(barrage, markers), cut)
        for binding in siege.bindings.of(Operation.READ, Operation.LIST)[:4]:
            method, params = binding.call(binding.spelled(text, root), root)
            found.append(barrage.said(note, method, params))
        for tool in siege.spoken.harmless[:2]:
            meta = {"progressToken": text, **(siege.wire.meta() if siege.modern else {})}
            call = {"name": tool, "arguments": {"text": text}, "_meta": meta}
            found.append(barrage.said(note, "tools/call", call))
    return found


def _speaking(siege: Siege, barrage: Barrage, answer: str, cut: str) -> list[Shell]:
    """Read a file that holds an answer behind a line break, and list a folder of such a name."""
    root = siege.field.root
    name = f"speaks-{secrets.token_hex(4)}"
    (root / name).mkdir()
    (root / name / "text").write_text(f"x{cut}{answer}{cut}", encoding="utf-8", newline="")
    # a name holds no slash and at most 255 bytes; the answer has neither
    (root / name / f"x{cut}{answer}{cut}").touch()
    note = f"a file with an answer behind {json.dumps(cut)}"
    calls = [
        binding.call(binding.spelled(f"{name}/text", str(root)), str(root))
        for binding in siege.bindings.of(Operation.READ)[:3]
    ]
    calls += [
        binding.call(binding.spelled(name, str(root)), str(root))
        for binding in siege.bindings.of(Operation.LIST)[:2]
    ]
    return [barrage.said(note, method, params) for method, params in calls]


def _handshakes(barrage: Barrage) -> list[Shell]:
    """Open a session that is open: with odd versions, capabilities and names."""
    info = {"name": "x\n\x1b[2J", "version": "1"}
    odd = (
        {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info},
        {"protocolVersion": "x" * 100_000, "capabilities": {}, "clientInfo": info},
        {"protocolVersion": "\x00\n", "capabilities": [], "clientInfo": None},
        {"protocolVersion": None, "capabilities": None, "clientInfo": info},
        {},
    )
    again = [barrage.said("a second handshake", "initialize", params) for params in odd]
    done = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    return [*again, *[shells.plain("initialized", "again and again", done)] * 200]


@attack(
    "messages-inside",
    "messages-echoed",
    "messages-keys",
    "messages-without-id",
    "messages-misplaced",
    fixtures=("base",),
)
def takes_messages_for_what_they_are(siege: Siege) -> None:
    """Nothing inside a message becomes one, and what is no request has no effect."""
    barrage = Barrage(siege)
    markers: set[str] = set()
    barrage.carried("messages-inside", _nested(barrage, markers), markers)
    markers = set()
    barrage.carried("messages-echoed", _echoing(barrage, markers), markers)
    barrage.survive("messages-keys", barrage.lines("json.keys"))
    barrage.unseen("messages-without-id")
    ours = barrage.lines("rpc.spoof", only=lambda row: "{write_tool}" not in row.text)
    opened = [] if siege.modern else _handshakes(barrage)
    barrage.survive("messages-misplaced", [*ours, *opened])


@attack("messages-early", fixtures=("base",))
def writes_nothing_before_the_handshake(siege: Siege) -> None:
    """A call that makes a file, sent before initialize, makes none."""
    Barrage(siege, opened=False).early("messages-early")
