"""What the chosen clients do with a server, for each kind of report."""

from collections.abc import Iterator
from typing import Any, Final

from mcp_touchstone.profiles.load import profile, rule
from mcp_touchstone.profiles.notes import ClientNotes, Note, ProfileNotes
from mcp_touchstone.profiles.rule import Rule
from mcp_touchstone.report.text import plural
from mcp_touchstone.results.run import Run

SHOWN: Final = 4
"""Tools of a note that are named."""

DIFFER: Final = "differ"
BY_HAND: Final = "by hand"
"""Label of what only a person can confirm."""

Line = tuple[int, str, str]
"""Level (0 for a client, 1 for what is below it), label and text."""


def lines(run: Run, most: int = SHOWN) -> Iterator[Line]:
    """Yield the notes of the chosen profiles as lines; nothing if none was chosen.

    Args:
        most: the greatest number of tools that a line names.
    """
    for client in run.clients.clients:
        yield 0, client.client, _answer(client)
        for note in client.notes:
            yield 1, str(note.rule.effect), _note(note, most)
        if client.rules and client.unmeasured:
            yield 1, "note", f"{client.unmeasured}."
        for one in _passed(client):
            yield 1, "passed", f"{one.name}: {one.says}"
        for box in profile(client.client).boxes:
            yield 1, BY_HAND, f"{box.says} {box.source}"
    for sentence in run.clients.differences():
        yield 0, DIFFER, sentence


def _passed(client: ClientNotes) -> list[Rule]:
    """Return the rules of a directory that were measured and do not apply."""
    known = profile(client.client)
    applying = {note.rule.id for note in client.notes}
    measured = known.rules if known.boxes and client.rules else ()
    return [one for one in measured if one.id not in applying]


def title(run: Run) -> str:
    """Return the heading of the lines."""
    lists = f" (lists of {run.clients.revision})" if run.clients.revision else ""
    return f"Clients and directories{lists}"


def lost(run: Run) -> str:
    """Return the clients in which something is lost, and a rule that says so; or nothing."""
    names = [client.client for client in run.clients.clients if client.loses]
    return f"something is lost in {', '.join(names)}" if names else ""


def _answer(client: ClientNotes) -> str:
    if not client.rules:
        return f"not measured: {client.unmeasured}"
    of_tools = f" on {plural(client.tools, 'tool')}" if client.tools else ""
    return f"{client.answer}: {plural(client.rules, 'rule')} of {client.name}{of_tools}"


def _note(note: Note, most: int) -> str:
    named = [f"{name} ({what})" if name and what else name or what for name, what in note.found]
    named = list(dict.fromkeys(named))
    more = f" and {len(named) - most} more" if len(named) > most else ""
    return (
        f"{note.rule.name}: {', '.join(named[:most])}{more}. {note.rule.says} "
        f"What helps: {note.rule.cure[:1].lower()}{note.rule.cure[1:]}"
    )


def document(run: Run) -> dict[str, Any]:
    """Return the member of the JSON report; empty if no profile was chosen."""
    found = run.clients
    if not found.clients:
        return {}
    return {
        "clients": {
            "revision": found.revision,
            "server": found.server,
            "profiles": [_client(client) for client in found.clients],
            "differences": list(found.differences()),
        }
    }


def _client(client: ClientNotes) -> dict[str, Any]:
    return {
        "client": client.client,
        "name": client.name,
        "answer": client.answer,
        "rules": client.rules,
        "tools": client.tools,
        **({"unmeasured": client.unmeasured} if client.unmeasured else {}),
        **_of_directory(client),
        "notes": [
            {
                "rule": note.rule.name,
                "effect": str(note.rule.effect),
                "says": note.rule.says,
                "cure": note.rule.cure,
                "source": note.rule.source,
                "read": note.rule.read.isoformat(),
                "version": note.rule.version,
                "found": [{"tool": name, "what": what} for name, what in note.found],
            }
            for note in client.notes
        ],
    }


def _of_directory(client: ClientNotes) -> dict[str, Any]:
    boxes = [
        {"says": one.says, "source": one.source, "read": one.read.isoformat()}
        for one in profile(client.client).boxes
    ]
    passed = [one.name for one in _passed(client)]
    return {"passed": passed, "boxes": boxes} if boxes else {}


def read(row: dict[str, Any] | None) -> ProfileNotes:
    """Return the notes of a JSON report; empty if it has none.

    Raises:
        CatalogueError: a rule is not known to this version.
    """
    if row is None:
        return ProfileNotes()
    return ProfileNotes(row["revision"], row["server"], tuple(map(_read, row["profiles"])))


def _read(row: dict[str, Any]) -> ClientNotes:
    notes = tuple(
        Note(rule(one["rule"]), tuple((each["tool"], each["what"]) for each in one["found"]))
        for one in row["notes"]
    )
    rest = (notes, row.get("unmeasured", ""))
    return ClientNotes(row["client"], row["name"], row["rules"], row["tools"], *rest)
