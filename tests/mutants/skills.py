"""Servers that break a rule of the Skills extension."""

from typing import Any, ClassVar

from tests.mutants.kit import (
    MODERN,
    Fault,
    Json,
    Out,
    adds,
    controls,
    drops,
    has,
    mutants,
    params,
    puts,
    refusal,
)

EXTENSION = "io.modelcontextprotocol/skills"
EDIT = "skill://edit-text/SKILL.md"
TREES = "skill://trees/compare-trees/SKILL.md"
WRONG = "sha256:" + "0" * 64


class _Skills(Fault, settings={"features": ("skills",)}):
    """Changes what the reference server says about its skills."""

    def said(self, message: Any, request: Json) -> Out:
        if not isinstance(message, dict) or "result" not in message:
            return message
        result, method = message["result"], request.get("method")
        uri = params(request).get("uri", "")
        if method == "server/discover":
            self.declare(result["capabilities"])
        elif method == "skills/list":
            for skill in result["skills"]:
                self.any(skill)
                self.one(skill)
            self.list(result)
        elif method == "skills/get":
            self.any(result["skill"])
            self.get(result)
        elif method == "resources/directory/read":
            self.children(result)
        elif method == "resources/read" and uri.startswith("skill:"):
            self.read(result["contents"][0])
        elif method == "resources/list":
            self.resources([r for r in result["resources"] if r["uri"].startswith("skill:")])
        return message

    def any(self, skill: Json) -> None:
        """Change an entry in any result."""
        if skill["uri"] == EDIT:
            self.edit(skill)

    def edit(self, skill: Json) -> None:
        """Change the entry of edit-text."""

    def one(self, skill: Json) -> None:
        """Change an entry in a list."""

    def declare(self, capabilities: Json) -> None:
        """Change the capabilities."""

    def list(self, result: Json) -> None:
        """Change a list of skills."""

    def get(self, result: Json) -> None:
        """Change the result of skills/get."""

    def children(self, result: Json) -> None:
        """Change the children of a directory."""

    def read(self, contents: Json) -> None:
        """Change the content of a file."""

    def resources(self, listed: Any) -> None:
        """Change the list of resources."""


class _Refuses(_Skills):
    """Refuses a method."""

    METHOD: ClassVar[str] = "skills/list"
    CODE: ClassVar[int] = -32603
    URI: ClassVar[str] = ""

    def said(self, message: Any, request: Json) -> Out:
        uri = params(request).get("uri", "")
        if request.get("method") == self.METHOD and uri.startswith(self.URI):
            return refusal(request, self.CODE, "Not now")
        return super().said(message, request)


class _Answers(_Skills):
    """Answers a request that it must refuse."""

    METHOD: ClassVar[str] = "skills/get"
    RESULT: ClassVar[Json] = {}

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == self.METHOD and "error" in message:
            self.answer(request, {**self.RESULT, "ttlMs": 0, "cacheScope": "private"})
            return None
        return super().said(message, request)


class _Paged(_Skills, settings={"features": ("skills",), "page_size": 1}):
    """Serves its list in two pages."""


class _Again(_Paged):
    """Lists its first skill on each page."""

    first: Json | None = None

    def list(self, result: Json) -> None:
        self.first = self.first or result["skills"][0]
        if self.first not in result["skills"]:
            result["skills"].append(self.first)


class _More(_Skills):
    """Has more skills: the root of each, and its files."""

    MORE: ClassVar[dict[str, Json]] = {}

    def __init__(self) -> None:
        super().__init__()
        from reference_server.features.skills import SKILLS  # noqa: PLC0415  (few mutants use it)

        SKILLS.update(self.MORE)


class _Folder(_Skills):
    """Names a skill by its directory."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if b'skill://edit-text"' in line and b"skills/get" in line:
            return line.replace(b'skill://edit-text"', EDIT.encode() + b'"')
        return line

    def edit(self, skill: Json) -> None:
        skill["uri"] = "skill://edit-text"


def _manifest(name: str, description: str = "More.", more: Json | None = None) -> Json:
    """Return the files of a skill."""
    front = f"---\nname: {name}\ndescription: {description}\nlicense: MIT\n---\n"
    return {"SKILL.md": front, **(more or {})}


_SUB = _manifest("sub")["SKILL.md"]


class _Crlf(_Skills):
    """Has files with CRLF, which it returns with LF."""

    def any(self, skill: Json) -> None:
        from hashlib import sha256  # noqa: PLC0415  (few mutants use it)

        from reference_server.features.skills import SKILLS  # noqa: PLC0415  (after the path is set)

        for file in skill["resources"]:
            root = skill["uri"].removesuffix("/SKILL.md")
            data = SKILLS[root][file["uri"].removeprefix(f"{root}/")].replace("\n", "\r\n").encode()
            file.update(size=len(data), digest=f"sha256:{sha256(data).hexdigest()}")


ALL = (
    "skills-directory-setting",
    "skills-resources-capability",
    "skills-list-answered",
    "skills-get-unknown",
    "skills-get-answered",
    "skills-result-shape",
    "skills-result-type",
    "skills-cache-hints",
    "skills-names-unique",
    "skills-entry-shape",
    "skills-entry-resources",
    "skills-file-shape",
    "skills-resources-complete",
    "skills-resources-inside",
    "skills-uri-ends-in-name",
    "skills-uri-of-manifest",
    "skills-name-rules",
    "skills-format",
    "skills-authority",
    "skills-limits",
    "skills-files-read",
    "skills-size-true",
    "skills-digest-true",
    "skills-frontmatter-present",
    "skills-frontmatter-identical",
    "skills-manifest-described",
    "skills-directory-answered",
    "skills-directory-shape",
    "skills-directory-children",
    "skills-directory-invalid",
)
controls(*ALL, of=_Skills, revision=MODERN)(
    ServesSkills="Serves the skills of the reference server."
)
controls("skills-entry-atomic", of=_Paged, revision=MODERN)(
    ServesSkillsInPages="Serves its skills in two pages."
)
controls("skills-meta-prefix", of=_Skills, revision=MODERN)(
    DescribesSkillsWithPrefix=has(
        "Has the licence of a skill under the prefix of the extension.",
        resources=puts(0, "_meta", {"io.modelcontextprotocol.skills/license": "MIT"}),
    )
)
controls("skills-files-read", "skills-entry-resources", of=_Skills, revision=MODERN)(
    MakesSkillsAnew=has("Has skills whose content is generated.", any=puts("resources", "dynamic"))
)
controls("skills-files-read", of=_Crlf, revision=MODERN)(
    ReturnsSkillsWithLf="Returns the files of skills without the CR of their lines."
)
mutants("skills-directory-setting", of=_Skills, revision=MODERN)(
    SetsDirectoriesByWord=has(
        "Gives directoryRead as a string.",
        declare=puts("extensions", EXTENSION, "directoryRead", "yes"),
    )
)
mutants(
    "skills-resources-capability",
    "subscriptions-ack-subset=warn",
    of=_Skills,
    revision=MODERN,
    elsewhere=("resources-capability-declared",),
)(ServesSkillsWithoutResources=has("Does not declare resources.", declare=drops("resources")))
mutants("skills-list-answered", of=_Refuses, revision=MODERN)(
    HasNoListOfSkills=has("Does not know skills/list.", CODE=-32601)
)
mutants("skills-get-answered", of=_Refuses, revision=MODERN)(
    GetsNoSkill=has(
        "Answers skills/get of a skill with an error.", METHOD="skills/get", URI=EDIT, CODE=-32602
    )
)
mutants("skills-get-unknown", of=_Refuses, revision=MODERN)(
    FailsOnUnknownSkills=has(
        "Gives an internal error for a skill that it does not have.",
        METHOD="skills/get",
        URI="skill://touchstone",
        CODE=-32603,
    )
)
mutants("skills-result-shape", of=_Skills, revision=MODERN)(
    GetsAnotherSkill=has(
        "Returns another skill than was asked for.",
        get=puts(
            "skill",
            {
                "uri": TREES,
                "resources": "dynamic",
                "frontmatter": {"name": "compare-trees", "description": "Another one."},
            },
        ),
    ),
    GivesACursorForOneSkill=has("Has a nextCursor in skills/get.", get=puts("nextCursor", "more")),
)
mutants("skills-result-type", "versioning-extension-fallback", of=_Skills, revision=MODERN)(
    NamesAnotherResultType=has(
        "Has resultType skill in skills/get.", get=puts("resultType", "skill")
    )
)
mutants("skills-cache-hints", of=_Skills, revision=MODERN)(
    HintsNothingOnSkills=has("Has no ttlMs in skills/list.", list=drops("ttlMs"))
)
mutants("skills-entry-atomic", of=_Again, revision=MODERN)(
    ListsASkillOnEachPage="Lists the first skill on each page."
)
mutants("skills-names-unique", of=_More, revision=MODERN)(
    NamesTwoSkillsAlike=has(
        "Has two skills named edit-text.", MORE={"skill://more/edit-text": _manifest("edit-text")}
    )
)
mutants("skills-entry-shape", of=_Skills, revision=MODERN)(
    DescribesNoSkill=has(
        "Has a skill without a description.", any=drops("frontmatter", "description")
    )
)
mutants("skills-entry-resources", of=_Skills, revision=MODERN)(
    ListsNoFilesOfSkills=has("Has no resources in its entries.", any=drops("resources"))
)
mutants("skills-file-shape", of=_Skills, revision=MODERN)(
    WritesDigestsInCapitals=has(
        "Writes a digest in capitals.", edit=puts("resources", 1, "digest", "sha256:" + "A" * 64)
    ),
    GivesNoSizes=has("Has no size of a file.", edit=drops("resources", 1, "size")),
)
mutants("skills-resources-complete", of=_Skills, revision=MODERN)(
    ForgetsTheManifest=has("Does not list the SKILL.md.", edit=drops("resources", 0)),
    ListsAFileTwice=has(
        "Lists a file twice.",
        edit=lambda _self, skill: skill["resources"].append(skill["resources"][1]),
    ),
)
mutants("skills-resources-complete", of=_More, revision=MODERN)(
    ForgetsNestedSkills=has(
        "Does not list the files of a skill in a skill.",
        MORE={"skill://edit-text/inner": _manifest("inner")},
    )
)
controls("skills-resources-complete", of=_More, revision=MODERN)(
    NestsASkill=has(
        "Has a skill in a skill, which lists its files.",
        MORE={
            "skill://outer": _manifest("outer", more={"sub/SKILL.md": _SUB}),
            "skill://outer/sub": {"SKILL.md": _SUB},
        },
    )
)
mutants("skills-resources-inside", of=_Skills, revision=MODERN)(
    ListsForeignFiles=has(
        "Lists a file of another skill.",
        list=lambda _self, result: result["skills"][0]["resources"].append(
            result["skills"][1]["resources"][0]
        ),
    )
)
mutants("skills-uri-ends-in-name", of=_More, revision=MODERN)(
    NamesASkillUnlikeItsFolder=has(
        "Has a skill whose name differs from its URI.",
        MORE={"skill://more/other": _manifest("more-text")},
    )
)
mutants("skills-uri-of-manifest", of=_Folder, revision=MODERN)(
    NamesSkillsByTheirFolder="Has the URI of the directory, not that of SKILL.md."
)
mutants("skills-name-rules", of=_More, revision=MODERN)(
    NamesSkillsWithTwoHyphens=has(
        "Has a name with two hyphens in a row.",
        MORE={"skill://more/edit--more": _manifest("edit--more")},
    ),
    NamesSkillsAtLength=has(
        "Has a name of 65 characters.", MORE={"skill://more/" + "a" * 65: _manifest("a" * 65)}
    ),
)
controls("skills-name-rules", of=_More, revision=MODERN)(
    NamesSkillsBeyondAscii=has(
        "Has a name with a letter beyond a-z.",
        MORE={"skill://more/%C3%A9dit": _manifest("\u00e9dit")},
    )
)
mutants("skills-format", of=_More, revision=MODERN)(
    DescribesSkillsAtLength=has(
        "Has a description of 1,025 characters.",
        MORE={"skill://more/long": _manifest("long", "x" * 1025)},
    )
)
mutants("skills-authority", of=_More, revision=MODERN)(
    OwnsSkillsByAPerson=has(
        "Has an authority with an at sign.", MORE={"skill://me@here/more": _manifest("more")}
    )
)
mutants("skills-limits", of=_More, revision=MODERN)(
    ServesManyFiles=has(
        "Has a skill of 513 files.",
        MORE={"skill://more": _manifest("more", more={f"{n}.md": "x" for n in range(512)})},
    )
)
mutants("skills-files-read", of=_Refuses, revision=MODERN)(
    ReadsNoManifest=has(
        "Refuses to read a SKILL.md.", METHOD="resources/read", URI=TREES, CODE=-32602
    )
)
mutants("skills-size-true", of=_Skills, revision=MODERN)(
    CountsCharacters=has("Has another size than the file.", edit=puts("resources", 1, "size", 7))
)
mutants("skills-digest-true", of=_Skills, revision=MODERN)(
    HashesAnotherFile=has(
        "Has the digest of another file.", edit=puts("resources", 1, "digest", WRONG)
    )
)
mutants("skills-frontmatter-present", of=_Skills, revision=MODERN)(
    WritesNoFrontmatter=has(
        "Returns a SKILL.md without frontmatter.",
        any=puts("resources", "dynamic"),
        read=lambda _self, contents: contents.update(text=contents["text"].rpartition("---\n")[2]),
    )
)
mutants("skills-frontmatter-identical", of=_Skills, revision=MODERN)(
    DropsTheLicence=has(
        "Leaves a field of the frontmatter out of the entry.", any=drops("frontmatter", "license")
    ),
    DescribesSkillsOtherwise=has(
        "Has another description in the entry.",
        edit=puts("frontmatter", "description", "Edits."),
        resources=lambda _self, listed: listed[0].update(description="Edits."),
    ),
)
mutants("skills-manifest-described", of=_Skills, revision=MODERN)(
    TypesManifestsAsText=has(
        "Has the type text/plain for a SKILL.md.", resources=puts(0, "mimeType", "text/plain")
    )
)
mutants("skills-meta-prefix", of=_Skills, revision=MODERN)(
    DescribesSkillsWithoutPrefix=has(
        "Has the licence of a skill without a prefix.",
        resources=puts(0, "_meta", {"license": "MIT"}),
    )
)
mutants("skills-directory-answered", of=_Refuses, revision=MODERN)(
    ReadsNoFolder=has(
        "Does not know resources/directory/read.",
        METHOD="resources/directory/read",
        URI="skill://edit-text",
        CODE=-32602,
    )
)
mutants("skills-directory-shape", of=_Skills, revision=MODERN)(
    ListsChildrenWithoutNames=has("Has no name of a child.", children=drops("resources", 0, "name"))
)
mutants("skills-directory-children", of=_Skills, revision=MODERN)(
    HidesAChild=has("Leaves a child out.", children=drops("resources", 0)),
    ListsGrandchildren=has(
        "Lists a file of a directory below.",
        children=adds("resources", {"uri": "skill://edit-text/references/deep/x.md", "name": "x"}),
    ),
    TypesFoldersAsText=has(
        "Has the type text/plain for a directory.",
        children=lambda _self, result: [
            one.update(mimeType="text/plain")
            for one in result["resources"]
            if one["mimeType"] == "inode/directory"
        ],
    ),
)
mutants("skills-directory-invalid", of=_Answers, revision=MODERN)(
    ReadsAnyFolder=has(
        "Returns an empty directory for every URI.",
        METHOD="resources/directory/read",
        RESULT={"resources": []},
    )
)
