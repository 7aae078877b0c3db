"""`check --watch`: look for changed files, and check again when there are some."""

from __future__ import annotations

import contextlib
import gc
import os
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.errors import UserError
from mcp_touchstone.commands.output import INTERRUPTED
from mcp_touchstone.gate import FILE
from mcp_touchstone.report.digest import findings
from mcp_touchstone.report.text import plural
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.runtime.console import say
from mcp_touchstone.runtime.scratch import LOOKED_AT, entries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from typing import Final

    from mcp_touchstone.config.settings import Settings
    from mcp_touchstone.results.run import Run

POLL: Final = 1.0
"""Seconds between two looks at the files."""

SETTLED: Final = 0.2
"""Seconds without a further change after which a check begins: an editor writes in steps."""

UNSETTLED: Final = 10
"""Looks after which a check begins although files still change."""

OFTEN: Final = 3
"""Checks in a row that change a file, after which it is not the user who does."""

SHOWN: Final = 5
"""Names of changed files that are printed."""

Look = dict[str, tuple[int, int]]
"""File -> modification time in ns, and size in bytes."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The findings that failed a run: what selects them, and the revisions they appeared in."""

    names: frozenset[str]
    revisions: frozenset[str]

    @classmethod
    def of(cls, run: Run) -> Failed:
        """Return what failed; a clause that others judge too by the scenario that showed it."""
        found = [
            one
            for one in findings(run, Outcome.FAIL, Outcome.WARN)
            if run.floor.counts(one.clause, one.outcome)
        ]
        names = (one.judgement.scenario if one.among else one.clause.id for one in found)
        return cls(frozenset(names), frozenset(one.judgement.revision for one in found))

    def alone(self, settings: Settings) -> Settings:
        """Return settings that check only these again, and write nothing."""
        return replace(
            settings,
            select=tuple(sorted(self.names)),
            revision=tuple(r for r in rev.ALL if r in self.revisions),
            level=(),
            report=(),
            json=None,
            save=None,
            scripts=None,
            since=None,
            budget=None,
            update_baseline=False,
            update_budget=False,
            quiet=True,
        )


def watched(
    several: Iterable[Settings], named: Collection[Path], config: Path | None
) -> list[Path]:
    """Return what is watched: the files of the commands, and the named paths or working folders.

    Raises:
        UserError: a named path does not exist.
    """
    for path in named:
        if not path.exists():
            raise UserError(f"--watch {path}: there is no such file; targets stand before --watch")
    files, folders = {config} if config else set(), {*named}
    for one in several:
        folder = Path() if one.cwd is None or "{" in one.cwd else Path(one.cwd)
        files |= {folder / word for word in one.command if (folder / word).is_file()}
        folders |= set() if named else {folder}
    return sorted(folders | {file for file in files if not folders & {*file.parents}})


def written(several: Iterable[Settings]) -> tuple[str, ...]:
    """Return the files and folders that checks write, relative to the working folder."""
    found: list[Path | None] = []
    for one in several:
        found += [one.json, one.save, one.scripts]
        found += [Path(word.partition(":")[2]) for word in one.report]
        found += [one.baseline or one.usual_baseline or Path(FILE)] * one.update_baseline
        found += [one.budget or Path("budgets.toml")] * one.update_budget
    return tuple(os.path.relpath(path) for path in found if path)


def look(paths: Iterable[Path], without: tuple[str, ...] = ()) -> Look:
    """Return the files at paths and below them, as they are; no file is opened.

    Args:
        paths: files and folders. Caches, packages and hidden folders are skipped.
        without: beginnings of names that are left out.

    Raises:
        UserError: there are too many.
    """
    found = {}
    for path in paths:
        below = entries(path) if path.is_dir() else [""]
        if below is None:
            raise UserError(f"--watch: {path} has over {LOOKED_AT} files; name some: --watch src")
        prefix = "" if path == Path() else f"{path}{os.sep}" if path.is_dir() else str(path)
        for name in {prefix + name for name in below}:
            if not name.startswith(without):
                with contextlib.suppress(OSError):
                    known = os.stat(name)  # noqa: PTH116  (many objects of Path take longer)
                    found[name] = (known.st_mtime_ns, known.st_size)
    return found


def watch(
    look: Callable[[], Look],
    check: Callable[[], int],
    pause: Callable[[float], object],
    paths: Sequence[Path] = (Path(),),
) -> int:
    """Check now, and again after each change, until Ctrl-C; return the code of the last check.

    A file that is changed during a check starts another one, unless checks change it themselves.
    New files count only between checks: a server may write them.

    Args:
        look: returns the files as they are.
        check: checks once; returns the exit code.
        pause: waits some seconds.

    Raises:
        KeyboardInterrupt: no check has finished.
    """
    code = None
    streak: Counter[str] = Counter()
    where = ", ".join("this folder" if path == Path() else str(path) for path in paths)
    try:
        seen = look()
        while True:
            ended = check()
            if ended == INTERRUPTED:
                return ended if code is None else code
            code = ended
            gc.collect()  # nothing else of the check is kept
            now = look()
            during = {name for name in seen if name in now and seen[name] != now[name]}
            streak = Counter({name: streak[name] + 1 for name in during})
            changed = {name for name in during if streak[name] < OFTEN}
            if during - changed:
                say(f"{_names(during - changed)}: each check changes it, so it starts none")
            if not changed:
                say(f"watching {plural(len(now), 'file')} in {where}; Ctrl-C ends", flush=True)
                seen = now
            while not changed:
                pause(POLL)
                now = look()
                changed = {name for name in {*seen, *now} if seen.get(name) != now.get(name)}
            for _ in range(UNSETTLED):
                before = now
                pause(SETTLED)
                now = look()
                if now == before:
                    break
            seen = now
            say("", f"changed: {_names(changed)}", flush=True)
    except KeyboardInterrupt:
        if code is None:
            raise
        return code


def _names(found: Collection[str]) -> str:
    shown = sorted(found)[:SHOWN]
    return ", ".join(shown) + (f" and {len(found) - SHOWN} more" if len(found) > SHOWN else "")
