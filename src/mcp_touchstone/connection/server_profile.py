"""The profile of one server: revisions, capabilities, lists, working examples. Values.

``recon`` adds facts from the opening and the lists, ``probes`` adds the results of probes.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mcp_touchstone.catalog import needs
from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.sdk import UNKNOWN, SdkIdentity
from mcp_touchstone.runtime.timeouts import Pace
from mcp_touchstone.samples import uri_template
from mcp_touchstone.samples.from_schema import is_path, required
from mcp_touchstone.wire.framing import brief, object_in, value_in
from mcp_touchstone.wire.near_miss import Slip
from mcp_touchstone.wire.reply import Reply

if TYPE_CHECKING:
    from mcp_touchstone.bindings.binding import Bindings

CAPABILITIES_WITH_LISTS: Final = ("tools", "resources", "prompts")
"""Capabilities with a list method, ``CAPABILITY/list``."""

LISTS: Final = {
    "tools": ("tools/list", "tools"),
    "resources": ("resources/list", "resources"),
    "templates": ("resources/templates/list", "resourceTemplates"),
    "prompts": ("prompts/list", "prompts"),
}
"""Feature -> its list method and the member of the result that holds the items."""

REFUSALS: Final = frozenset({"refused-call", "unanswered-call"})
"""Words whose examples are no successful calls."""

FAILED_CALL: Final = "tool "
"""Start of the key of a note: the last answer of this tool, no call of which succeeded."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request that can be sent again.

    Attributes:
        method: its method; empty for unsolicited actions of a server after the opening.
        params: its params, without ``_meta``.
    """

    method: str
    params: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        name = self.params.get("name") or self.params.get("uri") or ""
        words = [self.method or "(unasked)", name if isinstance(name, str) else ""]
        if self.params.get("arguments"):
            words.append(brief(self.params["arguments"], 60))
        return " ".join(word for word in words if word)


@dataclass(frozen=True, slots=True)
class Example(Request):
    """An exchange that showed the feature of a word once.

    Attributes:
        result: its result; empty if it got none.
        seconds: its duration, in seconds.
        item: the listed definition of the tool, resource or prompt; empty if it is not listed.
        asked: requests of the server during it: method and params of each.
    """

    result: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    item: Mapping[str, Any] = field(default_factory=dict)
    asked: tuple[Mapping[str, Any], ...] = ()

    @property
    def name(self) -> str:
        """The name of the tool or prompt; empty for anything else."""
        found = self.params.get("name")
        return found if isinstance(found, str) else ""

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of the call; empty if there are none."""
        return dict(object_in(self.params, "arguments"))

    @property
    def schema(self) -> dict[str, Any]:
        """The inputSchema of the tool; empty if it has none."""
        return object_in(self.item, "inputSchema")


class Decided:
    """What the probes have decided in one revision; it grows while they go on.

    Attributes:
        found: word -> the examples that showed its feature, the best first.
        tried: words decided by probes.
        notes: word -> the reason there is no example, if a more precise one is known.
        faults: word -> a fault of ours that left it undecided.
    """

    def __init__(self) -> None:
        self.found: dict[str, list[Example]] = {}
        self.tried: set[str] = set()
        self.notes: dict[str, str] = {}
        self.faults: dict[str, str] = {}

    def add(self, word: str, example: Example) -> None:
        """Add an example of a word, once."""
        kept = self.found.setdefault(word, [])
        if all((known.method, known.params) != (example.method, example.params) for known in kept):
            kept.append(example)

    def note(self, word: str, why: str) -> None:
        """Say why there is no example of a word."""
        self.notes[word] = why

    def forget(self, word: str) -> None:
        """Drop the reason that there is no example of a word."""
        self.notes.pop(word, None)

    def fail(self, words: Iterable[str], fault: str) -> None:
        """Say that a fault of ours left words undecided; the first one counts."""
        self.faults = {**dict.fromkeys(words, fault), **self.faults}

    def settle(self, words: Iterable[str]) -> None:
        """Say that words are decided."""
        self.tried = {*self.tried, *words}

    def take(self, other: "Decided", words: Iterable[str]) -> None:
        """Take over what is known of words elsewhere."""
        for word in words:
            if word in other.found:
                self.found[word] = other.found[word]
            if word in other.notes:
                self.notes[word] = other.notes[word]
            if word in other.faults:
                self.faults[word] = other.faults[word]


@dataclass(frozen=True, slots=True)
class Spoken:
    """The profile of one revision.

    Attributes:
        opening: the answer that opened the connection.
        lists: feature -> items of the first page; absent if the list was not requested or failed.
        served: the capabilities of a server that answers no server/discover, by its lists.
        pings: whether it knows the method ping.
        cursors: list method -> nextCursor of the first page.
        decided: what the probes have decided; only they add to it.
    """

    opening: Reply
    lists: Mapping[str, list[Any]] = field(default_factory=dict)
    served: dict[str, Any] = field(default_factory=dict)
    pings: bool = True
    cursors: Mapping[str, str] = field(default_factory=dict)
    decided: Decided = field(default_factory=Decided)

    @property
    def found(self) -> Mapping[str, Sequence[Example]]:
        """Word -> the examples that showed its feature, the best first."""
        return self.decided.found

    @property
    def tried(self) -> AbstractSet[str]:
        """The words that probes have decided."""
        return self.decided.tried

    @property
    def notes(self) -> Mapping[str, str]:
        """Word -> the reason there is no example, if a more precise one is known."""
        return self.decided.notes

    @property
    def substitute(self) -> str:
        """The list to ask for in place of ping or server/discover; empty if it has that method."""
        lists = [f"{feature}/list" for feature in self.served]
        return next(iter(lists if self.pings else self.list_methods), "")

    @property
    def harmless(self) -> list[str]:
        """Names of tools annotated read-only that need no arguments."""
        return [t["name"] for t in self.named("tools") if is_read_only(t) and _needs_nothing(t)]

    @property
    def plain_prompts(self) -> list[str]:
        """Names of prompts that need no arguments."""
        return [p["name"] for p in self.named("prompts") if not required_arguments(p)]

    @property
    def result(self) -> dict[str, Any]:
        """The result of initialize or server/discover; empty if it was refused."""
        return self.opening.result or {}

    @property
    def capabilities(self) -> dict[str, Any]:
        """The declared capabilities; empty if there are no readable ones."""
        found = self.result.get("capabilities")
        return found if isinstance(found, dict) else self.served

    @property
    def server_info(self) -> dict[str, Any]:
        """Name and version of the server, at the place that this revision defines."""
        if isinstance(found := self.result.get("serverInfo"), dict):
            return found
        return object_in(self.result, "_meta", rev.META + "serverInfo")

    @property
    def versions(self) -> list[str]:
        """The readable items of supportedVersions; empty in a legacy revision."""
        found = self.result.get("supportedVersions")
        return [v for v in found if isinstance(v, str)] if isinstance(found, list) else []

    @property
    def extensions(self) -> dict[str, Any]:
        """The extensions the server advertises; empty if there are none."""
        return object_in(self.capabilities, "extensions")

    @property
    def declared_list_methods(self) -> list[str]:
        """List methods of the declared features."""
        return [
            f"{feature}/list" for feature in CAPABILITIES_WITH_LISTS if feature in self.capabilities
        ]

    @property
    def list_methods(self) -> list[str]:
        """List methods that returned a page."""
        return [LISTS[feature][0] for feature in self.lists]

    def items(self, feature: str) -> list[dict[str, Any]]:
        """Return the listed items that are objects."""
        return [item for item in self.lists.get(feature, []) if isinstance(item, dict)]

    def named(self, feature: str, member: str = "name") -> list[dict[str, Any]]:
        """Return the listed items whose name (or another member) is a string."""
        return [item for item in self.items(feature) if isinstance(item.get(member), str)]

    @property
    def completable(self) -> list[tuple[dict[str, str], str]]:
        """The completable arguments and variables: a reference, and the name of each."""
        found = [
            ({"type": "ref/prompt", "name": prompt["name"]}, argument["name"])
            for prompt in self.named("prompts")
            for argument in _list(prompt.get("arguments"))
            if isinstance(argument, dict) and isinstance(argument.get("name"), str)
        ]
        for template in self.named("templates", "uriTemplate"):
            reference = {"type": "ref/resource", "uri": template["uriTemplate"]}
            found += [(reference, name) for name in uri_template.variables(reference["uri"])]
        return found

    def examples(self, word: str) -> list[Example]:
        """Return the examples of a word, the best first."""
        of_tools = _OF_TOOLS.get(word)
        if of_tools is not None:
            return [call for call in self.found.get("callable-tool", ()) if of_tools(call)]
        return self.decided.found.get(word, [])

    def offers(self, need: str) -> bool:
        """Return whether a word is met, or a capability declared."""
        if need in self.tried:
            return bool(self.examples(need))
        if need in _LISTED:
            return _LISTED[need](self)
        return bool(self.examples(need)) if need in needs.WORDS else self.declares(need)

    def declares(self, path: str) -> bool:
        """Return whether a capability, or a member of one, is declared."""
        feature, *members = path.split(".")
        value = self.capabilities.get(feature)
        if not isinstance(value, dict):
            return False
        for member in members:
            value = value.get(member) if isinstance(value, dict) else None
            if not (value is True or (isinstance(value, dict) and member not in needs.FLAGS)):
                return False
        return True

    def flag(self, feature: str, name: str) -> bool:
        """Return whether a sub-flag such as ``listChanged`` is declared true."""
        return self.declares(f"{feature}.{name}")


@dataclass(frozen=True, slots=True)
class PlantedText:
    """Data planted outside the root; it proves a leak if an output of the server contains it.

    Attributes:
        folder: an absolute path beside the root.
        name: the unique name of the file in it.
        text: its unique content.
        secret: a credential in the environment of the server.
    """

    folder: str
    name: str
    text: str
    secret: str

    @property
    def path(self) -> str:
        """The absolute path of the file."""
        return f"{self.folder}/{self.name}"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The breach of a clause that explains why discovery learnt nothing.

    Attributes:
        expected: the requirement of the clause.
        actual: the behaviour of the server, and the usual cure.
        revision: the revision of the process that shows it.
        asked: number of our line there.
        entry: number of the server's line; None if it wrote none.
    """

    clause: str
    expected: str
    actual: str
    revision: str
    asked: int
    entry: int | None = None


class Discovered:
    """What discovery adds to a profile until it ends.

    Attributes:
        remarks: remarks for the user on the names they gave, and on how the server is judged.
        bindings: the observed effects of tools on files; None if not observed.
    """

    def __init__(self, *remarks: str) -> None:
        self.remarks = [*remarks]
        self.bindings: Bindings | None = None

    def remark(self, sentence: str) -> None:
        """Add a remark."""
        self.remarks.append(sentence)

    def bind(self, bindings: "Bindings") -> None:
        """Say which effects were observed."""
        self.bindings = bindings


@dataclass(frozen=True, slots=True)
class ServerProfile:
    """The complete profile of a server.

    Attributes:
        spoken: the proven revisions, with their profiles.
        offers: requested legacy revision -> protocolVersion in the answer.
        refused: revision -> the answer that came instead of a result.
        pace: measured latencies.
        trouble: the reason discovery learnt nothing; empty if it learnt something.
        stderr: end of the server's stderr, if there was trouble.
        canary: the planted data; None if there is none.
        root: the folder of the examples; empty if there were no probes.
        granted: folders given to the server by its command, its environment, or as its own.
        slip: the fault of each of its messages, in spite of which they are read.
        diagnosis: the breach that explains the trouble; None if none is known.
        is_excused: whether the trouble is no fault of the server, so that nothing is judged.
        is_silent: whether the trouble is that it did not answer in time.
        is_single: whether only one process of the server can run at a time.
        discovered: what discovery has added.
    """

    pace: Pace
    spoken: Mapping[str, Spoken] = field(default_factory=dict)
    offers: Mapping[str, Any] = field(default_factory=dict)
    refused: Mapping[str, Reply] = field(default_factory=dict)
    trouble: str = ""
    stderr: str = ""
    canary: PlantedText | None = None
    root: str = ""
    granted: tuple[Path, ...] = ()
    slip: Slip | None = None
    diagnosis: Diagnosis | None = None
    sdk: SdkIdentity = UNKNOWN
    is_single: bool = False
    is_excused: bool = False
    is_silent: bool = False
    discovered: Discovered = field(default_factory=Discovered)

    @property
    def remarks(self) -> Sequence[str]:
        """Remarks for the user on the names they gave, and on how the server is judged."""
        return self.discovered.remarks

    @property
    def bindings(self) -> "Bindings | None":
        """The observed effects of tools on files; None if not observed."""
        return self.discovered.bindings

    @property
    def modern(self) -> bool:
        """Whether the server supports a modern revision."""
        return any(rev.is_modern(revision) for revision in self.spoken)

    @property
    def legacy(self) -> tuple[str, ...]:
        """The supported legacy revisions, oldest first."""
        return tuple(revision for revision in rev.LEGACY if revision in self.spoken)

    @property
    def asked(self) -> tuple[str, ...]:
        """The revisions requested from the server, oldest first; others are unknown."""
        known = {*self.spoken, *self.refused, *self.offers}
        return tuple(revision for revision in rev.ALL if revision in known)

    @property
    def name(self) -> str:
        """Name and version that the server reports, from its newest revision; empty for none."""
        for revision in reversed(rev.ALL):
            info = self.spoken[revision].server_info if revision in self.spoken else {}
            if info.get("name"):
                return f"{info.get('name')} {info.get('version', '')}".strip()
        return ""

    def lacks(self, wanted: tuple[str, ...], revision: str) -> str:
        """Return the first unmet need in a revision; empty if all are met.

        A feature that appears only in use (``needs.SHOWN_ONLY``) counts as met.
        """
        for need in wanted:
            if not any(self._meets(choice, revision) for choice in needs.choices(need)):
                return need
        return ""

    def fault(self, wanted: tuple[str, ...], revision: str) -> str:
        """Return the fault of ours that left a need undecided; empty if there is none."""
        spoken = self.spoken.get(revision)
        words = (word for need in wanted for word in needs.choices(need))
        return next(
            (spoken.decided.faults[w] for w in words if spoken and w in spoken.decided.faults), ""
        )

    def why(self, need: str, revision: str) -> str:
        """Return the missing features of an unmet need; completes "the server offers ..."."""
        spoken = self.spoken.get(revision)
        notes = [spoken.notes[w] for w in needs.choices(need) if spoken and w in spoken.notes]
        if self.bindings is not None and set(needs.choices(need)) & set(needs.OPERATIONS):
            notes += [self.bindings.why] if self.bindings.why else []
        return "; ".join([needs.explain(need), *dict.fromkeys(notes)])

    def _meets(self, need: str, revision: str) -> bool:
        handshakes = bool(self.legacy or self.offers)
        eras = {"modern-only": not handshakes, "dual-era": handshakes}
        if need in eras:
            return self.modern and eras[need]
        if need in needs.OPERATIONS:
            return self.bindings is not None and self.bindings.meet(need)
        spoken = self.spoken.get(revision)
        return need in needs.SHOWN_ONLY or (spoken is not None and spoken.offers(need))


def is_read_only(tool: Mapping[str, Any]) -> bool:
    """Return whether a listed tool is annotated as read-only."""
    return value_in(tool, "annotations", "readOnlyHint") is True


def may_be_task(tool: Mapping[str, Any]) -> bool:
    """Return whether a listed tool declares that it can run as a task."""
    return task_support(tool) in ("optional", "required")


def task_support(tool: Mapping[str, Any]) -> Any:
    """Return the taskSupport of a listed tool, of any type; None if absent."""
    return value_in(tool, "execution", "taskSupport")


def _needs_nothing(tool: Mapping[str, Any]) -> bool:
    schema = tool.get("inputSchema")
    return isinstance(schema, dict) and not schema.get("required")


def required_arguments(prompt: Mapping[str, Any]) -> list[str]:
    """Return the names of the arguments that a listed prompt requires."""
    return [
        str(argument.get("name"))
        for argument in _list(prompt.get("arguments"))
        if isinstance(argument, dict) and argument.get("required")
    ]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _icons(spoken: Spoken) -> bool:
    listed = (item for feature in spoken.lists for item in spoken.items(feature))
    return any("icons" in item for item in (spoken.server_info, *listed))


def _has_files(spoken: Spoken) -> bool:
    uris = [r["uri"] for r in spoken.named("resources", "uri")]
    templates = [t["uriTemplate"] for t in spoken.named("templates", "uriTemplate")]
    return any(uri.startswith("file:") for uri in [*uris, *templates]) or any(
        is_path(name) for template in templates for name in uri_template.variables(template)
    )


def _has_apps(spoken: Spoken) -> bool:
    """Whether the server declares MCP Apps, or lists a page or a tool that names one."""
    return (
        "io.modelcontextprotocol/ui" in spoken.extensions
        or any(r["uri"].startswith("ui://") for r in spoken.named("resources", "uri"))
        or any({"ui", "ui/resourceUri"} & {*object_in(t, "_meta")} for t in spoken.items("tools"))
    )


_LISTED: Final[dict[str, Callable[[Spoken], bool]]] = {
    "tasks-extension": lambda spoken: "io.modelcontextprotocol/tasks" in spoken.extensions,
    "skills-extension": lambda spoken: "io.modelcontextprotocol/skills" in spoken.extensions,
    "apps": _has_apps,
    "pagination": lambda spoken: bool(spoken.cursors),
    "icons": _icons,
    "argument-schema": lambda spoken: any(
        isinstance(schema := tool.get("inputSchema"), dict) and schema.get("properties")
        for tool in spoken.named("tools")
    ),
    "listed-resource": lambda spoken: bool(spoken.named("resources", "uri")),
    "listed-template": lambda spoken: bool(spoken.items("templates")),
    "template-with-variable": lambda spoken: any(
        uri_template.variables(t["uriTemplate"]) for t in spoken.named("templates", "uriTemplate")
    ),
    "file-resources": _has_files,
    "listed-prompt": lambda spoken: bool(spoken.named("prompts")),
    "prompt-with-arguments": lambda spoken: any(map(required_arguments, spoken.named("prompts"))),
}
"""Words that the lists decide."""

_OF_TOOLS: Final[dict[str, Callable[[Example], bool]]] = {
    "argument-tool": lambda call: bool(required(call.schema)),
    "structured-tool": lambda call: isinstance(call.item.get("outputSchema"), dict),
}
"""Words that callable tools can meet."""


def working_tools(spoken: Spoken) -> list[str]:
    """Return the names of tools with a successful call, in the order of the words."""
    kept = (one for word, some in spoken.found.items() if word not in REFUSALS for one in some)
    return [one.name for one in kept if one.method == "tools/call" and one.name]
