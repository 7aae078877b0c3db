"""Servers that break a rule of server: methods of what is declared, content, annotations."""

from typing import Any, ClassVar

from tests.mutants.kit import MODERN, Fault, Json, Out, control, mutant, params, refusal
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


# --- methods


class _HasNo(Fault):
    """Declares a capability without all its methods."""

    METHOD: ClassVar[str] = ""

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == self.METHOD:
            return refusal(request, -32601, "Method not found")
        return message  # type: ignore[no-any-return]


@mutant("server-declared-feature-methods-implemented")
class HasNoMethodToListPrompts(_HasNo):
    """Declares prompts and has no prompts/list."""

    METHOD = "prompts/list"


@mutant("server-declared-feature-methods-implemented", revision="2024-11-05")
class HasNoMethodToUnsubscribe(_HasNo):
    """Declares resources.subscribe and has no resources/unsubscribe."""

    METHOD = "resources/unsubscribe"


@mutant("server-list-requests-accept-no-params")
class RequiresParams(Fault):
    """Refuses a list request without params."""

    CODE: ClassVar[int] = -32602

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == "prompts/list" and "params" not in request:
            return refusal(request, self.CODE, "params is missing")
        return message  # type: ignore[no-any-return]


@mutant("server-list-requests-accept-no-params", revision="2024-11-05")
class FailsWithoutParams(RequiresParams):
    """Answers a list request without params with an internal error."""

    CODE = -32603


# --- types of content


@mutant("server-content-block-types-2024-11-05", revision="2024-11-05")
class SendsAudioInTheFirstRevision(Calls):
    """Sends audio in the first revision."""

    RESULT = _gives(AUDIO)


@mutant("server-content-block-types-2025-03-26", revision="2025-03-26")
class SendsLinksInTheSecondRevision(Calls):
    """Sends a resource link in the second revision."""

    RESULT = _gives(LINK)


@mutant("server-content-block-types", revision=MODERN)
class SendsToolUseInResults(Calls):
    """Sends a block of type tool_use, which belongs to sampling."""

    RESULT = _gives({"type": "tool_use", "id": "1", "name": "more", "input": {}})


@mutant("server-text-content-shape")
class GivesTextAsNull(Calls):
    """Sends a text block whose text is null."""

    RESULT = _gives({"type": "text", "text": None})


@mutant("server-image-content-shape", revision="2024-11-05")
class OmitsTheTypeOfAnImage(Calls):
    """Sends an image without a MIME type."""

    RESULT = _gives(_without(IMAGE, "mimeType"))


@mutant("server-audio-content-shape", revision=MODERN)
class OmitsTheDataOfAudio(Calls):
    """Sends audio without data."""

    RESULT = _gives(_without(AUDIO, "data"))


@mutant("server-resource-link-shape")
class LinksWithoutAName(Calls):
    """Links to a resource without a name."""

    RESULT = _gives(_without(LINK, "name"))


@mutant("server-resource-link-shape", revision=MODERN)
class LinksToAPath(Calls):
    """Links to a resource by a path in place of a URI."""

    RESULT = _gives({**LINK, "uri": "notes/today.txt"})


@mutant("server-embedded-resource-shape")
class EmbedsNothing(Calls):
    """Embeds a resource with neither text nor blob."""

    RESULT = _gives({"type": "resource", "resource": {"uri": "workspace:///notes/today.txt"}})


@mutant("server-embedded-resource-shape", revision="2025-03-26")
class EmbedsFlat(Calls):
    """Embeds a resource without nesting it."""

    RESULT = _gives({"type": "resource", "uri": "workspace:///notes/today.txt", "text": "more"})


@mutant("server-binary-content-base64", revision=MODERN)
class WritesImagesInHex(Calls):
    """Writes the data of an image in hexadecimal digits with separators."""

    RESULT = _gives({**IMAGE, "data": "89:50:4e:47"})


@mutant("server-binary-content-base64", revision="2025-06-18", outcome="warn")
class BreaksBase64IntoLines(Calls):
    """Breaks the data of an image into lines."""

    RESULT = _gives({**IMAGE, "data": PNG[:76] + "\n" + PNG[76:]})


@mutant("server-binary-content-base64", revision="2024-11-05")
class EmbedsABlobAsText(Calls):
    """Embeds a blob that is plain text."""

    RESULT = _gives(
        {
            "type": "resource",
            "resource": {"uri": "workspace:///notes/today.txt", "blob": "buy milk!"},
        }
    )


# --- annotations


@mutant("server-annotations-audience-roles")
class WritesTheAudienceAsText(Calls):
    """Writes the audience as a string."""

    RESULT = _gives({**TEXT, "annotations": {"audience": "user"}})


@mutant("server-annotations-priority-range", revision=MODERN)
class GivesAPriorityInPercent(Calls):
    """Gives a priority of 90."""

    RESULT = _gives({**TEXT, "annotations": {"priority": 90}})


@mutant("server-annotations-priority-range", revision="2024-11-05")
class GivesAPriorityAsText(Calls):
    """Gives a priority as text."""

    RESULT = _gives({**TEXT, "annotations": {"priority": "high"}})


@mutant("server-annotations-last-modified")
class DatesAsANumber(Calls):
    """Gives lastModified as a number of seconds."""

    RESULT = _gives({**TEXT, "annotations": {"lastModified": 1767312000}})


@mutant("server-annotations-last-modified", revision=MODERN, outcome="warn")
class DatesAsFreeText(Calls):
    """Gives lastModified in words."""

    RESULT = _gives({**TEXT, "annotations": {"lastModified": "2 January 2026"}})


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


@control(
    "server-content-block-types",
    "server-image-content-shape",
    "server-audio-content-shape",
    "server-resource-link-shape",
    "server-embedded-resource-shape",
    "server-binary-content-base64",
    "server-annotations-audience-roles",
    "server-annotations-priority-range",
    "server-annotations-last-modified",
)
class SendsAllContent(_All):
    """Sends every kind of content, annotated."""


@control("server-content-block-types-2025-03-26", revision="2025-03-26")
class SendsAllContentOfTheSecondRevision(_All):
    """Sends every kind of content of the second revision."""

    RESULT = _gives(*(one for one in _All.RESULT["content"] if one is not LINK))


@control("server-content-block-types", revision=MODERN)
class SendsAllContentStateless(_All):
    """Sends every kind of content in the stateless revision."""


@control("server-list-requests-accept-no-params", revision="2025-06-18")
class FailsToListWithAndWithoutParams(Fault):
    """Fails to list prompts, with params or without."""

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == "prompts/list" and "cursor" not in params(request):
            return refusal(request, -32603, "Not now")
        return message  # type: ignore[no-any-return]
