"""Hold each exchange directly and through a gateway, and judge the pairs."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.loader import GATEWAYS, load
from mcp_touchstone.catalog.scenario import Registry
from mcp_touchstone.config.settings import Settings, words
from mcp_touchstone.connection.connection import Connection
from mcp_touchstone.discovery.recon import ServerProfile
from mcp_touchstone.engine.choice import Choice
from mcp_touchstone.engine.runner import tidy
from mcp_touchstone.engine.stages import fold
from mcp_touchstone.gateway import scene
from mcp_touchstone.gateway.scene import GatewayError, Way, hold
from mcp_touchstone.judging.gateway_talk import ExchangePlan
from mcp_touchstone.judging.hops import Pair, RecordedExchange
from mcp_touchstone.parts.part import INFO
from mcp_touchstone.results.run import CaseResult, Execution, Run
from mcp_touchstone.results.subject import Subject
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.runtime.open_folder import open_folder
from mcp_touchstone.runtime.timeouts import Pace
from mcp_touchstone.tap.judge import results_of
from mcp_touchstone.transport.process import now
from mcp_touchstone.wire.framing import object_in

GATEWAY: Final = "gateway"
FIRST: Final = "contents"
"""The exchange that says whether a gateway works at all."""

SPEED: Final = "speed"
"""The exchange with many calls; its facts are times for each number of calls in flight."""

NEWEST: Final = (rev.LATEST_LEGACY, rev.LATEST_MODERN)
"""The revisions that are tried if nobody names others: the newest of each era."""

Progress = Callable[[str, str], object]
"""Called with a revision and an exchange when it begins."""


def check(settings: Settings, choice: Choice, progress: Progress = lambda *_: None) -> Run:
    """Judge a gateway.

    Raises:
        UserError: it cannot be judged.
    """
    registry, way = load(GATEWAYS), scene.way(settings)
    begun, started = now(), datetime.now(UTC)
    tidy()
    found = _Course(way, choice, registry, progress, settings.save)
    try:
        found.hold_all()
    except KeyboardInterrupt:  # what was held is judged
        found.interrupted = True
    choice = replace(choice, strict=choice.strict or way.expected.transparent)
    results: list[CaseResult] = []
    for revision, pairs in found.pairs.items():
        where = revision, way.target.transport
        results += results_of(registry, choice, where, pairs)
    trouble = "; ".join(dict.fromkeys(found.troubles))
    if not found.reported and not trouble:
        trouble = "; ".join(f"{revision}: {why}" for revision, why in found.refused.items())
    return Run(
        Subject(
            kind=GATEWAY,
            reported=found.reported,
            refused=found.refused,
            asked=tuple(found.reported) + tuple(found.refused),
            command=way.target.command,
            url=way.target.url,
            stderr=found.stderr if trouble else "",
            sandbox=str(way.target.method or ""),
            again=_again(settings),
        ),
        results=results,
        verdicts=fold(results, registry, choice, partial=bool(trouble) or found.interrupted),
        trouble=trouble,
        connections=found.connections,
        execution=Execution(
            interrupted=found.interrupted,
            processes=found.starts,
            strays=found.strays,
            notes=(
                *speeds(pair for pairs in found.pairs.values() for pair in pairs),
                *_left_out(registry, choice, _revisions(way, choice)),
            ),
            seconds=now() - begun,
            started=started.isoformat(timespec="seconds"),
        ),
        floor=choice.floor,
    )


def _again(settings: Settings) -> tuple[str, ...]:
    """Return the words of the command that does this again."""
    given = (
        "expects",
        "config_template",
        "upstream_port",
        "url",
        "env",
        "cwd",
        "sandbox",
        "online",
    )
    own = {name: value for name in given if (value := getattr(settings, name))}
    named = ("--", *settings.command) if settings.command else ()
    return (GATEWAY, "-v", *(settings.origin or (*words(own, GATEWAY), *named)))


def needed(registry: Registry, choice: Choice, revision: str) -> dict[str, ExchangePlan]:
    """Return the exchanges that show whether the selected rules are kept.

    A rule on all traffic reads each exchange that is held. Selected alone, it is judged by those
    of its chapter.
    """
    exchanges: Mapping[str, ExchangePlan] = registry.parts
    places = {
        (rule.of, "" if rule.of else clause.chapter)
        for rule in registry.ambients
        if choice.selects(rule)
        for clause in rule.clauses
        if revision in clause.revisions and choice.takes(rule, clause)
    }
    return {
        name: one for name, one in exchanges.items() if places & {(name, ""), ("", one.chapter)}
    }


def _left_out(registry: Registry, choice: Choice, revisions: tuple[str, ...]) -> Iterator[str]:
    """Yield a sentence if exchanges are left out because of a selection of rules."""
    if not (choice.select or choice.levels or choice.cases):
        return
    read = {name for revision in revisions for name in needed(registry, choice, revision)}
    if rest := len(registry.parts) - len(read):
        names = ", ".join(name for name in registry.parts if name in read)
        yield f"the selected rules are judged by: {names}; {rest} other exchanges were left out"


def _revisions(way: Way, choice: Choice) -> tuple[str, ...]:
    if way.expected.revision:
        return (way.expected.revision,)
    return choice.revisions or NEWEST


@dataclass(slots=True)
class _Course:
    """One run, and what came of it so far.

    Attributes:
        save: the folder for what our server records; None for no files.
    """

    way: Way
    choice: Choice
    registry: Registry
    progress: Progress
    save: Path | None
    pairs: dict[str, list[Pair]] = field(default_factory=dict)
    reported: dict[str, Mapping[str, object]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    troubles: list[str] = field(default_factory=list)
    stderr: str = ""
    strays: int = 0
    starts: int = 0
    connections: list[Connection] = field(default_factory=list)
    interrupted: bool = False

    def hold_all(self) -> None:
        """Hold each exchange in each revision."""
        for asked in _revisions(self.way, self.choice):
            through = self._hold(FIRST, asked)
            if through.trouble:
                self.refused[asked], self.stderr = through.trouble, through.stderr
                continue
            revision = through.clients[0].revision
            if revision in self.pairs:
                self.refused[asked] = f"it answers with {revision}"
                continue
            self.reported[revision] = _info(through)
            if not through.upstream:
                self.troubles.append(f"{revision}: the gateway never reached our server")
                self.stderr = through.stderr
                continue
            self.pairs[revision], held = [], {FIRST: through}
            wanted = needed(self.registry, self.choice, asked)
            for name in sorted(wanted, key=lambda one: one != FIRST):
                planned = wanted[name]
                needless = planned.part.lingers and self.way.http
                needless = needless or (planned.several and len(self.way.servers) == 1)
                if needless or (planned.once and len(self.pairs) > 1):
                    continue
                through = held.get(name) or self._hold(name, revision)
                if through.trouble:
                    through = self._hold(name, revision)
                if through.trouble:
                    self.troubles.append(f"{revision}: {through.trouble}")
                    self.stderr = through.stderr
                    continue
                pair = self._pair(through, name, revision)
                self.pairs[revision].append(pair)  # first, so that Ctrl-C loses no finding
                self.pairs[revision][-1] = self._confirmed(pair, name, revision)

    def _hold(self, name: str, revision: str, again: str = "") -> RecordedExchange:
        """Hold an exchange through the gateway, which is started for it."""
        self.progress(revision, f"{name}{again}")
        through = hold(self.way, self.registry.parts[name], name, revision)
        self.starts += 1
        self.strays += through.strays
        self._keep(through, f"{self.starts:02}-{revision}-{name}-through")
        return through

    def _keep(self, held: RecordedExchange, name: str) -> None:
        """Write what our server recorded, and keep the connections of our clients for their files.

        Raises:
            GatewayError: it cannot be written.
        """
        if self.save is None:
            return
        self.connections += held.connections
        try:
            self.save.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder = open_folder(self.save.resolve())
            for file, raw in held.recordings:
                folder.write(f"{name}-{file}", raw)
        except OSError as error:
            raise GatewayError(f"--save {self.save}: {error.strerror}") from error

    def _pair(self, through: RecordedExchange, name: str, revision: str) -> Pair:
        """Hold an exchange without the gateway too; return both."""
        direct = hold(self.way.direct, self.registry.parts[name], name, revision)
        self._keep(direct, f"{self.starts:02}-{revision}-{name}-direct")
        return Pair(
            through.clients[0],
            ServerProfile(Pace(self.way.target.timeout)),
            scenario=name,
            direct=direct,
            through=through,
            expected=self.way.expected,
        )

    def _confirmed(self, pair: Pair, name: str, revision: str) -> Pair:
        """Hold an exchange with findings again until each has come again, or often enough."""
        open_, tried = self._findings(pair, revision), 0
        while open_ and tried < self.choice.repeats:
            through = self._hold(name, revision, ", again")
            if through.trouble:
                return pair
            tried += 1
            open_ -= self._findings(self._pair(through, name, revision), revision)
        return replace(pair, passing=dict.fromkeys(open_, tried))

    def _findings(self, pair: Pair, revision: str) -> set[str]:
        """Return the clauses that an exchange breaks."""
        where = revision, self.way.target.transport
        judged = (one.judgements for one in results_of(self.registry, self.choice, where, [pair]))
        findings = {Outcome.FAIL, Outcome.WARN}
        return {one.clause for some in judged for one in some if one.outcome in findings}


def _info(held: RecordedExchange) -> Mapping[str, object]:
    """Return the name and version that a gateway reports; empty if it passes ours on."""
    result = held.steps["opening"].result
    own = object_in(result, "_meta").get(f"{rev.META}serverInfo")
    found = result.get("serverInfo", own)
    return found if isinstance(found, dict) and found.get("name") != INFO["name"] else {}


def speeds(pairs: Iterable[Pair]) -> Iterator[str]:
    """Yield the speed through the gateway, beside that without it."""
    for pair in pairs:
        lanes = pair.direct.facts if pair.scenario == SPEED else {}
        for flying, alone in lanes.items():
            through = pair.through.facts.get(flying)
            if isinstance(alone, tuple) and through:
                (took, rate), (takes, goes) = alone, through
                calls = "1 call" if flying == "1" else f"{flying} calls"
                yield (
                    f"speed with {calls} in flight: {_short(took * 1000)} ms for a call, "
                    f"{_short(takes * 1000)} ms through the gateway ({_short(takes / took)} times)"
                    f"; {rate:,.0f} calls a second, {goes:,.0f} through the gateway "
                    f"({_short(goes / rate)} times)"
                )


def _short(number: float) -> str:
    """Return a number with two digits that count, and never as a power of ten."""
    return f"{float(f'{number:.2g}'):,g}"
