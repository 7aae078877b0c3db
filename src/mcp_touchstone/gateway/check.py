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
from mcp_touchstone.gateway.scene import Came, Cause, GatewayError, Way, hold
from mcp_touchstone.judging.gateways import ExchangePlan, Pair
from mcp_touchstone.parts.part import INFO
from mcp_touchstone.results.run import CaseResult, Execution, Run
from mcp_touchstone.results.subject import Subject
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.runtime.open_folder import open_folder
from mcp_touchstone.runtime.timeouts import Pace
from mcp_touchstone.tap.judge import results_of
from mcp_touchstone.transport.process import now
from mcp_touchstone.wire.transcript import Transcript

GATEWAY: Final = "gateway"
FIRST: Final = "contents"
"""The exchange that says whether a gateway works at all."""

SPEED: Final = "speed"
"""The exchange with many calls; its facts are times for each number of calls in flight."""

NEWEST: Final = (rev.LATEST_LEGACY, rev.LATEST_MODERN)
"""The revisions that are tried if nobody names others: the newest of each era."""

Progress = Callable[[str, str], object]
"""Called with a revision and an exchange when it begins."""


@dataclass(slots=True)
class _Found:
    """What came of a run so far."""

    pairs: dict[str, list[Pair]] = field(default_factory=dict)
    reported: dict[str, Mapping[str, object]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    troubles: list[str] = field(default_factory=list)
    stderr: str = ""
    strays: int = 0
    starts: int = 0
    connections: list[Connection] = field(default_factory=list)
    interrupted: bool = False


def check(settings: Settings, choice: Choice, progress: Progress = lambda *_: None) -> Run:
    """Judge a gateway.

    Raises:
        UserError: it cannot be judged.
    """
    registry, way = load(GATEWAYS), scene.way(settings)
    begun, started = now(), datetime.now(UTC)
    tidy()
    found = _Found()
    try:
        _Gateway(way, choice, registry, found, progress, settings.save).hold_all()
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


@dataclass(frozen=True, slots=True)
class _Gateway:
    """A gateway, and what is to be judged.

    Attributes:
        found: gets what comes of it.
        save: the folder for what our server records; None for no files.
    """

    way: Way
    choice: Choice
    registry: Registry
    found: _Found
    progress: Progress
    save: Path | None

    def hold_all(self) -> None:
        """Hold each exchange in each revision."""
        first, found, way = {FIRST: self.registry.parts[FIRST]}, self.found, self.way
        for asked in _revisions(self.way, self.choice):
            revision = asked
            exchanges = needed(self.registry, self.choice, revision)
            for name, planned in {**first, **exchanges}.items():
                needless = planned.part.lingers and way.http
                needless = needless or (planned.several and not way.several)
                if needless or (planned.once and len(found.pairs) > 1):
                    continue
                self.progress(revision, name)
                through = self._hold(planned, name, revision)
                if through.trouble and name != FIRST:
                    through = self._hold(planned, name, revision)
                if name == FIRST:
                    if through.trouble:
                        found.refused[revision] = through.trouble
                        found.stderr = through.stderr
                        break
                    if through.revision in found.pairs:
                        found.refused[revision] = f"it answers with {through.revision}"
                        break
                    revision = through.revision
                    info = through.info or {}
                    is_ours = info.get("name") == INFO["name"]  # passed on; it is not the gateway's
                    found.reported[revision] = {} if is_ours else info
                    if not through.reached:
                        found.troubles.append(f"{revision}: {Cause.NOT_REACHED}")
                        found.stderr = through.stderr
                        break
                    found.pairs[revision] = []
                elif through.trouble:
                    found.troubles.append(f"{revision}: {through.trouble}")
                    found.stderr = through.stderr
                    continue
                if name not in exchanges:
                    continue
                pair = self._pair(through, planned, name, revision)
                found.pairs[revision].append(pair)  # first, so that Ctrl-C loses no finding
                found.pairs[revision][-1] = self._confirmed(pair, planned, name, revision)

    def _hold(self, planned: ExchangePlan, name: str, revision: str) -> Came:
        """Hold an exchange through the gateway, which is started for it."""
        through = hold(self.way, planned, name, revision)
        self.found.starts += 1
        self.found.strays += through.strays
        self._keep(through, f"{self.found.starts:02}-{revision}-{name}-through")
        return through

    def _keep(self, came: Came, name: str) -> None:
        """Write what our server recorded, and keep the connections of our clients for their files.

        Raises:
            GatewayError: it cannot be written.
        """
        if self.save is None:
            return
        self.found.connections += came.connections
        try:
            self.save.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder = open_folder(self.save.resolve())
            for file, raw in came.recordings:
                folder.write(f"{name}-{file}", raw)
        except OSError as error:
            raise GatewayError(f"--save {self.save}: {error.strerror}") from error

    def _pair(self, through: Came, planned: ExchangePlan, name: str, revision: str) -> Pair:
        """Hold an exchange without the gateway too; return both."""
        direct = hold(self.way.direct, planned, name, revision)
        self._keep(direct, f"{self.found.starts:02}-{revision}-{name}-direct")
        clients = through.held.clients
        transcript = clients[0] if clients else Transcript(revision, lambda: 0.0)
        return Pair(
            transcript,
            ServerProfile(Pace(self.way.target.timeout)),
            scenario=name,
            direct=direct.held,
            through=through.held,
            expected=self.way.expected,
        )

    def _confirmed(self, pair: Pair, planned: ExchangePlan, name: str, revision: str) -> Pair:
        """Hold an exchange with findings again until each has come again, or often enough."""
        open_, tried = self._findings(pair, revision), 0
        while open_ and tried < self.choice.repeats:
            self.progress(revision, f"{name}, again")
            through = self._hold(planned, name, revision)
            if through.trouble:
                return pair
            tried += 1
            open_ -= self._findings(self._pair(through, planned, name, revision), revision)
        return replace(pair, passing=dict.fromkeys(open_, tried))

    def _findings(self, pair: Pair, revision: str) -> set[str]:
        """Return the clauses that an exchange breaks."""
        where = revision, self.way.target.transport
        judged = (one.judgements for one in results_of(self.registry, self.choice, where, [pair]))
        findings = {Outcome.FAIL, Outcome.WARN}
        return {one.clause for some in judged for one in some if one.outcome in findings}


def speeds(pairs: Iterable[Pair]) -> Iterator[str]:
    """Yield the speed through the gateway, beside that without it."""
    for pair in pairs:
        lanes = pair.direct.facts if pair.scenario == SPEED else {}
        for flying, alone in lanes.items():
            through = pair.through.facts.get(flying)
            if isinstance(alone, tuple) and through:
                (took, rate), (takes, goes) = alone, through
                yield (
                    f"speed with {flying} calls in flight: {took * 1000:.2g} ms for a call, "
                    f"{takes * 1000:.2g} ms through the gateway ({takes / took:.2g} times); "
                    f"{rate:,.0f} calls a second, {goes:,.0f} through the gateway "
                    f"({goes / rate:.2g} times)"
                )
