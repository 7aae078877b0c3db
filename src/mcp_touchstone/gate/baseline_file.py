"""The file of a baseline: finding, reading, comparing with a run, writing."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from mcp_touchstone.catalog.clause import Catalogue
from mcp_touchstone.catalog.scenario import Registry
from mcp_touchstone.engine.choice import Choice
from mcp_touchstone.gate import baseline, settlement
from mcp_touchstone.gate.baseline import Baseline, BaselineError
from mcp_touchstone.gate.settlement import Renewal
from mcp_touchstone.results.run import Run
from mcp_touchstone.runtime.input_file import LARGEST_TOML, InputFile


@dataclass(frozen=True, slots=True)
class Book:
    """A baseline and its file.

    Attributes:
        baseline: its contents; None if there is no file.
        catalogue: returns all clauses and threats; called only if there is a file.
        update: whether to write the failures of a run to the file.
    """

    path: Path
    baseline: Baseline | None
    catalogue: Callable[[], Catalogue]
    update: bool

    def hold(self, run: Run, registry: Registry, choice: Choice) -> tuple[Run, Renewal | None]:
        """Return a run with its known failures; write the file first if ``update`` is set.

        Nothing is written for a run that did not finish.

        Raises:
            BaselineError: the file cannot be written.
        """
        current, renewal = self.baseline, None
        stopped = run.trouble or run.execution.interrupted
        if self.update and not (stopped if run.scenarios_count else run.partial):
            known = current or Baseline(str(self.path))
            renewal = settlement.renew(known, run, registry, choice, self.catalogue())
            current = renewal.baseline
            _save(current, self.path)
        elif self.update and run.scenarios:
            note = f"{self.path.name} was not written, as not everything was judged to its end"
            notes = (*run.execution.notes, note)
            run = replace(run, execution=replace(run.execution, notes=notes))
        if current is not None:
            run = settlement.settle(current, run, registry, choice)
        return run, renewal


def find(
    named: Path | None, usual: Path, catalogue: Callable[[], Catalogue], *, update: bool
) -> Book:
    """Find the baseline: the file the user named, or the default file if it exists.

    Raises:
        BaselineError: it cannot be read, is invalid, or was named and does not exist.
    """
    path = usual if named is None else named
    found = _load(path, wanted=named is not None and not update, named=named is not None)
    if found is not None and not update:
        baseline.check(found, catalogue())
    return Book(path, found, catalogue, update)


def _load(path: Path, *, wanted: bool, named: bool) -> Baseline | None:
    if not wanted and not path.exists():
        return None
    missing = "`mcp-touchstone check --update-baseline` writes it"
    file = InputFile(path, "name another with --baseline", missing, named=named, most=LARGEST_TOML)
    return baseline.read(file.text(), str(path))


def _save(found: Baseline, path: Path) -> None:
    try:
        path.write_text(found.text, "utf-8", newline="\n")
    except OSError as error:
        raise BaselineError(f"{path}: cannot be written: {error.strerror}") from error
