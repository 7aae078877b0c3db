"""Servers that break a rule of server: methods of what is declared, content, annotations."""

from typing import Any, ClassVar

from tests.mutants.kit import (
    MODERN,
    Fault,
    Json,
    Out,
    controls,
    has,
    mutant,
    mutants,
    params,
    refusal,
)
from tests.mutants.tools import TEXT, Calls

PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
IMAGE: Json = {"type": "image", "data": PNG, "mimeType": "image/png"}
AUDIO: Json = {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}
LINK: Json = {"type": "resource_link", "uri": "https://example.com/", "name": "more"}


def _gives(*blocks: Any) -> Json:
    return {"content": list(blocks)}


def _without(block: Json, member: str) -> Json:
    return {name: value for name, value in block.items() if name != member}


class _HasNo(Fault):
    """Declares a capability without all its methods."""

    METHOD: ClassVar[str] = ""

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == self.METHOD:
            return refusal(request, -32601, "Method not found")
        return message  # type: ignore[no-any-return]


mutants("server-declared-feature-methods-implemented", of=_HasNo)(
    HasNoMethodToListPrompts=has(
        "Declares prompts and has no prompts/list.", METHOD="prompts/list"
    ),
    HasNoMethodToUnsubscribe=has(
        "Declares resources.subscribe and has no resources/unsubscribe.",
        "2024-11-05",
        METHOD="resources/unsubscribe",
    ),
)


@mutant("server-list-requests-accept-no-params")
class RequiresParams(Fault):
    """Refuses a list request without params."""

    CODE: ClassVar[int] = -32602

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == "prompts/list" and "params" not in request:
            return refusal(request, self.CODE, "params is missing")
        return message  # type: ignore[no-any-return]


mutants("server-content-block-types-2024-11-05", of=Calls, revision="2024-11-05")(
    SendsAudioInTheFirstRevision=has("Sends audio in the first revision.", RESULT=_gives(AUDIO))
)
mutants("server-content-block-types-2025-03-26", of=Calls, revision="2025-03-26")(
    SendsLinksInTheSecondRevision=has(
        "Sends a resource link in the second revision.", RESULT=_gives(LINK)
    )
)
mutants("server-content-block-types", of=Calls, revision=MODERN)(
    SendsToolUseInResults=has(
        "Sends a block of type tool_use, which belongs to sampling.",
        RESULT=_gives({"type": "tool_use", "id": "1", "name": "more", "input": {}}),
    )
)
mutants("server-text-content-shape", of=Calls)(
    GivesTextAsNull=has(
        "Sends a text block whose text is null.", RESULT=_gives({"type": "text", "text": None})
    )
)
mutants("server-image-content-shape", of=Calls, revision="2024-11-05")(
    OmitsTheTypeOfAnImage=has(
        "Sends an image without a MIME type.", RESULT=_gives(_without(IMAGE, "mimeType"))
    )
)
mutants("server-audio-content-shape", of=Calls, revision=MODERN)(
    OmitsTheDataOfAudio=has("Sends audio without data.", RESULT=_gives(_without(AUDIO, "data")))
)
mutants("server-resource-link-shape", of=Calls)(
    LinksWithoutAName=has(
        "Links to a resource without a name.", RESULT=_gives(_without(LINK, "name"))
    ),
    LinksToAPath=has(
        "Links to a resource by a path in place of a URI.",
        MODERN,
        RESULT=_gives({**LINK, "uri": "notes/today.txt"}),
    ),
)
mutants("server-embedded-resource-shape", of=Calls)(
    EmbedsNothing=has(
        "Embeds a resource with neither text nor blob.",
        RESULT=_gives({"type": "resource", "resource": {"uri": "workspace:///notes/today.txt"}}),
    ),
    EmbedsByAPath=has(
        "Embeds a resource by a path in place of a URI.",
        RESULT=_gives({"type": "resource", "resource": {"uri": "/today.txt", "blob": PNG}}),
    ),
)
mutants("server-binary-content-base64", of=Calls, revision=MODERN)(
    WritesImagesInHex=has(
        "Writes the data of an image in hexadecimal digits with separators.",
        RESULT=_gives({**IMAGE, "data": "89:50:4e:47"}),
    ),
    EmbedsABlobAsText=has(
        "Embeds a blob that is plain text.",
        "2024-11-05",
        RESULT=_gives(
            {
                "type": "resource",
                "resource": {"uri": "workspace:///notes/today.txt", "blob": "buy milk!"},
            }
        ),
    ),
)
mutants("server-binary-content-base64", of=Calls, revision="2025-06-18", outcome="warn")(
    BreaksBase64IntoLines=has(
        "Breaks the data of an image into lines.",
        RESULT=_gives({**IMAGE, "data": PNG[:76] + "\n" + PNG[76:]}),
    )
)
mutants("server-annotations-audience-roles", of=Calls)(
    WritesTheAudienceAsText=has(
        "Writes the audience as a string.",
        RESULT=_gives({**TEXT, "annotations": {"audience": "user"}}),
    )
)
mutants("server-annotations-priority-range", of=Calls, revision=MODERN)(
    GivesAPriorityInPercent=has(
        "Gives a priority of 90.", RESULT=_gives({**TEXT, "annotations": {"priority": 90}})
    ),
    GivesAPriorityAsText=has(
        "Gives a priority as text.",
        "2024-11-05",
        RESULT=_gives({**TEXT, "annotations": {"priority": "high"}}),
    ),
)
mutants("server-annotations-last-modified", of=Calls)(
    DatesAsANumber=has(
        "Gives lastModified as a number of seconds.",
        RESULT=_gives({**TEXT, "annotations": {"lastModified": 1767312000}}),
    )
)
mutants("server-annotations-last-modified", of=Calls, revision=MODERN, outcome="warn")(
    DatesAsFreeText=has(
        "Gives lastModified in words.",
        RESULT=_gives({**TEXT, "annotations": {"lastModified": "2 January 2026"}}),
    )
)


class _All(Calls):
    """Sends every kind of content, annotated."""

    NOTES: ClassVar[Json] = {"audience": ["user", "user"], "priority": 1}
    RESULT = _gives(
        {**TEXT, "text": "", "annotations": {**NOTES, "lastModified": "20260102T0304Z"}},
        {**IMAGE, "data": ""},
        AUDIO,
        LINK,
        {"type": "resource", "resource": {"uri": "workspace:///notes/today.txt", "blob": PNG}},
    )


controls(
    "server-content-block-types",
    "server-image-content-shape",
    "server-audio-content-shape",
    "server-resource-link-shape",
    "server-embedded-resource-shape",
    "server-binary-content-base64",
    "server-annotations-audience-roles",
    "server-annotations-priority-range",
    "server-annotations-last-modified",
    of=_All,
)(SendsAllContent="Sends every kind of content, annotated.")
controls("server-content-block-types-2025-03-26", of=_All, revision="2025-03-26")(
    SendsAllContentOfTheSecondRevision=has(
        "Sends every kind of content of the second revision.",
        RESULT=_gives(*(one for one in _All.RESULT["content"] if one is not LINK)),
    )
)
controls("server-content-block-types", of=_All, revision=MODERN)(
    SendsAllContentStateless="Sends every kind of content in the stateless revision."
)
controls("server-list-requests-accept-no-params", of=Fault, revision="2025-06-18")(
    FailsToListWithAndWithoutParams=has(
        "Fails to list prompts, with params or without.",
        said=lambda self, message, request: (
            refusal(request, -32603, "Not now")
            if request.get("method") == "prompts/list" and "cursor" not in params(request)
            else message
        ),
    )
)
