"""What is known of one server: revisions, capabilities, lists, and examples that worked. Values.

``recon`` fills in what the opening and the lists tell, ``learning`` what has to be tried.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from mcp_touchstone import needs, uri_template
from mcp_touchstone import revision as rev
from mcp_touchstone.arguments import is_path, required
from mcp_touchstone.attack.bindings import Bindings
from mcp_touchstone.framing import brief
from mcp_touchstone.pace import Pace
from mcp_touchstone.reply import Reply

LISTS: Final = {
    "tools": ("tools/list", "tools"),
    "resources": ("resources/list", "resources"),
    "templates": ("resources/templates/list", "resourceTemplates"),
    "prompts": ("prompts/list", "prompts"),
}
"""Feature -> its list method and the member of the result that holds the items."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request that can be sent again.

    Attributes:
        method: its method; empty for what a server does by itself once it is opened.
        params: its params, without ``_meta``.
    """

    method: str
    params: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        """Say it in words."""
        name = self.params.get("name") or self.params.get("uri") or ""
        words = [self.method or "(unasked)", name if isinstance(name, str) else ""]
        if self.params.get("arguments"):
            words.append(brief(self.params["arguments"], 60))
        return " ".join(word for word in words if word)


@dataclass(frozen=True, slots=True)
class Example(Exchange):
    """An exchange that did once what a word asks for.

    Attributes:
        result: the result it got; empty where it got none.
        seconds: how long that took.
        item: the listed definition of the tool, resource or prompt; empty where it is not listed.
        asked: what the server asked of the client meanwhile: method and params of each request.
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
        """The arguments of the call; empty where there are none."""
        found = self.params.get("arguments")
        return dict(found) if isinstance(found, dict) else {}

    @property
    def schema(self) -> dict[str, Any]:
        """The inputSchema of the tool; empty where it has none."""
        found = self.item.get("inputSchema")
        return found if isinstance(found, dict) else {}


@dataclass(slots=True)
class Spoken:
    """What is known of one revision.

    Attributes:
        opening: the answer that opened the connection.
        lists: feature -> items of the first page; absent where the list was not asked or failed.
        cursors: list method -> nextCursor of the first page.
        found: word -> what was tried and did what the word asks for, the best first.
        tried: words that were decided by trying.
        notes: word -> why nothing does, where more can be said than that.
    """

    opening: Reply
    lists: dict[str, list[Any]] = field(default_factory=dict)
    cursors: dict[str, str] = field(default_factory=dict)
    found: dict[str, list[Example]] = field(default_factory=dict)
    tried: set[str] = field(default_factory=set)
    notes: dict[str, str] = field(default_factory=dict)

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
        """The result of initialize or server/discover; empty where it was refused."""
        return self.opening.result or {}

    @property
    def capabilities(self) -> dict[str, Any]:
        """What the server declared; empty where it declared nothing readable."""
        found = self.result.get("capabilities")
        return found if isinstance(found, dict) else {}

    @property
    def server_info(self) -> dict[str, Any]:
        """Name and version of the server, wherever this revision puts them."""
        found = self.result.get("serverInfo")
        if not isinstance(found, dict):
            meta = self.result.get("_meta")
            found = meta.get(rev.META + "serverInfo") if isinstance(meta, dict) else None
        return found if isinstance(found, dict) else {}

    @property
    def versions(self) -> list[str]:
        """What supportedVersions lists, as far as it can be read; empty in a handshake revision."""
        found = self.result.get("supportedVersions")
        return [v for v in found if isinstance(v, str)] if isinstance(found, list) else []

    @property
    def extensions(self) -> dict[str, Any]:
        """The extensions the server advertises; empty where it advertises none."""
        found = self.capabilities.get("extensions")
        return found if isinstance(found, dict) else {}

    @property
    def listing(self) -> list[str]:
        """List methods that gave a page when they were asked."""
        return [LISTS[feature][0] for feature in self.lists]

    def items(self, feature: str) -> list[dict[str, Any]]:
        """Give the listed items that are objects."""
        return [item for item in self.lists.get(feature, []) if isinstance(item, dict)]

    def named(self, feature: str, member: str = "name") -> list[dict[str, Any]]:
        """Give the listed items that have a name (or another member) that is a string."""
        return [item for item in self.items(feature) if isinstance(item.get(member), str)]

    @property
    def completable(self) -> list[tuple[dict[str, str], str]]:
        """What can be completed: a reference, and the name of an argument or a variable."""
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
        """Give what was tried and does what a word asks for, the best first."""
        of_tools = _OF_TOOLS.get(word)
        if of_tools is not None:
            return [call for call in self.found.get("callable-tool", []) if of_tools(call)]
        return self.found.get(word, [])

    def offers(self, need: str) -> bool:
        """Whether a word is met, or a capability declared."""
        if need in self.tried:
            return bool(self.examples(need))
        if need in _LISTED:
            return _LISTED[need](self)
        return bool(self.examples(need)) if need in needs.WORDS else self.declares(need)

    def declares(self, path: str) -> bool:
        """Whether a capability, or a member of one, is declared."""
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
        """Whether a sub-flag such as ``listChanged`` is declared true."""
        return self.declares(f"{feature}.{name}")


@dataclass(frozen=True, slots=True)
class Canary:
    """What was planted where no server has to look; where it turns up, something leaked.

    Attributes:
        folder: an absolute path beside the root.
        name: the file in it; the name stands nowhere else.
        text: its content; stands nowhere else either.
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


@dataclass(slots=True)
class Dossier:
    """Everything known.

    Attributes:
        spoken: by revision; only what was proven.
        offers: legacy revision asked -> protocolVersion named in the answer.
        refused: revision -> what came instead of a result.
        pace: measured latencies.
        trouble: what kept us from learning anything; empty when we did.
        stderr: last words of the server, where there was trouble.
        remarks: what the user should know of what they named.
        canary: what was planted; None where nothing was.
        root: the folder examples were found in; empty where nothing was tried.
        granted: folders the server was told of, by its command, its environment, or as its own.
        bindings: what tools were seen to do to files; None where nobody looked.
        settle: (revision, word) -> returns once the word is decided there; what is known may be
            used while the rest is still tried.
    """

    pace: Pace
    spoken: dict[str, Spoken] = field(default_factory=dict)
    offers: dict[str, Any] = field(default_factory=dict)
    refused: dict[str, Reply] = field(default_factory=dict)
    trouble: str = ""
    stderr: str = ""
    remarks: list[str] = field(default_factory=list)
    canary: Canary | None = None
    root: str = ""
    granted: tuple[Path, ...] = ()
    bindings: Bindings | None = None
    settle: Callable[[str, str], None] = field(default=lambda _revision, _word: None, repr=False)

    @property
    def modern(self) -> bool:
        """Whether a stateless revision is spoken."""
        return any(rev.is_modern(revision) for revision in self.spoken)

    @property
    def legacy(self) -> tuple[str, ...]:
        """Handshake revisions spoken, oldest first."""
        return tuple(revision for revision in rev.LEGACY if revision in self.spoken)

    @property
    def asked(self) -> tuple[str, ...]:
        """Revisions the server was asked for, oldest first; of others nothing is known."""
        known = {*self.spoken, *self.refused, *self.offers}
        return tuple(revision for revision in rev.ALL if revision in known)

    @property
    def name(self) -> str:
        """Name and version the server gives itself, newest revision first."""
        for revision in reversed(rev.ALL):
            info = self.spoken[revision].server_info if revision in self.spoken else {}
            if info.get("name"):
                return f"{info.get('name')} {info.get('version', '')}".strip()
        return "(a server without a name)"

    def lacks(self, wanted: tuple[str, ...], revision: str) -> str:
        """Say which need is not met in a revision; empty when all are.

        What only shows while the server is used (``needs.SHOWN_ONLY``) counts as met.
        """
        for need in wanted:
            if not any(self._meets(choice, revision) for choice in needs.choices(need)):
                return need
        return ""

    def why(self, need: str, revision: str) -> str:
        """Say what is missing where a need is not met; completes "the server offers no ..."."""
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
    """Whether a listed tool is annotated as one that changes nothing."""
    hints = tool.get("annotations")
    return isinstance(hints, dict) and hints.get("readOnlyHint") is True


def may_be_task(tool: Mapping[str, Any]) -> bool:
    """Whether a tool lists that it can be run as a task."""
    return task_support(tool) in {"optional", "required"}


def task_support(tool: Mapping[str, Any]) -> Any:
    """Give what a listed tool says of tasks, whatever it is; None where it says nothing."""
    execution = tool.get("execution")
    return execution.get("taskSupport") if isinstance(execution, dict) else None


def _needs_nothing(tool: Mapping[str, Any]) -> bool:
    schema = tool.get("inputSchema")
    return isinstance(schema, dict) and not schema.get("required")


def required_arguments(prompt: Mapping[str, Any]) -> list[str]:
    """Name the arguments a listed prompt requires."""
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


_LISTED: Final[dict[str, Callable[[Spoken], bool]]] = {
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
"""Words the lists decide."""

_OF_TOOLS: Final[dict[str, Callable[[Example], bool]]] = {
    "argument-tool": lambda call: bool(required(call.schema)),
    "structured-tool": lambda call: isinstance(call.item.get("outputSchema"), dict),
}
"""Words that are met by some of the callable tools."""
