"""The notes of profiles on one server: what each chosen client does with it. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.profiles.load import profile
from mcp_touchstone.profiles.measure import MEASURES, NO_TOOLS, ServerFacts
from mcp_touchstone.profiles.rule import Effect, Rule

if TYPE_CHECKING:
    from mcp_touchstone.connection.server_profile import ServerProfile, Spoken


@dataclass(frozen=True, slots=True)
class Note:
    """A rule of a profile that applies to the server.

    Attributes:
        found: what it applies to: the name of a tool, empty for the server, and what was seen.
    """

    rule: Rule
    found: tuple[tuple[str, str], ...]

    @property
    def tools(self) -> list[str]:
        """The tools, each once."""
        return list(dict.fromkeys(name for name, _what in self.found if name))


@dataclass(frozen=True, slots=True)
class ClientNotes:
    """What one client does with the server.

    Attributes:
        client: the profile.
        rules: number of rules that were measured.
        tools: number of tools that were measured.
        notes: the rules that apply, the gravest effect first.
        unmeasured: why nothing, or not all, was measured; empty if all was.
    """

    client: str
    name: str
    rules: int = 0
    tools: int = 0
    notes: tuple[Note, ...] = ()
    unmeasured: str = ""

    @property
    def loses(self) -> bool:
        """Whether something of the server is lost there."""
        return any(note.rule.effect.loses for note in self.notes)

    @property
    def answer(self) -> str:
        """Whether something stands against the server in this client, in a few words."""
        if not self.rules:
            return "not measured"
        refused = {n for one in self.notes if one.rule.effect is Effect.REFUSED for n in one.tools}
        whole = any(n.rule.effect is Effect.REFUSED and not n.tools for n in self.notes)
        if whole:
            return "refused"
        if refused:
            return f"refused because of {len(refused)} of {self.tools} tools"
        return "loses something" if self.loses else "no known obstacle"


@dataclass(frozen=True, slots=True)
class ProfileNotes:
    """The notes of all chosen profiles.

    Attributes:
        revision: the revision whose lists were measured; empty if nothing was.
        server: the name of the server that counts in prefixes of tool names.
        clients: the notes of each client.
    """

    revision: str = ""
    server: str = ""
    clients: tuple[ClientNotes, ...] = field(default=())

    @property
    def losing(self) -> list[Note]:
        """The notes with which something is lost."""
        notes = (note for client in self.clients for note in client.notes)
        return [note for note in notes if note.rule.effect.loses]

    def differences(self) -> Iterator[str]:
        """Yield a sentence for each thing that some clients accept and others do not."""
        for kind in MEASURES:
            rules = [
                rule
                for client in self.clients
                if client.rules
                for rule in profile(client.client).rules
                if rule.measures == kind and not MEASURES[kind].of_record
            ]
            noted = [n.rule for c in self.clients for n in c.notes if n.rule.measures == kind]
            accepting = {rule.client for rule in rules} - {rule.client for rule in noted}
            if not noted or not accepting:
                continue
            both = f"{', '.join(sorted(accepting))}: accepted"
            for rule in noted:
                both += f"; {rule.client}: {rule.effect}"
            yield f"{MEASURES[kind].what} ({both}). {_for_all(kind, rules, self.server)}"


def _for_all(kind: str, rules: Sequence[Rule], server: str) -> str:
    """Return what satisfies all of these rules."""
    if kind == "tool-name-length":
        room = min(rule.limit - len(rule.before(server)) for rule in rules)
        return f"At most {max(room, 0)} characters suit all, with the server named {server!r}."
    if all(rule.limit for rule in rules):
        return f"At most {min(rule.limit for rule in rules)} suit all."
    return "What suits the strictest of them suits all."


BY_HAND: Final = "it makes no screen by machine that is known"
UNOPENED: Final = "the server could not be opened"
NOTHING: Final = "the server listed no tools"
NO_RECORD: Final = "its rules are about a registry record: name it with --from server.json"
FIRST_PAGE: Final = "only the first page of the list of tools was measured"


def measured(
    clients: Iterable[str], server: "ServerProfile", record: Mapping[str, Any] | None = None
) -> ProfileNotes:
    """Apply the rules of profiles to what a run saw of a server.

    Hosts speak the revisions with a handshake first, so the lists of the newest of these are
    measured, or those of the newest revision if the server speaks no other.

    Args:
        clients: the profiles.
        server: the profile of the server.
        record: its record in a registry, if one was named.
    """
    spoken = [r for r in rev.ALL if r in server.spoken]
    old = [r for r in spoken if not rev.is_modern(r)]
    revision = (old or spoken)[-1] if spoken else ""
    seen = ServerFacts(record=record)
    if revision:
        seen = _seen(revision, server.spoken[revision], record)
    notes = tuple(_client(one, seen) for one in clients)
    return ProfileNotes(revision, seen.server, notes)


def _seen(revision: str, one: "Spoken", record: Mapping[str, Any] | None) -> ServerFacts:
    name, text = one.server_info.get("name"), one.result.get("instructions")
    return ServerFacts(
        revision=revision,
        server=name if isinstance(name, str) else "",
        instructions=text if isinstance(text, str) else "",
        tools=one.named("tools"),
        more="tools/list" in one.cursors,
        record=record,
    )


def _client(client: str, seen: ServerFacts) -> ClientNotes:
    known = profile(client)
    if not known.rules:
        return ClientNotes(client, known.name, unmeasured=BY_HAND)
    of_record = all(MEASURES[rule.measures].of_record for rule in known.rules)
    if of_record and seen.record is None:
        return ClientNotes(client, known.name, unmeasured=NO_RECORD)
    wants_tools = not any(rule.measures == NO_TOOLS for rule in known.rules)
    if not of_record and not seen.tools and (wants_tools or not seen.revision):
        return ClientNotes(client, known.name, unmeasured=NOTHING if seen.revision else UNOPENED)
    found = [
        Note(rule, what)
        for rule in known.rules
        if (what := tuple(MEASURES[rule.measures].find(seen, rule)))
    ]
    order = tuple(Effect)
    found.sort(key=lambda note: order.index(note.rule.effect))
    return ClientNotes(
        client,
        known.name,
        len(known.rules),
        len(seen.tools),
        tuple(found),
        FIRST_PAGE if seen.more and not of_record else "",
    )
