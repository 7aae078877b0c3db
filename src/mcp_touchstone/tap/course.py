"""What came of a scenario, by the lines of the client; its exit status is evidence only."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.parts import stepper
from mcp_touchstone.parts.part import VERSION, Part
from mcp_touchstone.results.played import PlayedScenario, ScenarioOutcome
from mcp_touchstone.tap.recording import Recording
from mcp_touchstone.transport.process import signal_name
from mcp_touchstone.wire.events import Happened, Side
from mcp_touchstone.wire.framing import read, value_in

OPENING: Final = {"initialize", "server/discover", "ping"}
"""What a client sends before a revision is agreed."""

OURS: Final = {"server", "request"}
"""What our server notes of authorization with every client."""

BEFORE: Final = {*OURS, "document"}
"""What is noted before a client knows an issuer, and for each of its requests."""

_UNVISITED: Final = "it found the issuer, and nobody opened an authorization URL"
LOGIN: Final = {
    "metadata": _UNVISITED,
    "register": _UNVISITED,
    "authorize": "it used no code of the last authorization response",
    "refused": "our issuer refused its authorization request, so its browser did not come back",
}
"""The last that our issuer saw of a client that did not end -> what it may wait for.

An issuer that does not know the client, or the address, must not send the browser there: RFC 6749,
section 4.1.2.1.
"""


def end(status: int | None) -> str:
    """Return the event of the end of a client with an exit status; None if it was cut off.

    A signal may come from anybody, so a client that it ended has not failed.
    """
    if status is None:
        return Happened.CUT_OFF
    if status < 0:
        return f"the client was ended by {signal_name(-status)}"
    return Happened.FAILED if status else Happened.ENDED


def outcome(
    one: PlayedScenario,
    part: type[Part],
    status: int | None,
    spoke: Sequence[Recording],
    limit: float,
) -> PlayedScenario:
    """Return what came of a scenario.

    Args:
        one: the scenario, and the only revision that our server spoke, if there is one.
        part: what our server played.
        status: the exit status of the client, negative for a signal; None if it did not end.
        spoke: the conversations in which the client said something.
        limit: the seconds that it had.
    """
    said = [method for talk in spoke for method in methods(talk)]
    opens, modern = "initialize" in said, any(_is_modern(talk) for talk in spoke)
    left_out = ""
    if part.modern and not part.both and opens and not modern:
        left_out = "the client sends nothing without a session"
    if not part.modern and modern and not opens:
        left_out = "the client began no session"
    offered = {version for talk in spoke for version in offers(talk)}
    opened = not {*said} <= OPENING
    if one.revision and not (opened or part.modern) and offered and one.revision not in offered:
        left_out = f"the client does not speak {one.revision}"
    what, why = ScenarioOutcome.JUDGED, ""
    if status is None:
        what, why = ScenarioOutcome.UNENDED, f"the client did not end within {limit:g} s"
        seen = [place for talk in spoke for place in _places(talk) if place not in BEFORE]
        waits = LOGIN.get(seen[-1], "") if seen else ""
        why += f": {waits}" if waits else ""
    elif status < 0:
        what, why = ScenarioOutcome.CRASHED, f"the client was ended by {signal_name(-status)}"
    elif not spoke:
        what = ScenarioOutcome.UNCONNECTED
        why = f"the client never connected (exit status {status})"
    elif left_out:
        what, why = ScenarioOutcome.LEFT_OUT, left_out
    elif status and part.may_fail:
        what = ScenarioOutcome.REFUSED
    elif status and not _took_all(part, said):
        what, why = ScenarioOutcome.CRASHED, f"the client ended with exit status {status}"
    return replace(one, outcome=what, why=why, status=status)


def _took_all(part: type[Part], said: Sequence[str]) -> bool:
    """Whether a client sent a request for each step, so that its status tells nothing more."""
    wanted = Counter(filter(None, map(stepper.method, stepper.flat(part.steps))))
    elsewhere = {"resources/subscribe", "resources/unsubscribe"} if part.modern else set[str]()
    return all(said.count(one) >= count or one in elsewhere for one, count in wanted.items())


def goes_on(one: Recording) -> bool:
    """Whether a client called a tool, or looked for a token."""
    return bool({*_places(one)} - OURS) or "tools/call" in methods(one)


def _places(one: Recording) -> Iterator[str]:
    """Yield what our server and its issuer noted of authorization: a word of each."""
    for row in one.events(Happened.AUTHORIZATION):
        place, _, facts = row.text.removeprefix(Happened.AUTHORIZATION).partition(" ")
        refused = place == "authorize" and json.loads(facts).get("registered") is False
        yield "refused" if refused else place


def _messages(one: Recording) -> Iterator[Any]:
    for row in (row for row in one.rows if row.side is Side.CLIENT and row.headers is None):
        value = read(row.line).value
        yield from value if isinstance(value, list) else [value]


def methods(one: Recording) -> Iterator[str]:
    """Yield the methods of a client, one for each message."""
    return (str(value_in(message, "method")) for message in _messages(one))


def offers(one: Recording) -> Iterator[str]:
    """Yield the revisions that a client wants, one for each ``initialize``."""
    for message in _messages(one):
        if value_in(message, "method") == "initialize":
            yield str(value_in(message, "params", "protocolVersion"))


def _is_modern(one: Recording) -> bool:
    """Whether the client names a revision without sessions, in a request or in a header."""
    named = (str(value_in(message, "params", "_meta", VERSION)) for message in _messages(one))
    return any(map(rev.is_modern, (*named, *one.versions)))
