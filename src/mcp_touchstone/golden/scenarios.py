"""The responses of a server in the scenarios of a suite, as golden recordings.

One document per chapter and revision: scenario -> exchanges. A scenario sends the same requests in
each run, so its responses can be compared. Properties are left out: their requests are generated.
"""

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from mcp_touchstone.bindings.canary import MARK, NAME_MARK
from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.scenario import Registry
from mcp_touchstone.connection.connection import Connection
from mcp_touchstone.golden.store import Recording
from mcp_touchstone.results.run import Run
from mcp_touchstone.results.scrubber import Scrubber, lined
from mcp_touchstone.runtime.safe_path import SafePath
from mcp_touchstone.transport.http_channel import HttpChannel
from mcp_touchstone.wire.events import Happened
from mcp_touchstone.wire.exchange import Exchange as WireExchange
from mcp_touchstone.wire.framing import value_in
from mcp_touchstone.wire.http_headers import SESSION
from mcp_touchstone.wire.json_diff import VOLATILE
from mcp_touchstone.wire.lifecycle import Message, Role
from mcp_touchstone.wire.transcript import Entry, Source, Transcript

LONG: Final = 400
"""Characters of a text that are recorded in full; a longer one is cut."""

CANARY: Final = re.compile(
    r"canary-[0-9a-f]{12}\.txt|canary [0-9a-f]{24}"
    rf"|{MARK}[0-9a-f]{{32}}|{NAME_MARK}[0-9a-f]{{24}}"
)
"""The random texts that mcp-touchstone plants; see ``World`` and ``Canaries``."""

RANDOM: Final = re.compile(r"(?<=-)[0-9a-f]{4,32}\b")
"""The random part of a name that a scenario makes up, as in ``touchstone-5f3a91c2``."""

ID: Final = re.compile(r'("id": ?)\d+')
"""The id of a request inside a line that is not itself a request."""

ITEMS: Final = {
    "tools": "name",
    "prompts": "name",
    "resources": "uri",
    "resourceTemplates": "uriTemplate",
}
"""Member of a result that lists items -> member of an item that names it."""

AT_ONCE: Final = frozenset({"crowds", "lines", "load", "messages"})
"""Chapters of attacks that do not wait for each answer: a server may answer in any order."""

PASSING: Final = ("working", "completed")
"""States of a task that differ only by the moment of the request."""

EVENT_ID: Final = re.compile(r"(?<=Last-Event-ID: )[^,]*")

SILENCE: Final = {"silence": "no answer came"}
CANCELLED: Final = "notifications/cancelled"

Exchanges = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class _Sent:
    """A line of a scenario, the messages of the server that answer it, and its payload."""

    ask: dict[str, Any]
    answers: list[Any]
    payload: str = ""


def chapters_of(registry: Registry) -> dict[str, str]:
    """Return the recorded scenarios of a suite: id -> name of the file of its chapter.

    The responses vary in a scenario that listens for seconds, and in one that depends on the order
    in which the server does two things. An attack that lasts makes many ordinary calls.
    """
    return {
        case.id: f"{case.clauses[0].group}-{case.clauses[0].chapter}"
        for case in registry.scenarios
        if not (case.drawn or case.races or case.clauses[0].chapter in AT_ONCE)
        and (case.fixtures or not case.lasts)
    }


def responses(run: Run, registry: Registry, now: datetime, places: Mapping[str, str]) -> Recording:
    """Return the responses of a finished run, by revision and chapter.

    Args:
        run: the run; its connections hold the transcripts.
        places: texts that differ between runs -> names for them.
    """
    chapters = chapters_of(registry)
    sent: dict[str, dict[str, list[_Sent]]] = defaultdict(lambda: defaultdict(list))
    folders = dict(places)
    opening: dict[str, Any] = {}
    for connection in run.connections:
        folders |= _folders(connection.answers.root) | _http_names(connection)
        for scenario, line in _lines(connection.transcript):
            if scenario in chapters:
                sent[connection.transcript.revision][scenario].append(line)
        if connection.opening is not None and not opening:
            opening = connection.opening.result or {}
    found: Recording = {}
    for revision in rev.ALL:
        for scenario, lines in sorted(sent[revision].items()):
            scrubber = _Scrubber(folders, now, environment=os.environ)
            scrubber.scrub(opening)
            document = found.setdefault(revision, {}).setdefault(chapters[scenario], {})
            document[scenario.rpartition("::")[2]] = _shown(lines, scrubber)
    return found


class _Scrubber(Scrubber):
    """Also replaces canaries and made-up names, and cuts long texts."""

    def text(self, value: str) -> str:
        """Return a text without the parts that differ between runs."""
        shown = CANARY.sub("<canary>", RANDOM.sub("<random>", super().text(value)))
        if len(shown) > LONG:
            return f"{shown[: LONG // 2]}... ({len(shown):,} characters)"
        return shown


def _folders(root: SafePath | None) -> dict[str, str]:
    if root is None:
        return {}
    world = root.parent
    return {
        str(root): "{root}",
        str(world / "home"): "{home}",
        str(world / "tmp"): "{tmp}",
        str(world): "{world}",
        world.name: "{world}",
    }


def _http_names(connection: Connection) -> dict[str, str]:
    """Return the texts of an HTTP server that differ between runs -> names for them."""
    if not isinstance(connection.channel, HttpChannel):
        return {}
    issued = [one.header(SESSION) for one in connection.transcript.exchanges]
    named = {known: "<session>" for known in issued if known}
    return {connection.channel.endpoint.authority: "{host}", **named}


def _lines(transcript: Transcript) -> Iterator[tuple[str, _Sent]]:
    """Yield each line of ours that may be answered, with the scenario that sent it."""
    entries = list(transcript)
    answers = _answers(entries)
    cancelled = _cancelled(entries)
    crafted = {one.line or one.event_line: one for one in transcript.exchanges if one.crafted}
    unusual = ""
    for entry in entries:
        got = answers.get(entry.n, [])
        if entry.n in crafted:
            got = _with_status(got, crafted[entry.n])
        if entry.happened is Happened.REQUESTED and entry.scenario:
            unusual = EVENT_ID.sub("<event>", entry.text.removeprefix(Happened.REQUESTED))
            if entry.n in crafted:
                yield entry.scenario, _Sent({"http": unusual}, got)
                unusual = ""
            continue
        if entry.source is not Source.US or not entry.scenario:
            continue
        value = entry.value
        if entry.n in crafted:
            ask = {"line": ID.sub(r"\1", entry.text)}
            if isinstance(value, dict) and "method" in value:
                ask = _request(value, transcript)
            full = {**({"http": unusual} if unusual else {}), **ask}
            yield entry.scenario, _Sent(full, got, entry.payload)
            unusual = ""
            continue
        if isinstance(value, dict) and value.get("method") == CANCELLED:
            continue
        if isinstance(value, dict) and isinstance(value.get("id"), str | int):
            if value["id"] in cancelled or "method" not in value:
                continue  # whether a cancelled request is answered depends on the moment
            yield entry.scenario, _Sent(_request(value, transcript), got, entry.payload)
        elif got:
            yield entry.scenario, _Sent({"line": ID.sub(r"\1", entry.text)}, got, entry.payload)


def _with_status(answers: list[Any], exchange: WireExchange) -> list[Any]:
    """Return the answers in an HTTP response with its status; empty if none came."""
    if not exchange.status:
        return answers
    return [{"http": exchange.status, **one} for one in answers] or [{"http": exchange.status}]


def _answers(entries: Iterable[Entry]) -> dict[int, list[Any]]:
    """Return the answers to each line of ours, by its number.

    An error without an id answers the last line before it; over HTTP, the line of its exchange.
    """
    found: dict[int, list[Any]] = defaultdict(list)
    last = 0
    for entry in entries:
        if entry.source is Source.US:
            last = entry.n
        for message in entry.messages:
            if message.role is Role.ANSWER and message.answers is not None:
                found[message.answers].append(_plain(message))
            elif message.role in {Role.UNADDRESSED, Role.REFUSAL}:
                exchange = None if entry.origin is None else entry.origin.exchange
                line = last if exchange is None else exchange.line or exchange.event_line
                if line:
                    found[line].append(_plain(message))
    return found


def _plain(message: Message) -> dict[str, Any]:
    """Return a response without its id; listed items by name, as the tour records them whole."""
    shown = {name: one for name, one in message.value.items() if name not in {"jsonrpc", "id"}}
    result = shown.get("result")
    if isinstance(result, dict):
        shown["result"] = {name: _short(name, one) for name, one in result.items()}
    return shown


def _short(member: str, value: Any) -> Any:
    if member in ITEMS and isinstance(value, list):
        return [one.get(ITEMS[member], one) if isinstance(one, dict) else one for one in value]
    if member == "tasks" and isinstance(value, list):
        return [_short("task", one) for one in value]
    if member == "task" and isinstance(value, dict) and value.get("status") in PASSING:
        return {**value, "status": VOLATILE}
    return VOLATILE if member == "status" and value in PASSING else value


def _cancelled(entries: Iterable[Entry]) -> set[Any]:
    ids = set()
    for entry in entries:
        if value_in(entry.value, "method") == CANCELLED:
            own = value_in(entry.value, "params", "requestId")
            if isinstance(own, str | int):
                ids.add(own)
    return ids


def _request(value: Mapping[str, Any], transcript: Transcript) -> dict[str, Any]:
    """Return a request without the members that each request of the revision has."""
    ask: dict[str, Any] = {"method": value["method"]}
    params = value.get("params")
    if isinstance(params, dict):
        params = dict(params)
        meta = params.get("_meta")
        if isinstance(meta, dict):
            usual: dict[str, Any] = {
                "protocolVersion": transcript.revision,
                "clientCapabilities": transcript.capabilities,
            }
            meta = {
                name: one
                for name, one in meta.items()
                if name != rev.META + "clientInfo"
                and usual.get(name.removeprefix(rev.META), name) != one
            }
            params.pop("_meta")
            if meta:
                params["_meta"] = meta
    if params:
        ask["params"] = params
    return ask


def _shown(lines: Iterable[_Sent], scrubber: Scrubber) -> Exchanges:
    """Return the exchanges of a scenario; of equal requests in a row, the last one.

    A scenario that fires payloads asks the same between them: what repeats an earlier exchange,
    and carries no payload, is left out.
    """
    lines = list(lines)
    fires = any(line.payload for line in lines)
    shown: Exchanges = []
    for line in lines:
        ask = lined(scrubber.scrub(line.ask))
        answers = [lined(scrubber.scrub(one)) for one in line.answers] or [SILENCE]
        exchange: dict[str, Any] = {"ask": ask, "answer": answers[0]}
        if answers[1:]:
            exchange = {"ask": ask, "answers": sorted(answers, key=repr)}
        if line.payload:
            exchange = {"payload": line.payload, **exchange}
        elif fires and exchange in shown:
            continue
        elif shown and shown[-1]["ask"] == ask and "payload" not in shown[-1]:
            shown.pop()
        shown.append(exchange)
    return shown
