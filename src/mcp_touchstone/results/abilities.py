"""What a server can do by design, and how that is known. Pure.

This is no finding: a server may run programs because it is made for that. It is what somebody has
to know before an installation. Everything is taken from the run that was made anyway.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from mcp_touchstone.bindings.argument_roles import ArgumentRole, slots
from mcp_touchstone.bindings.binding import CHANGING, UNSEEN, Bindings, Operation
from mcp_touchstone.bindings.command_line import leaf_of, says_it_runs
from mcp_touchstone.catalog.attack_level import Tier, option
from mcp_touchstone.runtime.printable import safe
from mcp_touchstone.samples.from_schema import words
from mcp_touchstone.wire.framing import object_in, value_in

SHOWN: Final = 6
"""Names in one text."""

VARIABLES: Final = 20
"""Names of variables in one text."""

LONGEST: Final = 60
"""Characters of a name."""


class Power(StrEnum):
    """A kind of ability."""

    CODE = "runs programs or code"
    NETWORK = "reaches the network"
    OUTSIDE = "reads or writes outside its folder"
    DELETES = "deletes"
    STATE = "keeps state"
    STAYS = "starts processes that stay"
    SECRETS = "needs secrets"
    CLIENT = "asks the client"


class Known(StrEnum):
    """How an ability is known."""

    SEEN = "seen in this run"
    DECLARED = "declared"
    NOT_SEEN = "tried, not seen"
    NOT_TRIED = "not tried"


@dataclass(frozen=True, slots=True)
class Ability:
    """An ability of a server, and how it is known.

    Attributes:
        text: what was seen or declared, or why it was not tried.
        option: what would try it; empty if nothing would.
    """

    power: Power
    known: Known
    text: str = ""
    option: str = ""

    @property
    def has(self) -> bool:
        """Whether the server has it, as far as is known."""
        return self.known in {Known.SEEN, Known.DECLARED}

    def document(self) -> dict[str, str]:
        """Return it as JSON."""
        members = {"ability": str(self.power), "known": str(self.known), "text": self.text}
        return {**members, **({"option": self.option} if self.option else {})}

    @classmethod
    def read(cls, row: Mapping[str, Any]) -> "Ability":
        """Read the JSON that ``document`` returned."""
        power, known = Power(row["ability"]), Known(row["known"])
        return cls(power, known, row["text"], row.get("option", ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a run knows of a server.

    Attributes:
        started: whether it answered at all.
        tools: the listed tools, each once.
        bindings: the observed effects of tools on files; empty if none were looked for.
        sent: the methods of requests that the server sent.
        offered: the capabilities that we declared to it.
        needed: names of variables with secrets that its messages and errors name.
        strays: processes it left behind.
        ended: whether the run came to its end; otherwise its processes were ended by us.
        sandboxed: whether it ran in a sandbox.
        online: whether it had the network.
        rooted: whether it was started in, or with, a throw-away root.
        fetched: tools that fetched a URL of ours.
        escapes: threats about files outside the root that succeeded.
    """

    started: bool = True
    tools: Sequence[Mapping[str, Any]] = ()
    bindings: Bindings = field(default_factory=Bindings)
    sent: frozenset[str] = frozenset()
    offered: frozenset[str] = frozenset()
    needed: tuple[str, ...] = ()
    strays: int = 0
    ended: bool = True
    sandboxed: bool = False
    online: bool = False
    rooted: bool = False
    fetched: tuple[str, ...] = ()
    escapes: tuple[str, ...] = ()


def abilities(facts: Facts) -> tuple[Ability, ...]:
    """Return each ability at least once: what was seen first, then what is only declared."""
    if not facts.started:
        known = {Power.SECRETS: next(_secrets(facts))} if facts.needed else {}
        unknown = (Known.NOT_TRIED, "the server did not start", "")
        return tuple(Ability(power, *known.get(power, unknown)) for power in Power)
    found = [one for power, rule in _RULES.items() for one in _of(power, rule(facts))]
    runs = any(one.has for one in found if one.power is Power.CODE)
    return tuple(_as_code(one) if runs else one for one in found)


def _as_code(one: Ability) -> Ability:
    """Return an ability of a server that runs code: what the code can do was not tried."""
    if one.power not in _OF_CODE or one.known is not Known.NOT_SEEN:
        return one
    text = f"what the code that it runs can do; without that, {one.text}"
    return Ability(one.power, Known.NOT_TRIED, text)


_Found = Iterator[tuple[Known, str, str]]


def _of(power: Power, found: _Found) -> Iterator[Ability]:
    """Yield the abilities of one power: seen and declared ones, or else the best known."""
    rows = [Ability(power, known, text, way) for known, text, way in found]
    had = [row for row in rows if row.has]
    yield from had or rows[:1]


def _code(facts: Facts) -> _Found:
    ran = {name: list(said) for name, said in facts.bindings.observed.languages.items()}
    for one in facts.bindings.of(Operation.RUN):
        ran.setdefault(one.tool, []).insert(0, "programs")
    if ran:
        shown = [f"{_name(n)} ran {', '.join(dict.fromkeys(said))}" for n, said in ran.items()]
        yield Known.SEEN, "; ".join(shown[:SHOWN]), ""
    told = [tool["name"] for tool in facts.tools if tool["name"] not in ran and says_it_runs(tool)]
    tried = facts.bindings.observed.tried_code
    way = "" if tried else option(Tier.COMMANDS)
    if told:
        yield Known.DECLARED, f"by name and arguments: {_names(told)}", way
    if not facts.tools:
        yield Known.NOT_SEEN, "it has no tools", ""
    elif tried:
        yield Known.NOT_SEEN, "lines of Python, JavaScript, SQL and shell, and programs", ""
    yield Known.NOT_TRIED, "", way


def _network(facts: Facts) -> _Found:
    seen = facts.bindings.observed
    if seen.hosts:
        yield Known.SEEN, f"it looked for {_names(seen.hosts)}; the sandbox has no network", ""
    elif seen.astray:
        yield Known.SEEN, f"{seen.astray} attempts to leave the sandbox, to unknown hosts", ""
    if facts.fetched:
        yield Known.SEEN, f"to any URL of the caller: {_names(facts.fetched)}", ""
    told = [tool for tool in facts.tools if tool["name"] not in facts.fetched]
    open_world = _hinted(told, "openWorldHint", value=True)
    named = [t["name"] for t in told if _NETWORK & {*words(t["name"])} or takes_url(t)]
    yield from _declared({"openWorldHint": open_world, "name or arguments": named})
    if seen.watched:
        yield Known.NOT_SEEN, "no host was looked for at the start and in the calls tried", ""
    why = "it has the network, which is not watched" if facts.online else "its network was not seen"
    yield Known.NOT_TRIED, why, "" if facts.sandboxed and not facts.online else "--sandbox auto"


def _outside(facts: Facts) -> _Found:
    if facts.bindings.roams:
        yield Known.SEEN, "it has no folder: its tools take any path of the machine", ""
    if facts.escapes:
        yield Known.SEEN, f"attacks left the folder: {_names(facts.escapes)}", ""
    if not facts.tools:
        yield Known.NOT_SEEN, "it has no tools", ""
    unknown = [t["name"] for t in facts.tools if t["name"] in facts.bindings.unbound and _path(t)]
    if facts.bindings.of(*Operation):
        yield Known.NOT_SEEN, "attacks with paths, links and names stayed in the folder", ""
    elif unknown:
        why = f"no effect on files was seen of tools that take paths: {_names(unknown)}"
        yield Known.NOT_TRIED, why, "--bindings"
    elif facts.bindings.tries:
        yield Known.NOT_SEEN, "no tool handled a file", ""
    yield Known.NOT_TRIED, "no tool was called with a path", "" if facts.rooted else "{root}"


def _deletes(facts: Facts) -> _Found:
    found = facts.bindings.of(Operation.DELETE, Operation.MOVE)
    if found:
        yield Known.SEEN, f"files of the root: {_names(one.tool for one in found)}", ""
    told = _rest(facts.tools, (one.tool for one in found))
    destructive = _hinted(told, "destructiveHint", value=True)
    named = [tool["name"] for tool in told if _DELETING & {*words(tool["name"])}]
    yield from _declared({"destructiveHint": destructive, "name": named}, "--call NAME")
    if facts.bindings.tries:
        yield Known.NOT_SEEN, "no tool that was called removed a file", ""
    yield Known.NOT_TRIED, "", "--suite security"


def _state(facts: Facts) -> _Found:
    found = facts.bindings.of(*CHANGING - UNSEEN - {Operation.CALL})
    if found:
        yield Known.SEEN, f"files of its folder: {_names(one.tool for one in found)}", ""
    if kept := facts.bindings.observed.kept:
        yield Known.SEEN, f"files in its home: {_names(kept)}", ""
    if began := facts.bindings.observed.began:
        yield Known.SEEN, f"files of its folder, from its start: {_names(began)}", ""
    told = _rest(facts.tools, (one.tool for one in found))
    writes = _hinted(told, "readOnlyHint", value=False)
    named = [tool["name"] for tool in told if _KEEPING & {*words(tool["name"])}]
    yield from _declared({"readOnlyHint false": writes, "name": named})
    if facts.bindings.tries:
        yield Known.NOT_SEEN, "it made no file in its home, and no tool changed one", ""
    yield Known.NOT_TRIED, "", "--suite security"


def _stays(facts: Facts) -> _Found:
    if facts.strays and facts.ended and not facts.sandboxed:
        yield Known.SEEN, f"{facts.strays} were left when it had ended", ""
    told = [t["name"] for t in facts.tools if _STAYING & {*words(t["name"])}]
    yield from _declared({"name": told})
    beside = facts.bindings.observed.programs
    ran = f"; beside it ran {_names(beside)}" if beside else ""
    if facts.sandboxed:
        yield Known.NOT_TRIED, f"its sandbox ends what it started{ran}", "--sandbox off"
    if not facts.ended:
        yield Known.NOT_TRIED, f"it was ended by us{ran}", ""
    yield Known.NOT_SEEN, f"none was left when it had ended{ran}", ""


def _secrets(facts: Facts) -> _Found:
    seen = facts.bindings.observed
    kept = [name for name in seen.reads if _is_secret(name)]
    others = [name for name in seen.reads if name not in kept]
    parts = [f"it asked for {_names(kept, VARIABLES)}"] if kept else []
    parts += [f"its messages name {_names(facts.needed)}"] if facts.needed else []
    rest = f"and for others, by their names no secrets: {_names(others, VARIABLES)}"
    parts += [rest] if kept and others else []
    if parts:
        way = "" if facts.started else "--env NAME=VALUE"
        yield Known.SEEN, "; ".join(parts), way
    by = " and ".join(seen.readers)
    asked = f"its {by} code asked for {_names(seen.reads, VARIABLES) or 'no variable'}"
    if seen.copied:
        whole = "and copied the whole environment; what it looks for in that is not seen"
        yield Known.NOT_TRIED, f"{asked} {whole}", ""
    elif by:
        yield Known.NOT_SEEN, f"{asked}, as far as its tools were tried", ""
    yield Known.NOT_TRIED, "what it reads is seen in programs of Python and Node.js only", ""


def _client(facts: Facts) -> _Found:
    asked = sorted(facts.sent & {*_ASKS})
    if asked:
        yield Known.SEEN, ", ".join(_ASKS[method] for method in asked), ""
    offered = sorted(facts.offered & {*_OFFERS})
    if offered:
        yield Known.NOT_SEEN, f"we offered {', '.join(offered)}, and it asked for nothing", ""
    yield Known.NOT_TRIED, "no capability was offered to it", "--suite all"


_RULES: Final[Mapping[Power, Callable[[Facts], _Found]]] = {
    Power.CODE: _code,
    Power.NETWORK: _network,
    Power.OUTSIDE: _outside,
    Power.DELETES: _deletes,
    Power.STATE: _state,
    Power.STAYS: _stays,
    Power.SECRETS: _secrets,
    Power.CLIENT: _client,
}

_OF_CODE: Final = frozenset({Power.NETWORK, Power.OUTSIDE, Power.DELETES, Power.STATE, Power.STAYS})
"""What a line of code can do, if nothing keeps it from that."""

_NETWORK: Final = frozenset(
    {"fetch", "http", "url", "web", "browser", "browse", "download", "upload", "scrape", "crawl"}
)
_URLS: Final = frozenset({"url", "urls", "uri", "website", "webpage", "href"})
_SECRETS: Final = frozenset(
    {"key", "apikey", "token", "secret", "secrets", "password", "passwd", "passphrase", "pat"}
    | {"credential", "credentials", "dsn"}
)
_OF_SECRETS: Final = frozenset({"id", "file", "path", "base", "64"})
"""Last words of a name that may follow the word for a secret: ``ACCESS_KEY_ID``."""

_DELETING: Final = frozenset(
    {"delete", "remove", "unlink", "rm", "trash", "purge", "destroy", "drop", "wipe", "erase"}
)
_KEEPING: Final = frozenset({"save", "store", "remember", "memory", "persist", "memorize"})
_STAYING: Final = frozenset({"spawn", "daemon", "background", "daemonize"})
_ASKS: Final = {
    "sampling/createMessage": "a sample of the model",
    "roots/list": "its roots",
    "elicitation/create": "answers of the user",
}
_OFFERS: Final = frozenset({"sampling", "roots", "elicitation"})


def _declared(found: Mapping[str, Sequence[str]], way: str = "") -> _Found:
    """Yield one row for all that is declared; a tool is named at its first reason only."""
    named: set[str] = set()
    parts = []
    for reason, tools in found.items():
        fresh = [name for name in tools if name not in named]
        named.update(fresh)
        parts += [f"by {reason}: {_names(fresh)}"] if fresh else []
    if parts:
        yield Known.DECLARED, "; ".join(parts), way


def _hinted(tools: Iterable[Mapping[str, Any]], hint: str, *, value: bool) -> list[str]:
    return [tool["name"] for tool in tools if value_in(tool, "annotations", hint) is value]


def _rest(tools: Iterable[Mapping[str, Any]], names: Iterable[str]) -> Sequence[Mapping[str, Any]]:
    known = {*names}
    return [tool for tool in tools if tool["name"] not in known]


def _path(tool: Mapping[str, Any]) -> bool:
    """Return whether an argument looks like the path of a file."""
    return any(one.role is ArgumentRole.PATH for one in slots(tool.get("inputSchema")))


def takes_url(tool: Mapping[str, Any]) -> bool:
    """Return whether an argument has a name or a format of URLs."""
    schema = tool.get("inputSchema")
    return any(
        _URLS & {*words(str(name))} or leaf_of(schema, (name,)).get("format") in {"uri", "url"}
        for name in object_in(schema, "properties")
    )


def _is_secret(variable: str) -> bool:
    """Return whether the last words of the name of a variable are those of a secret."""
    parts = list(words(variable))
    while parts and parts[-1] in _OF_SECRETS:
        parts.pop()
    return bool(parts) and parts[-1] in _SECRETS


def _name(name: str) -> str:
    shown = safe(name)
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 1]}…"


def _names(names: Iterable[str], most: int = SHOWN) -> str:
    """Return some names, and the number of the others."""
    known = list(dict.fromkeys(filter(None, names)))
    more = [f"{len(known) - most} more"] if len(known) > most else []
    return ", ".join([*map(_name, known[:most]), *more])
