"""Scenarios as pytest items: collect them, run the gate once, tell each item what it found.

Items are not ``test_*`` functions, so a user's ``python_files``, autouse fixtures or equal
basenames can never turn the gate into a silent zero. Under pytest-xdist one worker judges and the
others read its results, so the server is explored once and every worker tells the same story.
"""

import json
import os
import shlex
import shutil
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from mcp_touchstone import revision as rev
from mcp_touchstone.clause import CatalogueError
from mcp_touchstone.gate import Choice, Run, UsageError, judge
from mcp_touchstone.loader import home, load, suite_file
from mcp_touchstone.plan import EXAMPLES
from mcp_touchstone.process import LaunchError
from mcp_touchstone.report.digest import findings
from mcp_touchstone.report.terminal import in_full
from mcp_touchstone.scenario import Case
from mcp_touchstone.target import Named, Target, absolute, with_arguments
from mcp_touchstone.verdict import Outcome

POLL = 0.05


class TouchstoneWarning(UserWarning):
    """A SHOULD of the protocol is broken."""


class NotConforming(Exception):  # noqa: N818  (a verdict, not a fault of ours)
    """What pytest prints for a failed item; holds the finished text."""


def target(config: pytest.Config) -> Target:
    """Build the target from the options and the ini keys.

    Raises:
        pytest.UsageError: the command is empty or cannot be split.
    """
    command = config.getoption("--mcp-server") or config.getini("mcp_server")
    try:
        words = shlex.split(command)
        startup = float(config.getoption("--mcp-timeout") or config.getini("mcp_timeout"))
    except ValueError as error:
        raise pytest.UsageError(f"mcp_server or mcp_timeout: {error}") from error
    if not words:
        raise pytest.UsageError("mcp_server: the command is empty")
    return Target(command=absolute(tuple(words)), startup=startup, named=_named(config))


def _named(config: pytest.Config) -> Named:
    def given(name: str) -> tuple[str, ...]:
        return tuple(config.getoption(f"--mcp-{name}") or config.getini(f"mcp_{name}"))

    try:
        return Named(
            calls=tuple(map(with_arguments, given("call"))),
            resources=given("resource"),
            prompts=tuple(map(with_arguments, given("prompt"))),
        )
    except ValueError as error:
        raise pytest.UsageError(f"mcp_call or mcp_prompt: {error}") from error


class Item(pytest.Item):
    """One scenario or ambient rule, in every revision the server speaks."""

    case: Case
    suite: "Suite"

    def runtest(self) -> None:
        """Look up what the run found."""
        found = self.suite.result(self.case.id)
        for text in found["warnings"]:
            warnings.warn(TouchstoneWarning(text), stacklevel=1)
        self.user_properties += [tuple(pair) for pair in found["properties"]]
        if found["skip"]:
            pytest.skip(found["skip"])
        if found["fail"]:
            raise NotConforming(found["fail"])

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *_: Any) -> Any:
        """Print the finding, not a traceback."""
        if isinstance(excinfo.value, NotConforming):
            return str(excinfo.value)
        if isinstance(excinfo.value, LaunchError | UsageError):
            return f"BROKEN  {excinfo.value}"
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Say where it stands."""
        return self.path, self.case.line - 1, self.name


class Chapter(pytest.Collector):
    """A parent for items, so that the tree of ``--collect-only`` reads well."""

    def collect(self) -> list[Any]:
        """Give nothing: the suite adds the items itself."""
        return []


class Suite:
    """The part of the plugin that exists once a server was named."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        try:
            self.registry = load()
        except CatalogueError as error:
            raise pytest.UsageError(str(error)) from error
        self.chosen = self._take_arguments()
        self._results: dict[str, dict[str, Any]] | None = None
        self._planned: frozenset[str] = frozenset()
        self._leftovers: set[Path] = set()

    def _take_arguments(self) -> frozenset[str] | None:
        """Take our node ids off the command line; None when all cases are wanted."""
        config = self.config
        named = config.args_source is pytest.Config.ArgsSource.ARGS
        ours: set[str] = set()
        rest = []
        for argument in config.args if named else []:
            cases = self._cases_of(argument)
            ours |= cases
            if not cases:
                rest.append(argument)
        if ours:
            config.args[:] = rest
            return frozenset(ours)
        if named and not config.getoption("--mcp-server"):
            return frozenset()
        return None

    def _cases_of(self, argument: str) -> set[str]:
        path, _, name = argument.partition("::")
        full = Path(path) if Path(path).is_absolute() else self.config.invocation_params.dir / path
        if full.exists():
            if not full.resolve().is_relative_to(home()):
                return set()
            path = full.resolve().relative_to(home()).as_posix()
        return {
            case.id
            for case in self.registry.cases()
            if (case.id == f"{path}::{name}" if name else f"{case.id}/".startswith(_prefix(path)))
        }

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(
        self, session: pytest.Session, items: list[pytest.Item]
    ) -> None:
        """Add our items behind the user's own."""
        choice = self._choice()
        try:
            choice.check(self.registry)
        except UsageError as error:
            raise pytest.UsageError(str(error).replace("--select", "--mcp-select")) from error
        parents: dict[str, Chapter] = {}
        own: dict[str, list[pytest.Item | pytest.Collector]] = {}
        for case in self.registry.cases():
            if self.chosen is not None and case.id not in self.chosen:
                continue
            if not any(choice.takes(case, clause) for clause in case.clauses):
                continue
            page = case.id.partition("::")[0]
            path = suite_file(case.id)
            if page not in parents:
                parents[page] = Chapter.from_parent(session, name=page, nodeid=page, path=path)
            item: Item = Item.from_parent(parents[page], name=case.name, nodeid=case.id, path=path)
            item.case, item.suite = case, self
            item.add_marker("mcp")
            items.append(item)
            own.setdefault(page, []).append(item)
        for page, group in own.items():
            report = pytest.CollectReport(page, "passed", None, group)
            session.config.hook.pytest_collectreport(report=report)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Fix what is planned, once -k, -m and --lf have had their say."""
        self._planned = frozenset(i.case.id for i in session.items if isinstance(i, Item))

    def pytest_report_header(self) -> str:
        """Say which server is judged."""
        return f"mcp-touchstone: {target(self.config).shown}"

    def _choice(self) -> Choice:
        config = self.config
        revisions = tuple(config.getoption("--mcp-revision") or config.getini("mcp_revision"))
        for revision in revisions:
            if revision not in rev.ALL:
                raise pytest.UsageError(
                    f"mcp_revision: {revision!r} is none of {', '.join(rev.ALL)}"
                )
        return Choice(
            select=tuple(config.getoption("--mcp-select") or config.getini("mcp_select")),
            revisions=revisions,
            strict=config.getoption("--mcp-strict") or config.getini("mcp_strict"),
            cases=self._planned or None,
            examples=self._number("examples", EXAMPLES),
            seed=self._number("seed", 0),
        )

    def _number(self, name: str, default: int) -> int:
        """Give a whole number from an option or an ini key."""
        given = self.config.getoption(f"--mcp-{name}")
        text = self.config.getini(f"mcp_{name}") if given is None else str(given)
        if text and not (text.isdecimal() and text.isascii()):
            raise pytest.UsageError(f"mcp_{name}: {text!r} is no whole number from 0 up")
        return int(text) if text else default

    # --- results

    def result(self, case_id: str) -> dict[str, Any]:
        """Give what the run found for one case; the first call runs the gate."""
        if self._results is None:
            uid = getattr(self.config, "workerinput", {}).get("testrunuid")
            self._results = self._shared(uid) if uid else self._judge()
        return self._results[case_id]

    def _judge(self) -> dict[str, dict[str, Any]]:
        try:
            run = judge(target(self.config), self.registry, self._choice())
        except (LaunchError, UsageError) as error:
            text = f"BROKEN  {error}"
            return {case: _told(fail=text) for case in self._planned}
        if run.interrupted:
            raise KeyboardInterrupt
        return {case: _tell(run, case) for case in self._planned}

    def _shared(self, uid: str) -> dict[str, dict[str, Any]]:
        """Judge once for all workers: the first to make the folder judges, the others wait."""
        folder = _shared_folder(uid)
        file = folder / "results.json"
        owner = folder / "owner"
        try:
            folder.mkdir()
        except FileExistsError:
            return self._await(file, owner)
        owner.write_text(str(os.getpid()), encoding="ascii")
        try:
            results = self._judge()
        except BaseException as error:
            text = f"BROKEN  the worker that judged stopped: {type(error).__name__}"
            results = {case: _told(fail=text) for case in self._planned}
            raise
        finally:
            part = folder / "results.part"
            part.write_text(json.dumps(results), encoding="utf-8")
            part.replace(file)
        return results

    def _await(self, file: Path, owner: Path) -> dict[str, dict[str, Any]]:
        while not file.exists():
            time.sleep(POLL)
            pid = _owner(owner)
            if pid is not None and not psutil.pid_exists(pid) and not file.exists():
                text = "BROKEN  the worker that judged the server is gone"
                return {case: _told(fail=text) for case in self._planned}
        found: dict[str, dict[str, Any]] = json.loads(file.read_text("utf-8"))
        return found

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Remember what the workers shared (controller of xdist)."""
        self._leftovers.add(_shared_folder(node.workerinput.get("testrunuid")))

    def pytest_unconfigure(self) -> None:
        """Remove what the workers shared, now that none needs it."""
        for folder in self._leftovers:
            shutil.rmtree(folder, ignore_errors=True)


def _shared_folder(uid: str) -> Path:
    return Path(tempfile.gettempdir()) / f"mcp-touchstone-xdist-{uid}"


def _owner(file: Path) -> int | None:
    """Give the process that judges; None while it has not said so."""
    try:
        return int(file.read_text("ascii"))
    except (OSError, ValueError):
        return None if file.parent.is_dir() else 0


def _prefix(path: str) -> str:
    return f"{path}::" if path.endswith(".py") else f"{path.rstrip('/')}/"


def _told(
    *, fail: str = "", skip: str = "", warns: tuple[str, ...] = (), more: tuple[Any, ...] = ()
) -> dict[str, Any]:
    return {"fail": fail, "skip": skip, "warnings": list(warns), "properties": list(more)}


def _tell(run: Run, case_id: str) -> dict[str, Any]:
    """Reduce a run to what one item says."""
    verdicts = [
        (verdict, [j for j in verdict.judgements if j.scenario == case_id])
        for verdict in run.verdicts
    ]
    own = [(verdict, judgements) for verdict, judgements in verdicts if judgements]
    if not own:
        reasons = {row.why for row in run.absent}
        why = run.trouble or (min(reasons) if reasons else "nothing of it applies")
        if run.trouble:
            return _told(fail=f"BROKEN  {why}")
        return _told(skip=f"not applicable: {why}")
    more = tuple(("mcp_clause", clause) for clause in sorted({v.clause.id for v, _ in own}))
    grave = [f for f in findings(run, Outcome.FAIL, Outcome.BROKEN) if _is_of(f, case_id)]
    warned = [f for f in findings(run, Outcome.WARN) if _is_of(f, case_id)]
    warns = tuple(
        f"{f.clause.id}: {f.judgement.expected}; {f.judgement.actual} ({', '.join(f.revisions)})"
        for f in warned
    )
    if grave:
        text = "\n".join(_lines(in_full(run, finding) for finding in grave))
        return _told(fail=text, warns=warns, more=more)
    if all(j.outcome is Outcome.UNSEEN for _, judgements in own for j in judgements):
        return _told(skip=f"not seen: {own[0][1][0].actual}", more=more)
    return _told(warns=warns, more=more)


def _is_of(finding: Any, case_id: str) -> bool:
    return bool(finding.judgement.scenario == case_id)


def _lines(blocks: Iterator[str]) -> Iterator[str]:
    for block in blocks:
        yield from block.splitlines()
        yield ""
