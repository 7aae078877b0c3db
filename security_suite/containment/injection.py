"""Arguments that a program behind a tool may take for its options, or for commands.

Payloads are sent in every text argument: a path, a pattern, a revision or a name may become part of
a command line. The attack succeeds if the server obeys the payload: it creates the file that the
payload names outside, or returns bytes from outside.
"""

import itertools
import re
import secrets
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp_touchstone.security.suite import (
    BRIEF,
    CANDIDATES,
    FILE,
    FOLDER,
    SECRET,
    ArgumentRole,
    AttackCall,
    AttackSession,
    Binding,
    Call,
    Operation,
    Payload,
    Places,
    Pointer,
    Reply,
    Style,
    TimeBudget,
    assemble,
    attack,
    attack_calls,
    extend,
    payload,
    put,
    scripting,
    slots,
    texts,
    ways,
    whose,
    words,
)


@attack("injection-options", "injection-ended", fixtures=("base",), lasts=True)
def passes_no_options_on(session: AttackSession) -> None:
    """An argument with a leading dash is a name or refused: no program takes it for an option."""
    options(session, "injection-options", "args.option")


@attack("injection-commands", "injection-ended", fixtures=("base",), lasts=True)
def runs_no_argument(session: AttackSession) -> None:
    """An argument is neither run by a shell nor evaluated as code."""
    commands(session, "injection-commands", "args.shell", "args.eval")


@attack("injection-scripts", fixtures=("base", "siblings", "links", "script"))
def does_no_harm_by_scripts(session: AttackSession) -> None:
    """A script uses only paths inside the root, and it runs nothing."""
    scripting.lead_out(session, "injection-scripts", "script.path", "script.exec")


COMMANDS: Final = frozenset(
    {
        "exec",
        "execute",
        "run",
        "shell",
        "bash",
        "terminal",
        "process",
        "spawn",
        "eval",
        "evaluate",
        "repl",
        "interpreter",
        "console",
    }
)
"""Words in the name of a tool that says that it runs its arguments."""

CODE: Final = frozenset(
    {
        "command",
        "commands",
        "cmd",
        "code",
        "script",
        "program",
        "argv",
        "args",
    }
)
"""Words in the name of an argument that says that it is run."""

MARKER: Final = re.compile(r"\b[a-z]+\d*-[0-9a-f]{8}\b")
"""The name of the file that a payload makes, in its text."""

WRITTEN: Final = frozenset(
    {ArgumentRole.CONTENT, ArgumentRole.OLD, ArgumentRole.NEW, ArgumentRole.DIFF}
)
"""Texts that are written or compared: no program gets them as a separate argument."""

PATHS: Final = frozenset({ArgumentRole.PATH, ArgumentRole.FROM, ArgumentRole.TO, ArgumentRole.BASE})

EXPECTED: Final = "nothing is made outside, no byte from there comes back"

NO_TEXT: Final = "no tool that may be called takes a text that it does not run"

ONLY_WRITTEN: Final = "the tools that may be called only write the texts that they take"

TOTAL: Final = 150.0
"""Seconds a threat may take, shared by the tools."""

LEAST: Final = 8.0
PURSE: Final = 20.0
"""Least and most seconds for one tool."""

ENDED: Final = "injection-ended"

NEAR: Final = "ok2.txt"
"""The file in the plain folder; a copy of that folder does not contain itself."""


@dataclass(frozen=True, slots=True)
class _Target:
    """One call that payloads are put into.

    Attributes:
        binding: the tool and its known effect.
        call: a plain call of it.
        works: whether that had an effect, or a result that is no error.
        texts: arguments that take a text, each with its role if known.
    """

    binding: Binding
    call: Call
    works: bool
    texts: Mapping[Pointer, ArgumentRole | None]


def options(session: AttackSession, threat: str, group: str) -> None:
    """Put options of programs where tools take a path, a pattern, a revision or a name."""
    _fire(session, threat, {group: WRITTEN})


def commands(session: AttackSession, threat: str, shell: str, code: str) -> None:
    """Put commands where tools take any text, and code where they take no path."""
    _fire(session, threat, {shell: frozenset(), code: PATHS})


def _fire(
    session: AttackSession, threat: str, groups: Mapping[str, frozenset[ArgumentRole]]
) -> None:
    """Put the payloads of each class into every text, except texts of the given roles."""
    session.begin()
    everywhere = [*_bound(session), *_others(session)]
    skipped = frozenset.intersection(*groups.values())
    targets = [one for one in everywhere if {*one.texts.values()} - skipped]
    if not targets:
        for unseen in (threat, ENDED):
            session.judge.unseen(unseen, ONLY_WRITTEN if everywhere else NO_TEXT)
        return
    budget = TimeBudget(max(LEAST, min(PURSE, TOTAL / max(1, len(targets)))))
    looker, aside = _Looker(session), set[str]()

    def shots() -> Iterator[AttackCall]:
        for target, row in itertools.product(targets, session.payloads(*groups)):
            for pointer, role in target.texts.items():
                if role in groups[row.group]:
                    continue
                shot = _shot(session, row, target, pointer)
                if budget.pays(target.binding.tool) and looker.does_the_like(shot, pointer):
                    aside.add(row.id)
                else:
                    yield shot

    def left() -> str:
        named = ", ".join(sorted(aside))
        return f"; left to others, as plain paths have the same effect: {named}" if aside else ""

    attack_calls(
        session,
        threat,
        shots(),
        oracle=looker.look,
        expected=EXPECTED,
        budget=budget,
        aside=left,
        ends=ENDED,
    )


class _Looker:
    """Checks the effect of a call, and removes the files that it made in the root."""

    def __init__(self, session: AttackSession) -> None:
        self._session = session
        self._tree = session.tree
        self._known = {path.name for path in session.tree.root.iterdir()}

    def look(self, shot: AttackCall, _reply: Reply) -> str:
        """Return in words which file was made outside, or whose bytes came into the root."""
        effect = ""
        for name in MARKER.findall(shot.text):
            if (self._tree.outside / name).exists():
                effect = f"{self._tree.outside.name}/{name} was made"
        new = [path for path in self._tree.root.iterdir() if path.name not in self._known]
        for where, canary in self._tree.laundered(SECRET) if new else ():
            effect = effect or f"{whose(canary)} are in {where} now"
        for path in new:
            path.remove()
        return effect

    def does_the_like(self, shot: AttackCall, pointer: Pointer) -> bool:
        """Return whether a list of words has an effect without its options too.

        Plain paths have that effect then, and other attacks report it.
        """
        _, params = shot.call
        given = _at(params["arguments"], pointer[:-1])
        if not isinstance(given, list) or not isinstance(pointer[-1], int):
            return False
        plain = [one for one in given if not str(one).startswith("-")]
        if not plain or plain == given:
            return False
        arguments = put(params["arguments"], {pointer[:-1]: plain})
        call = _call(params["name"], arguments)
        reply = self._session.wire.request(*call, required=False)
        if not reply.answered:
            self._session.renew()
        seen = self._tree.canaries.found_in_message(reply.value or {}, SECRET)
        damage = self._tree.damage()
        had = bool(self.look(shot, reply) or seen or damage)
        self._tree.restore(damage)
        return had


def _at(value: Any, pointer: Pointer) -> Any:
    for step in pointer:
        value = value[step]
    return value


def _bound(session: AttackSession) -> Iterator[_Target]:
    """Yield the tools with a known effect on files; each text of a call once.

    If an argument selects one of several actions, the arguments of other actions are left out.
    """
    seen = set()
    for binding in session.bindings.found:
        if not binding.tool or COMMANDS & {*words(binding.tool)}:
            continue
        fixed = {k: v for k, v in binding.arguments.items() if k not in binding.filled}
        taken: dict[Pointer, ArgumentRole | None] = {}
        for pointer, role in _texts(binding.schema).items():
            key = (binding.tool, str(fixed), pointer)
            if key not in seen and (not fixed or pointer[0] in binding.filled):
                seen.add(key)
                taken[pointer] = role
        if taken:
            yield _Target(binding, session.targeting.plain(binding, "touchstone\n"), True, taken)


def _others(session: AttackSession) -> Iterator[_Target]:
    """Yield the tools that take a text and have no known effect on files."""
    bound = {binding.tool for binding in session.bindings.found}
    root = str(session.tree.root)
    places = (
        Places(folder=f"{root}/{FOLDER}", file=NEAR, seconds=BRIEF),
        Places(folder=root, file=FILE, seconds=BRIEF),
    )
    for tool in session.spoken.named("tools"):
        name, way = tool["name"], next(ways(tool, session.claims.callable_tools), None)
        if name in bound or not (
            session.claims.may_call(tool) if way else session.claims.may_guess(tool)
        ):
            continue
        schema = (way.tool if way else tool).get("inputSchema") or {}
        taken = _texts(schema)
        if not taken or (COMMANDS & {*words(name)} and len(taken) == len(texts(schema))):
            continue  # or its command may be in any argument
        calls = [
            _call(name, assemble(schema, way.fixed if way else {}, place, n))
            for place in places
            for n in range(CANDIDATES)
        ]
        worked = next((call for call in calls if _works(session, call)), None)
        if session.canaries.leaks_anyway(worked or calls[0]):
            continue
        binding = Binding(Operation.CALL, name, styles=tuple(Style), schema=schema)
        yield _Target(binding, worked or calls[0], worked is not None, taken)


def _call(tool: str, arguments: Mapping[str, Any]) -> Call:
    return "tools/call", {"name": tool, "arguments": dict(arguments)}


def _works(session: AttackSession, call: Call) -> bool:
    reply = session.wire.request(*call, required=False)
    return reply.result is not None and not reply.result.get("isError")


def _texts(schema: Any) -> dict[Pointer, ArgumentRole | None]:
    """Return the arguments that take a text, except those that say that they are run.

    A text to replace has a replacement beside it: alone it may be a revision.
    """
    roles = {slot.pointer: slot.role for slot in slots(schema)}
    if ArgumentRole.NEW not in roles.values():
        roles = {pointer: role for pointer, role in roles.items() if role is not ArgumentRole.OLD}
    named = [(p, {*words(" ".join(map(str, p)))}) for p in texts(schema)]
    return {pointer: roles.get(pointer) for pointer, said in named if not said & CODE}


def _shot(session: AttackSession, row: Payload, target: _Target, pointer: Pointer) -> AttackCall:
    """Put a payload into one argument of a call; split options with values into a list."""
    binding, (_, params) = target.binding, target.call
    root = str(session.tree.root)
    template = row.text.replace("{nonce}", secrets.token_hex(4))
    text = payload.fill(template, session.tree.names)

    def holding(values: Mapping[Pointer, Any]) -> Call:
        given, places = params["arguments"], Places(root, seconds=BRIEF)
        return _call(binding.tool, extend(binding.schema, given, values, places))

    values: dict[Pointer, Any] = {pointer: text}
    if text.startswith(FILE) and target.texts[pointer] in PATHS:
        values = {pointer: binding.spelled(text, root)}
    elif text.startswith("-") and " " in text and isinstance(pointer[-1], int):
        values = {pointer[:-1]: shlex.split(text)}
    plain = holding({pointer: "".join(filter(str.isalnum, text))})
    return AttackCall(row, text, binding, holding(values), target.works, plain=plain)
