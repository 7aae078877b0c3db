"""clients/skills: how a client lists and loads skills; ``FORBIDDEN`` has those not to use."""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from mcp_touchstone.suite import (
    Breach,
    Happened,
    Record,
    Seen,
    ambient,
    brief,
    clients,
    list_in,
    object_in,
    parts,
)

GOOD, NEVER, HIDDEN = "good", "never", "hidden"
FORBIDDEN = {
    "client-skills-digest": "altered",
    "client-skills-size": "longer",
    "client-skills-frontmatter": "renamed",
    "client-skills-invalid-entry": "bare",
}
"""Clause -> the skill that it forbids to use."""

BARE = FORBIDDEN["client-skills-invalid-entry"]
LISTED = (GOOD, NEVER, *(name for name in FORBIDDEN.values() if name != BARE))
"""Those of the list; a client may refuse one that has an invalid entry as a whole."""

NOTES = "skill://good/notes.md"
TELL = "tell"
"""The tool to which the texts of the skills go back."""


def uri(name: str) -> str:
    """Return the URI of a skill."""
    return f"skill://{name}/SKILL.md"


def text(name: str) -> str:
    """Return the SKILL.md of a skill."""
    return f"---\nname: {name}\ndescription: How to be {name}.\n---\n\n# The skill {name}\n"


def entry(name: str) -> parts.Json:
    """Return the entry of a skill."""
    raw = text(name).encode()
    described = raw.replace(b"# The", b"# One") if name == "altered" else raw
    file = {
        "uri": uri(name),
        "digest": f"sha256:{hashlib.sha256(described).hexdigest()}",
        "size": len(raw) + (name == "longer"),
    }
    more = [{"uri": NOTES, "digest": f"sha256:{hashlib.sha256(b'Notes.').hexdigest()}", "size": 6}]
    other = "something else" if name == "renamed" else name
    made: parts.Json = {
        "uri": uri(name),
        "frontmatter": {"name": name, "description": f"How to be {other}."},
    }
    files = [file, *(more if name == GOOD else ())]
    return made if name == BARE else {**made, "resources": files}


FILES = {uri(name): text(name) for name in (*LISTED, BARE, HIDDEN)} | {NOTES: "Notes."}


@parts.scenario("skills", official="")
class Skills(parts.Part):
    """Offer skills, of which some must not be used, and take back the texts of those loaded."""

    modern = True
    capabilities: ClassVar = {
        **parts.Part.capabilities,
        "resources": {},
        "extensions": {"io.modelcontextprotocol/skills": {}},
    }
    steps: ClassVar[tuple[parts.Json, ...]] = (
        {"list": "tools"},
        {"list": "skills", "fails": True},  # most clients have no skills
        {"load": uri(GOOD)},
        *({"load": uri(name), "fails": True} for name in (*FORBIDDEN.values(), HIDDEN)),
        {"call": TELL, "arguments": {"texts": []}, "loaded": True},
    )
    results: ClassVar[Mapping[str, parts.Json]] = {
        "skills/list": {"skills": [entry(name) for name in LISTED]},
    }

    def tools(self, params: parts.Json) -> parts.Json | None:
        """Return the tool."""
        del params
        texts = {"texts": {"type": "array", "items": {"type": "string"}}}
        return {"tools": [{"name": TELL, "inputSchema": {"type": "object", "properties": texts}}]}

    def serve(self, request: parts.Json) -> None:
        """Answer a request."""
        wanted = str(object_in(request, "params").get("uri"))
        if not self.is_open(request):
            super().serve(request)
        elif request["method"] == "skills/get" and wanted in FILES and wanted != NOTES:
            name = wanted.removeprefix("skill://").partition("/")[0]
            self.answer(request, {"skill": entry(name), **self.cache})
        elif request["method"] == "resources/read" and wanted in FILES:
            contents = [{"uri": wanted, "mimeType": "text/markdown", "text": FILES[wanted]}]
            self.answer(request, {"contents": contents, **self.cache})
        elif request["method"] in {"skills/get", "resources/read"}:
            self.refuse(request, parts.INVALID_PARAMS, "Unknown", uri=wanted)
        else:
            super().serve(request)


def _sent(record: Record, method: str) -> Iterator[Any]:
    """Yield the requests with a method."""
    return (one for one in clients.requests(record) if one.method == method)


@ambient("client-skills-no-prefetch")
def reads_no_skill_before_it_is_loaded(record: Record) -> Iterator[Seen]:
    """The files that no step loads are not read."""
    early = {uri(NEVER), NOTES}
    for listed in [*_sent(record, "skills/list")][:1] if record.scenario == "skills" else ():
        files = [*_sent(record, "resources/read")]
        read = [one for one in files if _uri(one) in early]
        if read or clients.event(record, Happened.ENDED):
            at = read[0].line if read else listed.line
            actual = f"{_uri(read[0])} was read" if read else ""
            expected = "only the files that a step loads"
            loaded = any(_uri(one) == uri(GOOD) and one.line < at for one in files)
            installs = loaded and {_uri(one) for one in read} == {NOTES}
            mild = Breach.WARN if installs else None
            yield Seen("client-skills-no-prefetch", not read, at, expected, actual, mild=mild)


def _uri(asked: Any) -> str:
    return str(object_in(asked.value, "params").get("uri"))


@ambient(*FORBIDDEN, "client-skills-by-uri")
def uses_only_what_it_verified(record: Record) -> Iterator[Seen]:
    """The texts that the client hands back are those of skills that it may use."""
    for call in _sent(record, "tools/call") if record.scenario == "skills" else ():
        given = list_in(call.value, "params", "arguments", "texts")
        if text(GOOD) not in given:
            continue
        for clause, name in FORBIDDEN.items():
            actual = f"{brief(uri(name))} was used"
            yield Seen(clause, text(name) not in given, call.line, "it is not used", actual)
        by_uri, expected = text(HIDDEN) in given, f"{brief(uri(HIDDEN))} too"
        yield Seen("client-skills-by-uri", by_uri, call.line, expected, "only listed skills")


@ambient("client-skills-directory")
def reads_no_directories_that_are_not_offered(record: Record) -> Iterator[Seen]:
    """resources/directory/read needs directoryRead; without skills it has no meaning here."""
    if record.scenario == "skills":
        read = [*_sent(record, "resources/directory/read")]
        for asked in read:
            expected, actual = "no such request", "it was sent, without directoryRead"
            yield Seen("client-skills-directory", False, asked.line, expected, actual)
        if not read and any(_sent(record, "skills/list")):
            yield Seen("client-skills-directory", True, None)
