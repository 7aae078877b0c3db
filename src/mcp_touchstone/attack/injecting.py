"""Arguments that a program behind a tool may take for its options, or for commands.

Fired at every text a tool takes, be it a path, a pattern, a revision or a name: a caller's word
that comes to stand in a command line is more than a word. What is judged is what the payload asks
for: the file it names outside is there, or bytes from outside came back.
"""

import re
import secrets
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp_touchstone.arguments import CANDIDATES, Places, words
from mcp_touchstone.attack import payload as payloads
from mcp_touchstone.attack.aimer import FILE, Shot
from mcp_touchstone.attack.bindings import Binding, Call, Operation, Style
from mcp_touchstone.attack.payload import Payload
from mcp_touchstone.attack.siege import Siege
from mcp_touchstone.attack.slots import Pointer, Role, assemble, extend, slots, texts
from mcp_touchstone.attack.ways import ways
from mcp_touchstone.reply import Reply

COMMANDS: Final = frozenset({
    "exec", "execute", "run", "shell", "bash", "terminal", "process", "spawn", "eval",
})  # fmt: skip
"""Words in the name of a tool that runs what it is told to, as it says."""

CODE: Final = frozenset({"command", "cmd", "code"})
"""Words in the name of an argument that is run, as it says."""

MARKER: Final = re.compile(r"\b[a-z]+\d*-[0-9a-f]{8}\b")
"""The name of the file that a payload makes, in its text."""

WRITTEN: Final = frozenset({Role.CONTENT, Role.OLD, Role.NEW, Role.DIFF})
"""What is written or compared: no program gets that as an argument of its own."""

PATHS: Final = frozenset({Role.PATH, Role.FROM, Role.TO, Role.BASE})

EXPECTED: Final = "nothing is made outside, no byte from there comes back"


@dataclass(frozen=True, slots=True)
class _Target:
    """One call that payloads are put into.

    Attributes:
        binding: the tool, and what it was seen to do.
        call: a plain call of it.
        works: whether that was seen to have an effect, or a result that is no error.
        texts: arguments that take a text, each with what it is for where that can be told.
    """

    binding: Binding
    call: Call
    works: bool
    texts: Mapping[Pointer, Role | None]


def options(siege: Siege, threat: str, group: str) -> None:
    """Put options of programs where tools take a path, a pattern, a revision or a name."""
    _fire(siege, threat, {group: WRITTEN})


def commands(siege: Siege, threat: str, shell: str, code: str) -> None:
    """Put commands where tools take any text, and code where they take no path."""
    _fire(siege, threat, {shell: frozenset(), code: PATHS})


def _fire(siege: Siege, threat: str, groups: Mapping[str, frozenset[Role]]) -> None:
    """Put payloads of classes into every text but those of some roles."""
    siege.begin()
    targets = [*_bound(siege), *_others(siege)]

    def shots() -> Iterator[Shot]:
        for target in targets:
            for pointer, role in target.texts.items():
                for group, without in groups.items():
                    if role not in without:
                        yield from _shots(siege, siege.payloads(group), target, pointer)

    def made(shot: Shot, _reply: Reply) -> str:
        names = MARKER.findall(shot.text)
        there = [name for name in names if (siege.field.outside / name).exists()]
        return f"{siege.field.outside.name}/{there[0]} was made" if there else ""

    siege.judge_shots(threat, shots(), oracle=made, expected=EXPECTED)


def _bound(siege: Siege) -> Iterator[_Target]:
    """Give what is known to do something to files; each text of a call once.

    Where an argument makes several tools of one, those of another call would be read over.
    """
    seen = set()
    for binding in siege.bindings.found:
        if not binding.tool or COMMANDS & {*words(binding.tool)}:
            continue
        fixed = {k: v for k, v in binding.arguments.items() if k not in binding.filled}
        taken: dict[Pointer, Role | None] = {}
        for pointer, role in _texts(binding.schema).items():
            key = (binding.tool, str(fixed), pointer)
            if key not in seen and (not fixed or pointer[0] in binding.filled):
                seen.add(key)
                taken[pointer] = role
        if taken:
            yield _Target(binding, siege.aimer.plain(binding, "touchstone\n"), True, taken)


def _others(siege: Siege) -> Iterator[_Target]:
    """Give tools that take a path and were seen to do nothing to files."""
    bound = {binding.tool for binding in siege.bindings.found}
    places = Places(folder=str(siege.field.root), file=FILE)
    for tool in siege.spoken.named("tools"):
        name, way = tool["name"], next(ways(tool, siege.named), None)
        if name in bound or way is None or COMMANDS & {*words(name)}:
            continue
        schema = way.tool.get("inputSchema") or {}
        calls = [_call(name, assemble(schema, way.fixed, places, n)) for n in range(CANDIDATES)]
        worked = next((call for call in calls if _works(siege, call)), None)
        binding = Binding(Operation.CALL, name, styles=tuple(Style), schema=schema)
        yield _Target(binding, worked or calls[0], worked is not None, _texts(schema))


def _call(tool: str, arguments: Mapping[str, Any]) -> Call:
    return "tools/call", {"name": tool, "arguments": dict(arguments)}


def _works(siege: Siege, call: Call) -> bool:
    reply = siege.wire.request(*call, required=False)
    return reply.result is not None and not reply.result.get("isError")


def _texts(schema: Any) -> dict[Pointer, Role | None]:
    """Give the arguments that take a text, but for those that say that they are run.

    What is to be replaced has a replacement beside it: a target alone may well be a revision.
    """
    roles = {slot.pointer: slot.role for slot in slots(schema)}
    if Role.NEW not in roles.values():
        roles = {pointer: role for pointer, role in roles.items() if role is not Role.OLD}
    named = [(p, {*words(" ".join(map(str, p)))}) for p in texts(schema)]
    return {pointer: roles.get(pointer) for pointer, said in named if not said & CODE}


def _shots(
    siege: Siege, rows: Iterable[Payload], target: _Target, pointer: Pointer
) -> Iterator[Shot]:
    """Put payloads into one argument of a call."""
    binding, (_, params) = target.binding, target.call
    root = str(siege.field.root)
    for row in rows:
        template = row.text.replace("{nonce}", secrets.token_hex(4))
        text = payloads.fill(template, siege.field.names)
        values: dict[Pointer, Any] = {pointer: text}
        if text.startswith(FILE) and target.texts[pointer] in PATHS:
            values = {pointer: binding.spelled(text, root)}
        elif text.startswith("-") and " " in text and isinstance(pointer[-1], int):
            values = {pointer[:-1]: shlex.split(text)}
        arguments = extend(binding.schema, params["arguments"], values, Places(root))
        yield Shot(row, text, binding, _call(binding.tool, arguments), target.works)
