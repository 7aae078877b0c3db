"""Messages inside others, duplicate members, requests without an id or before the handshake."""

import json
import secrets

from mcp_touchstone.security.suite import (
    AttackSession,
    LineAttack,
    LinePayload,
    Operation,
    attack,
    line_payloads,
)

BREAKS = ("\n", "\r\n", "\r", "\u2028", "\u0085")


def _inner(line_attack: LineAttack, markers: set[str], method: str = "") -> str:
    """Return a message with a new id as text: a request if a method is given, else an answer."""
    marker = f"inner-{secrets.token_hex(6)}"
    markers.add(marker)
    if method:
        return json.dumps(line_attack.session.wire.build(method, id=marker))
    return json.dumps({"jsonrpc": "2.0", "id": marker, "result": {}})


def _nested(line_attack: LineAttack, markers: set[str]) -> list[LinePayload]:
    """Return lines, valid and broken, with requests in strings and arguments."""
    probe = "server/discover" if line_attack.session.modern else "ping"
    found = []
    for cut in BREAKS:
        text = f"x{cut}{_inner(line_attack, markers, probe)}{cut}"
        found.append(line_attack.said("a request after a line break", text))
        call = {"name": line_attack.names().tool, "arguments": {"path": text}}
        found.append(line_attack.said("a request after a line break", "tools/call", call))
    value = json.loads(_inner(line_attack, markers, probe))
    call = {"name": line_attack.names().tool, "arguments": {"path": [value], "more": value}}
    whole = line_attack.said("a request as an argument", "tools/call", call)
    found.append(whole)
    value = json.loads(_inner(line_attack, markers, probe))
    call = {"name": line_attack.names().tool, "arguments": {"path": value}}
    text = line_attack.said("", "tools/call", call).data.decode()
    found += [
        line_payloads.plain("cut", "a request in a line that breaks off", text[:-1]),
        line_payloads.plain("comma", "a request in a line with a comma too many", text[:-1] + ",}"),
        line_payloads.plain("junk", "a request after junk", "x" + text),
        line_payloads.plain("escape", "a request after a wrong escape", '{"\\x":1,' + text[1:]),
    ]
    return found


def _echoing(line_attack: LineAttack, markers: set[str]) -> list[LinePayload]:
    """Return lines with answers in every value that a server may repeat."""
    session, found = line_attack.session, []
    root = str(session.tree.root)
    for cut in BREAKS:
        text = f"x{cut}{_inner(line_attack, markers)}{cut}"
        note = f"an answer after {json.dumps(cut)}"
        found += [
            line_attack.said(note, text),
            line_attack.said(note, "tools/call", {"name": text, "arguments": {}}),
            line_attack.said(note, "resources/read", {"uri": text}),
            line_attack.said(note, "prompts/get", {"name": text}),
            line_attack.said(note, "logging/setLevel", {"level": text}),
            line_payloads.plain("id", note, session.wire.build("tools/list", id=text)),
        ]
        cancelled = {"requestId": f"no {text}", "reason": text}
        found.append(
            line_payloads.plain(
                "cancelled",
                note,
                {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled},
            )
        )
        found += _speaking(session, line_attack, _inner(line_attack, markers), cut)
        for binding in session.bindings.of(Operation.READ, Operation.LIST)[:4]:
            method, params = binding.call(binding.spelled(text, root), root)
            found.append(line_attack.said(note, method, params))
        for tool in session.spoken.harmless[:2]:
            meta = {"progressToken": text, **(session.wire.meta() if session.modern else {})}
            call = {"name": tool, "arguments": {"text": text}, "_meta": meta}
            found.append(line_attack.said(note, "tools/call", call))
    return found


def _speaking(
    session: AttackSession, line_attack: LineAttack, answer: str, cut: str
) -> list[LinePayload]:
    """Return calls that show a file whose content and name have an answer after a line break."""
    root = session.tree.root
    name = f"speaks-{secrets.token_hex(4)}"
    (root / name).mkdir()
    (root / name / "text").write_text(f"x{cut}{answer}{cut}")
    # valid as a file name: the answer has no slash and fewer than 255 bytes
    (root / name / f"x{cut}{answer}{cut}").touch()
    note = f"a file with an answer after {json.dumps(cut)}"
    readers = session.bindings.of(Operation.READ)[:3]
    for suffix in session.bindings.suffixes():
        (root / name / f"text{suffix}").write_bytes((root / name / "text").read_bytes())
    calls = [
        binding.call(binding.in_style(f"{name}/text{binding.naming.suffix}", str(root)), str(root))
        for binding in readers
    ]
    calls += [
        binding.call(binding.spelled(name, str(root)), str(root))
        for binding in session.bindings.of(Operation.LIST)[:2]
    ]
    return [line_attack.said(note, method, params) for method, params in calls]


def _handshakes(line_attack: LineAttack) -> list[LinePayload]:
    """Return second handshakes with unusual versions, capabilities and names."""
    info = {"name": "x\n\x1b[2J", "version": "1"}
    odd: tuple[dict[str, object], ...] = (
        {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info},
        {"protocolVersion": "x" * 100_000, "capabilities": {}, "clientInfo": info},
        {"protocolVersion": "\x00\n", "capabilities": [], "clientInfo": None},
        {"protocolVersion": None, "capabilities": None, "clientInfo": info},
        {},
    )
    again = [line_attack.said("a second handshake", "initialize", params) for params in odd]
    done = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    return [*again, *[line_payloads.plain("initialized", "again and again", done)] * 200]


@attack(
    "messages-inside",
    "messages-echoed",
    "messages-keys",
    "messages-without-id",
    "messages-misplaced",
    fixtures=("base",),
    unwatched=True,
)
def takes_messages_for_what_they_are(session: AttackSession) -> None:
    """No text inside a message becomes one, and a message that is no request has no effect."""
    line_attack = LineAttack(session)
    markers: set[str] = set()
    line_attack.carried("messages-inside", _nested(line_attack, markers), markers)
    markers = set()
    line_attack.carried("messages-echoed", _echoing(line_attack, markers), markers)
    line_attack.survive("messages-keys", line_attack.lines("json.keys"))
    line_attack.unseen("messages-without-id")
    ours = line_attack.lines("rpc.spoof", only=lambda row: "{write_tool}" not in row.text)
    opened = [] if session.modern else _handshakes(line_attack)
    line_attack.survive("messages-misplaced", [*ours, *opened])


@attack("messages-early", fixtures=("base",), unwatched=True)
def writes_nothing_before_the_handshake(session: AttackSession) -> None:
    """A call that is sent before initialize makes no file."""
    LineAttack(session, opened=False).early("messages-early")
