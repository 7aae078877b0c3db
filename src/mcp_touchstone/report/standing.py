"""The last lines of a run: its verdict and its baseline."""

import textwrap
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from mcp_touchstone.advisories.known import State
from mcp_touchstone.catalog.threat import Threat
from mcp_touchstone.report import clients, comparison
from mcp_touchstone.report.digest import excused, findings, noun, of_sdks, sdk_failures
from mcp_touchstone.report.text import cut, plural, window
from mcp_touchstone.results import played
from mcp_touchstone.results.budgets import TOKENIZER
from mcp_touchstone.results.run import Conclusion, Gap, Run
from mcp_touchstone.results.verdict import Outcome

if TYPE_CHECKING:
    from mcp_touchstone.gate.settlement import Renewal

Line = Callable[..., None]

SDK_FAULTS: Final = "-v lists each, --strict counts each"
"""What shows the faults of SDKs, and what counts them."""

EFFECTS: Final = 3
"""Greatest number of effects of threats in the paragraph for a decision."""

GREY: Final = "dim"
AMBER: Final = "yellow"
RED: Final = "bold red"
MAGENTA: Final = "bold magenta"
GREEN: Final = "green"


def known(run: Run, say: Line, width: int) -> None:
    """Print the failures the baseline accepts, with its reasons."""
    excused = findings(run, *Outcome, known=True)
    if excused:
        count = plural(len({finding.clause.id for finding in excused}), "known failure")
        say("")
        say(("known", AMBER), "  ", (f"{count}, accepted by {file(run)}", "bold"))
        for finding in excused:
            say("  ", finding.clause.id, ("  " + window(finding.revisions), GREY))
            say("      ", cut(finding.known, width - 6))

    for one in run.scenarios if not run.trouble else ():
        if one.known:
            say("")
            say(("known", AMBER), "  ", (one.name, "bold"), f": {one.why}")
            say("      ", cut(one.known, width - 6))


def troubles(run: Run) -> Iterator[str]:
    """Yield what scenarios lack, unless the trouble of the run has it."""
    return iter(()) if run.trouble else played.troubles(run.scenarios)


def of_sdk(run: Run, say: Line, width: int, *, verbose: bool, how: str = SDK_FAULTS) -> None:
    """Print the findings that are the SDK's and do not count; in a line unless it is verbose.

    Args:
        how: the options that list each and that count each.
    """
    found = findings(run, Outcome.FAIL, Outcome.WARN, of_sdk=True)
    for sdk in dict.fromkeys(finding.sdk.sdk for finding in found if finding.sdk):
        own = [finding for finding in found if finding.sdk and finding.sdk.sdk == sdk]
        like = own[0].sdk.like if own[0].sdk else ""
        counts = [
            plural(of_sdks(run, outcome)[str(sdk)], word)
            for outcome, word in ((Outcome.FAIL, "failure"), (Outcome.WARN, "warning"))
            if str(sdk) in of_sdks(run, outcome)
        ]
        say("")
        if not verbose:
            text = f"sdk  {' and '.join(counts)} of {sdk}, not counted ({how})"
            first, *more = textwrap.wrap(text, max(40, width), subsequent_indent=" " * 5)
            say(("sdk", AMBER), first.removeprefix("sdk"))
            for line in more:
                say(line)
            continue
        say(("sdk", AMBER), "  ", (f"{' and '.join(counts)} of {sdk}", "bold"))
        _wrapped(
            f"A minimal program on {like or 'it'} has the same. --strict counts them.", say, width
        )
        for finding in own:
            word = "FAIL" if finding.outcome is Outcome.FAIL else "warn"
            say("  ", word, "  ", finding.clause.id, ("  " + window(finding.revisions), GREY))
            advice = f"what you can do: {finding.sdk.remedy if finding.sdk else ''}"
            _wrapped(advice, say, width)


def _wrapped(text: str, say: Line, width: int) -> None:
    for line in textwrap.wrap(" " * 6 + text, max(40, width), subsequent_indent=" " * 8):
        say(line)


def advisories(run: Run) -> Iterator[tuple[str, str]]:
    """Yield a label and a text for each advisory on the packages of a run, the open ones first."""
    order = list(State)
    for one in sorted(run.advisories, key=lambda known: order.index(known.state)):
        shown = f"shown by {', '.join(one.rules)}" if one.rules else one.why
        about = [one.remedy, f"{one.advisory.title} ({one.package})", shown]
        yield _STATES[one.state], f"{one.advisory.id}: {'; '.join(filter(None, about))}"


_STATES: Final = {**{state: str(state) for state in State}, State.BY_OPTION: "by option"}
"""State of an advisory -> its label, short enough for a terminal."""


def stale(run: Run, say: Line) -> None:
    """Print the entries of the baseline that no longer apply."""
    for entry in run.stale:
        say("")
        say(("STALE", RED), "  ", (entry.rule, "bold"), ("  " + window(entry.revisions), GREY))
        say("      ", f"{entry.why}: remove it from {file(run)}")


def since_lock(run: Run) -> str:
    """Return what the comparison with a lock came to; empty without one."""
    if run.locked is None:
        return ""
    return f"{'Changed' if run.locked.changes else 'Unchanged'} since {run.locked.file}"


def locked(run: Run) -> Iterator[tuple[str, str]]:
    """Yield a label and a text for each change since the lock."""
    if run.locked is not None:
        for one in run.locked.changes:
            turn = f"{one.old} → {one.new}" if one.old and one.new else one.old or one.new
            sign = "" if one.old and one.new else " is gone" if one.old else " is new"
            yield str(one.kind), f"{one.member}{sign}: {turn}"
        if run.locked.note:
            yield "note", run.locked.note


def file(run: Run) -> str:
    """Return the name of the baseline file; empty without one."""
    return "" if run.settled is None else run.settled.file


def server(run: Run) -> str:
    """Return the name that the server reports, or else "the server"."""
    name = run.subject.name or f"the {run.subject.kind}"
    return f"{name} (the bundled reference server)" if run.subject.bundled else name


def passed(run: Run) -> tuple[str, str]:
    """Return a word and a sentence for a run that passes."""
    failures = findings(run, Outcome.FAIL)
    name = server(run)
    if run.since is not None:
        return comparison.verdict(run.since), f": {name} has no new failure since {run.since.old}"
    accepted = plural(sum(excused(run).values()), "known failure") if excused(run) else ""
    theirs = sdk_failures(run)
    if theirs or accepted:
        said = f"is conforming but for {theirs}" if theirs else "has no new failure"
        known = f"; {file(run)} accepts {accepted}" if accepted else ""
        return "passed", f": {name} {said}{known}"
    if failures:
        floor = " ".join(run.floor.words)
        count = plural(len(failures), "failure")
        return "passed", f": {name} has {count} below --fail-on {floor}"
    if noun(run) == "threat":
        if run.unbound:
            tried = any("tries-tools" in verdict.clause.needs for verdict in run.verdicts)
            what = "the protocol and the arguments" if tried else "the protocol"
            return "passed", f": no attack on {what} of {name} succeeded; its files: not attacked"
        return "passed", f": no attack on {name} succeeded"
    return "passed", f": {name} breaks no {noun(run)}"


def unattacked(run: Run) -> str:
    """Return a sentence on why no file tool was attacked; empty if one was, or none had to be."""
    return f"No file tool was attacked: {run.unbound}." if run.unbound else ""


def severities(run: Run) -> dict[str, list[str]]:
    """Return the ids of the threats to which a server is open, by severity, the gravest first."""
    found: dict[str, dict[str, None]] = {}
    for finding in findings(run, Outcome.FAIL):
        if isinstance(finding.clause, Threat):
            found.setdefault(finding.clause.grade, {})[finding.clause.id] = None
    return {grade: list(ids) for grade, ids in found.items()}


def decision(run: Run) -> str:
    """Return what a security run means, for somebody who decides about a server; or nothing."""
    if noun(run) != "threat" or not run.verdicts:
        return ""
    grave = [f.clause.effect for f in findings(run, Outcome.FAIL) if isinstance(f.clause, Threat)]
    said = "No attack succeeded."
    if grave:
        said = "These holes are open to whoever calls its tools, also a model that was tricked."
        said = " ".join([said, *list(dict.fromkeys(grave))[:EFFECTS]])
    tried = {v.clause.id for v in run.verdicts if v.outcome is not Outcome.UNSEEN}
    absent = len({row.clause for row in run.absent if not row.by_choice} - tried)
    said += f" {plural(len(tried), 'threat')} {'was' if len(tried) == 1 else 'were'} tried"
    said += f"; {absent} could not be tried on it." if absent else "."
    where = "in a sandbox" if run.subject.sandbox else "without a sandbox"
    return f"{said} It ran {where}." if run.subject.started else said


def incomplete(run: Run) -> str:
    """Return how far a server was checked in a run with trouble; completes "the server ..."."""
    return "was checked in part only" if run.subject.revisions else "could not be checked"


def _remedy(run: Run) -> str:
    """Return what a user can do about the trouble of a run; continues a sentence."""
    if "--deadline" in run.trouble:
        return "; a longer --deadline checks the rest"
    if "--root-size" in run.trouble:
        return "; if it may write that much, name a larger --root-size"
    if run.subject.revisions or not (run.subject.started or run.subject.bundled):
        return ""
    if run.subject.excuse:
        return f": {run.subject.excuse}"
    return ": run the command by hand to see its output"


def _beside_rules(run: Run) -> str:
    """Return why a run fails that broke no rule; continues a sentence."""
    if run.stale:
        many = len(run.stale) > 1
        entries = f"{len(run.stale)} entries" if many else "1 entry"
        count = f"{entries} of {file(run)} no longer appl{'y' if many else 'ies'}"
        return f": {count}; --update-baseline removes them"
    if run.scenarios_count and run.troubled:
        count = plural(len(run.troubled), "scenario")
        return f": {count} not judged to the end; --update-baseline accepts what came of them"
    if run.locked is not None and run.locked.changes:
        count = plural(len(run.locked.changes), "change")
        return f": {server(run)} has {count} since {run.locked.file}; --update-lock accepts"
    if not run.losing:
        return f": {server(run)}: {run.budgets.over[0]} in {run.budgets.name}; --update-budget"
    first = run.clients.losing[0].rule.name
    return f": {server(run)}: {clients.lost(run)}; `mcp-touchstone explain {first}`"


def costs(run: Run) -> list[str]:
    """Return the costs for a model as lines: budgets that are exceeded, lists, results."""
    found = run.budgets
    lists = ", ".join(f"{name} {count:,}" for name, count in found.tokens.items())
    return [*found.over, f"{lists} ({TOKENIZER}: an estimate)"] if lists else []


def closing(run: Run) -> tuple[str, str, str]:
    """Return the verdict on the server: a word or two, their style, and the next step."""
    word, style, rest = _closing(run)
    return word, style, f"{rest} ({run.execution.quick})" if run.execution.quick else rest


def _closing(run: Run) -> tuple[str, str, str]:
    failed = sorted(filter(run.counts, run.verdicts), key=lambda verdict: verdict.outcome.rank)
    if run.execution.interrupted:
        done = ": the report has the verdicts until then" if run.verdicts else ""
        return "interrupted", "bold", done
    if failed:
        word = "failed" if run.since is None else "worse than before"
        rules = dict.fromkeys(verdict.clause.id for verdict in failed)
        count = plural(len(rules), f"{'' if run.since is None else 'new '}{noun(run)}")
        verb = "is open to" if noun(run) == "threat" else "breaks"
        grades = ", ".join(f"{len(ids)} {grade}" for grade, ids in severities(run).items())
        count += f": {grades}" if noun(run) == "threat" else ""
        theirs = f", beside {sdk_failures(run)}" if sdk_failures(run) else ""
        return (
            word,
            RED,
            f": {server(run)} {verb} {count}{theirs}; `mcp-touchstone explain {next(iter(rules))}`",
        )
    if run.conclusion is Conclusion.FAILED:
        return "failed", RED, _beside_rules(run)
    if run.gap:
        return "not checked", MAGENTA, f": {_unchecked(run)}"
    good, rest = passed(run)
    own = {v.clause.id: v.clause for v in run.of(Outcome.WARN) if not run.is_of_sdk(v)}
    for option in ("--strict", "--fail-on should"):
        own_of = [one for one in own.values() if one.is_raised is (option == "--strict")]
        rest += f"; {plural(len(own_of), 'warning')}, which {option} counts" if own_of else ""
    rest += f"; {clients.lost(run)}, which --fail-on profile counts" if clients.lost(run) else ""
    return good, GREEN, rest


def _unchecked(run: Run) -> str:
    """Return what was not checked, and what a user can do about it."""
    if run.gap is Gap.NO_ATTACK:
        return f"{run.gap}; name one with --bindings, or pass --accept-unbound"
    if run.gap is Gap.NO_RULE:
        reasons = {verdict.gravest.actual for verdict in run.verdicts}
        why = f": {reasons.pop()}" if len(reasons) == 1 else ""
        return f"no selected {noun(run)} applies to {server(run)}{why}"
    if run.gap is Gap.NOT_JUDGED:
        count = plural(len({verdict.clause.id for verdict in run.unjudged}), noun(run))
        return f"{server(run)} could not be checked for {count}: -v shows the conversations"
    if run.subject.silent:
        return f"{server(run)} did not answer. Does it speak stdio? --timeout waits longer"
    return f"{server(run)} {incomplete(run)}{_remedy(run)}"


def since(run: Run, say: Line) -> None:
    """Print the changes since an older report."""
    if run.since is not None:
        say("")
        for line in list(comparison.text(run.since))[:-1]:
            say(line)


def renewed(renewal: "Renewal") -> list[str]:
    """List the changes of a baseline that was written."""
    new = renewal.baseline
    lines = [f"  + {entry}" for entry in renewal.added]
    lines += [f"  - {entry}" for entry in renewal.removed]
    kept = plural(len(new.entries), "known failure")
    head = f"wrote {new.name}: {kept}"
    if renewal.added:
        head += f", {len(renewal.added)} new; replace each reason with yours"
    return [head, *lines]
