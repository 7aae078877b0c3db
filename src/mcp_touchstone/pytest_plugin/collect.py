"""Scenarios as pytest items: collect them, check the server once, report the findings of each item.

Items are not ``test_*`` functions, so that a user's ``python_files``, autouse fixtures or equal
file names cannot hide them. Under pytest-xdist one worker checks, and the others read its results.
"""

import os
import re
import shutil
import warnings
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

import pytest

from mcp_touchstone.catalog.errors import UserError
from mcp_touchstone.catalog.loader import home, suite_file
from mcp_touchstone.catalog.scenario import Case
from mcp_touchstone.config.settings import Settings
from mcp_touchstone.engine.choice import Choice
from mcp_touchstone.engine.runner import UsageError, judge
from mcp_touchstone.pytest_plugin import TouchstoneWarning, xdist
from mcp_touchstone.pytest_plugin.jobs import CLIENT, Job, jobs
from mcp_touchstone.pytest_plugin.options import SERVER
from mcp_touchstone.report import items as report
from mcp_touchstone.report.items import BASELINE, ItemResult
from mcp_touchstone.report.progress import Heartbeat, Progress
from mcp_touchstone.report.text import masked
from mcp_touchstone.results.run import Run
from mcp_touchstone.runtime.printable import printable, safe
from mcp_touchstone.runtime.secrets import arguments
from mcp_touchstone.transport.process import LaunchError, now

GOLDEN: Final = "mcp-golden"
"""The parent of the items of golden recordings."""


class NotConforming(Exception):  # noqa: N818  (a verdict, not a fault of ours)
    """The failure of an item; its message is the text that pytest prints."""

    def __init__(self, text: str) -> None:
        super().__init__(printable(text))


class _Item(pytest.Item):
    """An item of a job."""

    job: Job
    fixturenames: Sequence[str] = ()
    """Empty, but required: hooks of other plugins and of projects read it."""

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *_: Any) -> Any:
        """Print the finding, not a traceback."""
        if isinstance(excinfo.value, NotConforming | TouchstoneWarning):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return file, line and name."""
        return self.path, 0, self.name


class ScenarioItem(_Item):
    """One scenario or rule in every revision the server supports, or an item on the whole run."""

    suite: "Suite"
    case: Case | None = None
    result_name: str = BASELINE

    def runtest(self) -> None:
        """Look up the result of the run."""
        found = self.suite.result(self.job, self.result_name)
        named = [("mcp_target", self.job.name)] if self.job.name else []
        self.user_properties += [*named, *found.properties]
        path, line, _ = self.reportinfo()
        for text in found.warnings:
            warnings.warn_explicit(TouchstoneWarning(safe(text)), None, str(path), line + 1)
        if found.outcome == report.SKIP:
            pytest.skip(safe(found.text))
        if found.outcome == report.KNOWN:
            pytest.xfail(safe(found.text))
        if found.outcome == report.FAIL:
            raise NotConforming(found.text)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return file, line and name."""
        return self.path, self.case.line - 1 if self.case else 0, self.name


class GoldenItem(_Item):
    """The golden recording of one server."""

    def runtest(self) -> None:
        """Compare the server with its recording, or record the differences."""
        from mcp_touchstone.golden.recorder import verify  # noqa: PLC0415  (only when used)
        from mcp_touchstone.report import golden  # noqa: PLC0415  (the same)

        assert self.job.golden is not None  # noqa: S101  (collected only with a folder)
        update = bool(self.config.getoption("--mcp-golden-update"))
        target = self.job.golden_target or self.job.target
        try:
            results = verify(
                target, self.job.golden, self.job.choice.revisions, update=update, create=update
            )
        except (LaunchError, UsageError) as error:
            raise NotConforming(_hide(self.job, str(error))) from error
        if any(one.exit_code for one in results):
            lines = [line for one in results for line in golden.verified(one)]
            lines.append("`pytest --mcp-golden-update` records the answers that differ")
            raise NotConforming(_hide(self.job, "\n".join(lines)))


class ChapterNode(pytest.Collector):
    """The parent of items of one file, for the tree of ``--collect-only``."""

    def collect(self) -> list[Any]:
        """Return nothing: the suite adds the items itself."""
        return []


class Suite:
    """The part of the plugin that is registered if a server is named."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.jobs = jobs(config)
        for name, text in _markers(self.jobs):
            config.addinivalue_line("markers", f"{name}: {text}")
        self.chosen = self._take_arguments()
        self._found: dict[str, xdist.Document] = {}
        self._planned: dict[str, tuple[str, ...]] = {}
        self._first: dict[str, tuple[str, ...]] = {}
        self._leftovers: set[str] = set()

    # --- collecting

    def _take_arguments(self) -> frozenset[str] | None:
        """Remove our node ids from the arguments; return them, or None to select all items.

        All items are selected unless every argument is a node id or a test file. If an option
        names the server, test files exclude no item.
        """
        config = self.config
        if config.args_source is not pytest.Config.ArgsSource.ARGS:
            return None
        ours: set[str] = set()
        rest = []
        for argument in config.args:
            items = self._items_of(argument)
            ours |= items
            if not items:
                rest.append(argument)
        if ours:
            config.args[:] = rest
            return frozenset(ours)
        here = config.invocation_params.dir
        if any((here / argument).is_dir() for argument in rest):
            return None
        if config.getoption("--mcp") or any(config.getoption(f"--mcp-{n}") for n in SERVER):
            return None
        return frozenset()

    def _items_of(self, argument: str) -> set[str]:
        path, _, name = argument.partition("::")
        full = Path(path) if Path(path).is_absolute() else self.config.invocation_params.dir / path
        if full.exists():
            if not full.resolve().is_relative_to(home()):
                return set()
            path = full.resolve().relative_to(home()).as_posix()
        below = f"{path}::" if path.endswith(".py") else f"{path.rstrip('/')}/"
        wanted = f"{path}::{name}"
        return {
            node
            for job in self.jobs
            for node, plain in _nodes(job)
            if (wanted in {node, plain} if name else f"{plain}/".startswith(below))
        }

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(
        self, session: pytest.Session, items: list[pytest.Item]
    ) -> None:
        """Add our items after the user's own."""
        parents: dict[str, ChapterNode] = {}
        own: dict[str, list[pytest.Item | pytest.Collector]] = {}
        for job in self.jobs:
            cases: dict[str, Case | None] = {job.judged: None}
            cases |= {
                case.id: case
                for case in job.registry.cases()
                if any(job.choice.takes(case, clause) for clause in case.clauses)
                and (self.chosen is not None or _fits(job, case))
            }
            if job.book is not None and job.book.baseline is not None:
                cases[BASELINE] = None
            for plain, case in cases.items():
                item = self._item(session, job, plain, case, parents)
                if self.chosen is None or item.nodeid in self.chosen:
                    items.append(item)
                    own.setdefault(item.nodeid.partition("::")[0], []).append(item)
            if job.golden is not None and (self.chosen is None or _golden_id(job) in self.chosen):
                golden = _golden_item(session, job)
                items.append(golden)
                own.setdefault(GOLDEN, []).append(golden)
        for page, group in own.items():
            report = pytest.CollectReport(page, "passed", None, group)
            session.config.hook.pytest_collectreport(report=report)

    def _item(
        self,
        session: pytest.Session,
        job: Job,
        plain: str,
        case: Case | None,
        parents: dict[str, ChapterNode],
    ) -> ScenarioItem:
        page, _, name = plain.partition("::")
        if case is not None:
            path = suite_file(case.id)
        else:
            path = self.config.rootpath / (job.book.path if job.book else "")
        if page not in parents:
            parents[page] = ChapterNode.from_parent(session, name=page, nodeid=page, path=path)
        item: ScenarioItem = ScenarioItem.from_parent(
            parents[page], name=name + job.suffix, nodeid=plain + job.suffix, path=path
        )
        item.suite, item.job, item.case, item.result_name = self, job, case, plain
        item.add_marker("mcp")
        whole = job.registry.cases() if plain == job.judged else [case] if case else []
        for marker in dict.fromkeys(mark for one in whole for mark in _marks(one)):
            item.add_marker(marker)
        if case is not None:
            item.extra_keyword_matches.update(clause.id for clause in case.clauses)
        return item

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Plan the items that ``-k``, ``-m`` and ``--lf`` have selected."""
        items = [item for item in session.items if isinstance(item, ScenarioItem)]
        for job in self.jobs:
            self._planned[job.name] = tuple(
                item.result_name for item in items if item.job is job and item.case is not None
            )
            self._first[job.name] = tuple(
                item.result_name
                for item in items
                if item.job is job and item.result_name == job.judged
            )

    def pytest_report_header(self) -> list[str]:
        """Return lines with the servers and their sandboxes, or the reason they are not checked."""
        idle = ""
        if self.chosen is not None and not self.chosen:
            idle = "(not checked: only test files were named; add --mcp)"
        named = {job.configuration for job in self.jobs if job.configuration is not None}
        lines = [f"mcp-touchstone: configuration: {path}" for path in named]
        for job in self.jobs:
            words = ("mcp-touchstone:", job.target.shown, f"[{job.name}]" if job.name else "", idle)
            lines.append(_hide(job, " ".join(word for word in words if word)))
            if job.target.shelter:
                lines.append(f"  sandbox: {job.target.shelter}")
        return lines

    # --- judging

    def result(self, job: Job, name: str) -> ItemResult:
        """Return the result of one item; the first call checks the server."""
        if job.name not in self._found:
            uid = getattr(self.config, "workerinput", {}).get("testrunuid")
            try:
                if uid is None:
                    found = self._judge(job)
                else:
                    place = xdist.folder(uid, self.jobs.index(job))
                    found = xdist.once(place, lambda: self._judge(job))
            except xdist.WorkerLost as error:
                found = self._broken(job, error)
            self._found[job.name] = found
        return ItemResult.read(self._found[job.name]["items"][name])

    def _judge(self, job: Job) -> xdist.Document:
        planned = self._planned[job.name]
        choice = replace(job.choice, cases=frozenset(planned) or None)
        if job.settings is not None:
            return self._judge_other(job, job.settings, choice)
        progress = Progress(now)
        heartbeat = Heartbeat(now, self._tell, progress.text)
        heartbeat.start()
        try:
            run = judge(job.target, job.registry, choice, on_event=progress.on_event)
        except (LaunchError, UsageError) as error:
            return self._broken(job, error)
        finally:
            heartbeat.stop()
        if run.execution.interrupted:
            raise KeyboardInterrupt
        return self._results(job, choice, run)

    def _results(self, job: Job, choice: Choice, run: Run) -> xdist.Document:
        if job.book is not None:
            run, _ = job.book.hold(run, job.registry, choice)
        cases = [case for case in job.registry.cases() if case.id in self._planned[job.name]]
        found = report.results(run, cases, self._first[job.name])
        return _document(job, found, report.summary(run))

    def _judge_other(self, job: Job, settings: Settings, choice: Choice) -> xdist.Document:
        from mcp_touchstone.gateway import check as gateways  # noqa: PLC0415  (only when used)
        from mcp_touchstone.tap import check as clients  # noqa: PLC0415  (as above)

        check = clients.check if job.kind == CLIENT else gateways.check
        try:
            run = check(settings, choice)
        except UserError as error:
            return self._broken(job, error)
        if run.execution.interrupted:
            raise KeyboardInterrupt
        return self._results(job, choice, run)

    def _broken(self, job: Job, error: Exception) -> xdist.Document:
        names = (*self._first[job.name], *self._planned[job.name], BASELINE)
        return _document(job, report.broken(str(error), names, job.kind))

    # --- showing

    def _tell(self, line: str) -> None:
        """Print a line of progress, unless pytest is quiet or this is a worker of xdist."""
        terminal = self.config.pluginmanager.get_plugin("terminalreporter")
        if terminal is None or self.config.option.verbose < 0:
            return
        capture = self.config.pluginmanager.get_plugin("capturemanager")
        with capture.global_and_fixture_disabled() if capture else nullcontext():
            terminal.ensure_newline()
            terminal.write_line(safe(f"mcp-touchstone: {line}"), flush=True)

    def pytest_terminal_summary(self, terminalreporter: "pytest.TerminalReporter") -> None:
        """Print the summary of each server."""
        for number, job in enumerate(self.jobs):
            found = self._found.get(job.name)
            for uid in () if found else sorted(self._leftovers):
                found = xdist.read(xdist.folder(uid, number)) or found
            if found and found["summary"]:
                head, *lines = found["summary"]
                terminalreporter.section(safe(f"mcp-touchstone: {head}{job.suffix}"))
                terminalreporter.write("\n".join([*map(safe, lines), ""]))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Record the id of the folder that the workers shared; called in the xdist controller."""
        self._leftovers.add(node.workerinput.get("testrunuid"))

    def pytest_unconfigure(self) -> None:
        """Remove the folders that the workers shared."""
        for uid in self._leftovers:
            for number in range(len(self.jobs)):
                shutil.rmtree(xdist.folder(uid, number), ignore_errors=True)


def _document(
    job: Job, results: dict[str, ItemResult], summary: Sequence[str] = ()
) -> xdist.Document:
    """Return the results of a job for all workers, without secrets."""
    items = {}
    for name, one in results.items():
        warned = tuple(_hide(job, line) for line in one.warnings)
        items[name] = asdict(replace(one, text=_hide(job, one.text), warnings=warned))
    return {"items": items, "summary": [_hide(job, line) for line in summary]}


def _hide(job: Job, text: str) -> str:
    """Return a text without the secrets in our variables and in the command of a job."""
    own = arguments(job.target.command)
    return masked(text, {**os.environ, **job.target.env, **own})


def _golden_item(session: pytest.Session, job: Job) -> GoldenItem:
    assert job.golden is not None  # noqa: S101  (the caller looked)
    parent: ChapterNode = ChapterNode.from_parent(
        session, name=GOLDEN, nodeid=GOLDEN, path=job.golden
    )
    name = f"answers_as_recorded{job.suffix}"
    item: GoldenItem = GoldenItem.from_parent(
        parent, name=name, nodeid=_golden_id(job), path=job.golden
    )
    item.job = job
    item.add_marker("mcp")
    return item


def _golden_id(job: Job) -> str:
    return f"{GOLDEN}::answers_as_recorded{job.suffix}"


def _fits(job: Job, case: Case) -> bool:
    """Return whether a case has a clause on the transport of the server."""
    spoken = job.target.transport
    return job.kind == CLIENT or any(spoken in clause.transports for clause in case.clauses)


def _nodes(job: Job) -> Iterator[tuple[str, str]]:
    """Yield the ids of the items of a job, with and without its name."""
    if job.golden is not None:
        yield _golden_id(job), _golden_id(job)
    for plain in (job.judged, *(case.id for case in job.registry.cases()), BASELINE):
        yield plain + job.suffix, plain


def _marks(case: Case) -> Iterator[str]:
    """Yield the markers of an item: its suite and its chapters."""
    folder, _, page = case.id.partition("::")[0].partition("/")
    yield f"mcp_{folder.removesuffix('_suite')}"
    chapters = dict.fromkeys([page.rpartition("/")[2].removesuffix(".py")])
    chapters.update(dict.fromkeys(clause.chapter for clause in case.clauses))
    yield from (f"mcp_{re.sub(r'[^0-9A-Za-z_]', '_', chapter)}" for chapter in chapters)


def _markers(found: list[Job]) -> list[tuple[str, str]]:
    """Return the markers, each with its description."""
    cases = [case for job in found for case in job.registry.cases()]
    named = {mark for case in cases for mark in _marks(case)}
    meanings = {"mcp_conformance": "the suite conformance", "mcp_security": "the suite security"}
    return [
        (mark, meanings.get(mark, f"the chapter {mark.removeprefix('mcp_')}"))
        for mark in sorted(named)
    ]
