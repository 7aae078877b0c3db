"""The threshold of the gate: the least severity of a finding that fails it. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Self

from mcp_touchstone.catalog.clause import Clause, nearest
from mcp_touchstone.catalog.threat import Severity, Threat
from mcp_touchstone.results.verdict import Outcome

NEVER: Final = "never"

SDK: Final = "sdk"

PROFILE: Final = "profile"

_CLAUSES: Final = {"must": Outcome.FAIL, "should": Outcome.WARN, "may": Outcome.NOTE}
"""Word -> the mildest outcome of a clause that counts."""

_ADMITTED: Final = {Severity.LOW: Outcome.WARN, Severity.INFO: Outcome.NOTE}
"""Floor -> the mildest outcome of a threat that counts, if that is milder than a failure."""

_SEVERITIES: Final = tuple(Severity)

_ALONE: Final = frozenset({NEVER, SDK, PROFILE})
"""Words that are given beside a floor."""

WORDS: Final = (*_CLAUSES, *map(str, _SEVERITIES), SDK, PROFILE, NEVER)
"""The words accepted by ``--fail-on``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """The least severity of a finding that counts; by default every failure, nothing else.

    Attributes:
        clauses: the mildest outcome of a clause that counts; None if none counts.
        threats: the lowest severity of a threat that counts; None for every failure.
        never: whether nothing counts and the run only reports.
        sdk: whether findings count that are the fault of the server's SDK.
        profile: whether something that is lost in a chosen client counts.
    """

    clauses: Outcome = Outcome.FAIL
    threats: Severity | None = None
    never: bool = False
    sdk: bool = False
    profile: bool = False

    @classmethod
    def read(cls, words: Iterable[str]) -> Self:
        """Read the words of ``--fail-on``: a floor for each kind, sdk, profile; or never.

        Raises:
            ValueError: a word is unknown, or two of a kind were given.
        """
        given: dict[str, str] = {}
        found: dict[str, Any] = {}
        for word in words:
            if word not in WORDS:
                raise ValueError(f"{word!r} is none of {', '.join(WORDS)}{nearest(word, WORDS)}")
            kind = "clauses" if word in _CLAUSES else word if word in _ALONE else "threats"
            if given.setdefault(kind, word) != word:
                raise ValueError(f"{given[kind]} and {word} exclude each other; name one floor")
            if kind == "clauses":
                found[kind] = _CLAUSES[word]
            else:  # the members of the words beside a floor are called like them
                found[kind] = Severity(word) if kind == "threats" else True
        return cls(**found)

    def counts(self, clause: Clause, outcome: Outcome) -> bool:
        """Return whether a finding of this outcome fails the gate."""
        severity = clause.severity if isinstance(clause, Threat) else None
        return self.admits(outcome, severity)

    def admits(self, outcome: Outcome, severity: Severity | None) -> bool:
        """Return whether a finding counts, from its outcome; a threat also has a severity."""
        if self.never or outcome not in {Outcome.FAIL, Outcome.WARN, Outcome.NOTE}:
            return False
        if severity is None:
            return outcome.rank <= self.clauses.rank
        lightest = _ADMITTED.get(self.threats or Severity.MEDIUM, Outcome.FAIL)
        grave = self.threats is None or _SEVERITIES.index(severity) <= _SEVERITIES.index(
            self.threats
        )
        return grave and outcome.rank <= lightest.rank

    @property
    def words(self) -> tuple[str, ...]:
        """Return it as the words of ``--fail-on``; empty if it is the default."""
        if self.never:
            return (NEVER,)
        found = [w for w, o in _CLAUSES.items() if o is self.clauses and o is not Outcome.FAIL]
        found += [] if self.threats is None else [str(self.threats)]
        return (*found, *([SDK] if self.sdk else []), *([PROFILE] if self.profile else []))


DEFAULT: Final = Floor()
