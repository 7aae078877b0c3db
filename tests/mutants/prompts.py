"""Servers that break a rule of server/prompts."""

import os
import time
from pathlib import Path
from typing import Any, ClassVar

from tests.mutants.kit import (
    MODERN,
    Fault,
    Json,
    Out,
    adds,
    control,
    controls,
    has,
    mutant,
    mutants,
    params,
    puts,
)
from tests.mutants.lists import (
    ACKNOWLEDGED,
    Announcing,
    CannotList,
    Growing,
    Listed,
    ListsTheFirstTwice,
    NotifyingSubscribers,
    OmitsTheList,
    Subscribed,
    Undeclared,
)

OLD = "2024-11-05"
CHANGED = "notifications/prompts/list_changed"
GUIDE = "text_editor_guide"
EDIT = "edit_file"
PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def _text(text: str) -> Json:
    return {"role": "user", "content": {"type": "text", "text": text}}


class _Prompts(Listed, feature="prompts"):
    """Changes the declaration, the list and the rendering of its prompts."""

    def said(self, message: Any, request: Json) -> Out:
        named = request.get("method") == "prompts/get" and params(request).get("name") == GUIDE
        if named and isinstance(message, dict) and "result" in message:
            self.render(message["result"])
        return super().said(message, request)

    def render(self, result: Json) -> None:
        """Change the guide."""


class _OneMore(_Prompts):
    """Has one additional prompt, ``more``, without arguments."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if isinstance(message, dict) and message.get("method") == "prompts/get":
            name = params(message).get("name")
            if isinstance(name, str) and name.startswith("more"):
                self.answer(message, {"messages": [_text("more")]})
                return None
        return super().heard(line, message)

    def list(self, result: Json) -> None:
        self.grow(result)

    def grow(self, result: Json) -> None:
        result["prompts"].append({"name": "more", "description": "One more."})


mutants("prompts-capability-declared", of=(_Prompts, Undeclared))(
    ListsUndeclaredPrompts="Lists prompts without declaring them.",
    ListsUndeclaredPromptsStateless=has(
        "Lists prompts without declaring them, in 2026-07-28.", MODERN
    ),
)
controls("prompts-capability-declared", of=(_Prompts, Undeclared))(
    ListsNoUndeclaredPrompt=has(
        "Returns an empty list of undeclared prompts.", list=puts("prompts", [])
    )
)
mutants("prompts-list-result-shape", of=(_Prompts, OmitsTheList), revision=OLD)(
    OmitsAnEmptyList="Leaves prompts out of the result when it has none."
)
mutants("prompts-list-must-answer", of=(_Prompts, CannotList), revision=MODERN)(
    FailsToListPrompts=has("Answers prompts/list with an internal error.", CODE=-32603)
)
mutants("prompts-list-not-per-connection", of=_OneMore, revision=MODERN)(
    HasAPromptForEachConnection=has(
        "Lists a prompt named after its process.",
        list=lambda self, result: result["prompts"].append({"name": f"more-{os.getpid()}"}),
    )
)
mutants("prompts-definition-shape", of=_Prompts)(
    DescribesPromptsAsNull=has(
        "Writes the missing description of a prompt as null.",
        list=puts("prompts", 0, "description", None),
    ),
    WritesRequiredAsText=has(
        "Writes required as a string.",
        MODERN,
        list=puts("prompts", 2, "arguments", 0, "required", "no"),
    ),
)
mutants("prompts-name-unique", of=(_Prompts, ListsTheFirstTwice))(
    ListsAPromptTwice="Lists the same prompt twice."
)


class _Changes(Growing, _OneMore):
    """Declares listChanged, and lists one more prompt while it is ``grown``."""

    def declare(self, capabilities: Json) -> None:
        capabilities["prompts"] = {"listChanged": True}


mutants(
    "prompts-list-changed-notification-legacy", of=_Changes, passes=("tools-list-result-shape",)
)(ChangesItsPromptsSilently="Declares listChanged and does not announce changes of the list.")
controls("prompts-list-changed-notification-legacy", of=(Announcing, _Changes), revision=OLD)(
    AnnouncesItsPrompts="Announces changes of the list."
)


class _Streams(Subscribed, _Changes):
    """Also supports prompts in subscriptions to several lists."""

    promised: ClassVar[set[Any]] = set()

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if isinstance(message, dict) and message.get("method") == "subscriptions/listen":
            wanted = params(message).get("notifications")
            if isinstance(wanted, dict) and wanted.get("promptsListChanged") is True:
                self.promised.add(message["id"])
        return super().heard(line, message)

    def said(self, message: Any, request: Json) -> Out:
        if isinstance(message, dict) and message.get("method") == ACKNOWLEDGED:
            body = message["params"]
            if body["_meta"]["io.modelcontextprotocol/subscriptionId"] in self.promised:
                body["notifications"]["promptsListChanged"] = True
        return super().said(message, request)


mutants("prompts-list-changed-notification", of=_Streams, revision=MODERN)(
    ChangesPromptsWithoutNotifyingSubscribers=(
        "Declares listChanged and does not notify a subscription of a changed list."
    )
)
controls("prompts-list-changed-notification", of=(NotifyingSubscribers, _Streams), revision=MODERN)(
    NotifiesSubscribersOfPrompts="Notifies a subscription of a changed list."
)
controls("prompts-list-changed-notification", of=_Streams, revision=MODERN)(
    NotifiesSubscribersOfPromptsLate=has(
        "Collects changes for a while before it notifies a subscription.",
        changed=lambda self: self.later(0.5, lambda: self.notify(CHANGED, {})),
    )
)


@mutant("prompts-respect-capability-negotiation", "subscriptions-ack-subset=warn", revision=MODERN)
class NotifiesSubscribersUndeclared(_Streams):
    """Notifies a subscription of changes without declaring listChanged."""

    def declare(self, capabilities: Json) -> None:
        """Declare nothing more."""

    def list(self, result: Json) -> None:
        """Change nothing."""

    def opened(self) -> None:
        self.notify(CHANGED, {})


mutants("prompts-get-result-shape", of=_Prompts)(
    RendersADescriptionOfNull=has(
        "Writes the description of a rendered prompt as null.", render=puts("description", None)
    )
)
mutants("prompts-get-result-shape", of=_Prompts, revision=MODERN)(
    RendersOneMessageWithoutAList=has(
        "Returns its single message in place of a list.",
        render=lambda self, result: result.update(messages=result["messages"][0]),
    )
)
mutants("prompts-message-shape", of=_Prompts)(
    UsesTheSystemRole=has(
        "Gives a message the role system.", render=puts("messages", 0, "role", "system")
    ),
    GivesContentAsText=has(
        "Gives the content of a message as a bare string.",
        MODERN,
        render=puts("messages", 0, "content", "Use the editor."),
    ),
)


class _Shows(_Prompts):
    """Renders one content block."""

    BLOCK: ClassVar[Json] = {}

    def render(self, result: Json) -> None:
        result["messages"] = [{"role": "user", "content": self.BLOCK}]


controls("prompts-image-base64-mime", of=_Shows, revision=OLD)(
    ShowsAnImage=has(
        "Renders a prompt with an image.",
        BLOCK={"type": "image", "data": PNG, "mimeType": "image/png"},
    )
)
mutants("prompts-image-base64-mime", of=_Shows)(
    ShowsAnImageAsHex=has(
        "Gives the bytes of an image in hexadecimal, with colons.",
        OLD,
        BLOCK={"type": "image", "data": "89:50:4e:47", "mimeType": "image/png"},
    ),
    NamesAnImageByItsExtension=has(
        "Gives the extension of an image as its MIME type.",
        MODERN,
        BLOCK={"type": "image", "data": PNG, "mimeType": "png"},
    ),
)
mutants("prompts-image-base64-mime", of=_Shows, revision=MODERN, outcome="warn")(
    BreaksAnImageIntoLines=has(
        "Breaks the base64 of an image into lines.",
        BLOCK={"type": "image", "data": f"{PNG[:76]}\n{PNG[76:]}", "mimeType": "image/png"},
    )
)
controls("prompts-audio-base64-mime", of=_Shows)(
    GivesAudio=has(
        "Renders a prompt with audio whose type has a parameter.",
        BLOCK={"type": "audio", "data": "UklGRg==", "mimeType": "audio/ogg; codecs=opus"},
    )
)
mutants("prompts-audio-base64-mime", of=_Shows)(
    GivesAFileNameAsAudio=has(
        "Gives the name of a file as the data of audio.",
        BLOCK={"type": "audio", "data": "hello.wav", "mimeType": "audio/wav"},
    )
)
mutants("prompts-audio-base64-mime", of=_Shows, revision=MODERN, outcome="warn")(
    GivesAudioWithoutPadding=has(
        "Leaves out the padding of base64.",
        BLOCK={"type": "audio", "data": "UklGRg", "mimeType": "audio/wav"},
    )
)


class _Embeds(_Prompts):
    """Embeds a resource."""

    RESOURCE: ClassVar[Json] = {}

    def render(self, result: Json) -> None:
        content = {"type": "resource", "resource": self.RESOURCE}
        result["messages"] = [{"role": "user", "content": content}]


controls("prompts-embedded-resource-fields", of=_Embeds, revision=MODERN)(
    EmbedsBytes=has(
        "Embeds an unlisted resource as bytes.",
        RESOURCE={"uri": "demo:logo", "mimeType": "image/png", "blob": PNG},
    )
)
mutants("prompts-embedded-resource-fields", of=_Embeds)(
    EmbedsAPath=has(
        "Embeds a file with a path as its URI.",
        RESOURCE={"uri": "notes/a.txt", "mimeType": "text/plain", "text": "one"},
    ),
    EmbedsRawBytes=has(
        "Embeds a blob that is not base64.",
        MODERN,
        RESOURCE={"uri": "demo:logo", "mimeType": "image/png", "blob": "%PNG%"},
    ),
)
mutants("prompts-embedded-resource-fields", of=_Embeds, revision=OLD, outcome="warn")(
    EmbedsWithoutAType=has(
        "Embeds a text without a MIME type.", RESOURCE={"uri": "demo:notes", "text": "one"}
    )
)


class _Gets(Fault):
    """Handles some prompts/get in its own way."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if isinstance(message, dict) and message.get("method") == "prompts/get":
            own = params(message)
            name, values = own.get("name"), own.get("arguments", {})
            if isinstance(name, str) and self.gets(message, name, values):
                return None
        return line

    def gets(self, request: Json, name: str, values: Any) -> bool:
        """Answer a request, and say that it was answered."""
        return False

    def write(self, request: Json, text: str) -> bool:
        """Answer with a rendered prompt."""
        self.answer(request, {"messages": [_text(text)]})
        return True

    def reject(self, request: Json, code: int, text: str) -> bool:
        """Answer with an error."""
        self.refuse(request, code, text)
        return True


def _is_unknown(name: str) -> bool:
    return name not in {GUIDE, EDIT, "git_workflow"}


@mutant("prompts-validate-arguments", "prompts-embedded-resource-fields=warn")
class RepeatsAnyArgumentAsAUri(_Gets):
    """Renders an argument that is no string, as the URI of a resource without a scheme."""

    def gets(self, request: Json, name: str, values: Any) -> bool:
        given = list(values.values()) if isinstance(values, dict) else []
        odd = [value for value in given if not isinstance(value, str)]
        if not odd:
            return False
        resource = {"uri": str(odd[0]), "mimeType": "text/plain", "text": "rendered"}
        content = {"type": "resource", "resource": resource}
        self.answer(request, {"messages": [{"role": "user", "content": content}]})
        return True


class _LinksToAResource(_Gets):
    """Links to a resource in each prompt."""

    uri: ClassVar[str] = "workspace:///README.md"

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == "prompts/get" and "messages" in message.get("result", {}):
            link = {"type": "resource_link", "uri": self.uri, "name": "linked"}
            message["result"]["messages"].append({"role": "user", "content": link})
        return message  # type: ignore[no-any-return]


controls("prompts-resource-link-readable", of=_LinksToAResource, revision=MODERN)(
    LinksToItsResource="Links to a resource that it has."
)
mutants("prompts-resource-link-readable", of=_LinksToAResource, revision=MODERN)(
    LinksToNoResource=has(
        "Links to a resource that it does not have.", uri="workspace:///no-such-file.md"
    )
)
mutants("prompts-unknown-name-error", of=_Gets)(
    FailsOnAnUnknownPrompt=has(
        "Answers an unknown prompt with -32603.",
        gets=lambda self, request, name, values: (
            _is_unknown(name) and self.reject(request, -32603, f"KeyError: {name}")
        ),
    )
)
mutants("prompts-unknown-name-error", of=_Gets, revision=MODERN)(
    RendersAnyPrompt=has(
        "Renders an apology for an unknown prompt.",
        gets=lambda self, request, name, values: (
            _is_unknown(name) and self.write(request, "There is no such prompt.")
        ),
    )
)
mutants("prompts-missing-argument-error", of=_Gets)(
    RendersBlanks=has(
        "Leaves a missing required argument blank.",
        gets=lambda self, request, name, values: (
            name == EDIT and not values and self.write(request, "Edit the file .")
        ),
    )
)


@mutant("prompts-missing-argument-error", revision=MODERN)
class FailsOnAMissingArgument(_Gets):
    """Answers a missing required argument with -32603."""

    def gets(self, request: Json, name: str, values: Any) -> bool:
        return name == EDIT and not values and self.reject(request, -32603, "KeyError: path")


@control("prompts-missing-argument-error", revision=MODERN)
class AsksForAMissingArgument(_Gets):
    """Asks a capable client for a missing required argument."""

    def gets(self, request: Json, name: str, values: Any) -> bool:
        asked = params(request)
        declared = asked.get("_meta", {}).get("io.modelcontextprotocol/clientCapabilities", {})
        if name != EDIT or values or "inputResponses" in asked or "roots" not in declared:
            return False
        wanted = {"roots": {"method": "roots/list", "params": {}}}
        self.answer(request, {"resultType": "input_required", "inputRequests": wanted})
        return True


@mutant("prompts-get-omitted-arguments")
class RequiresTheArgumentsMember(_Gets):
    """Refuses a request without arguments for a prompt that has none."""

    def gets(self, request: Json, name: str, values: Any) -> bool:
        if name != GUIDE or "arguments" in params(request):
            return False
        return self.reject(request, -32602, "arguments: expected object, received undefined")


mutants("prompts-listed-prompt-renders", of=_Prompts)(
    ListsAMissingPrompt=has(
        "Lists a prompt that it no longer has.", list=adds("prompts", {"name": "retired"})
    )
)


@control("prompts-listed-prompt-renders", revision=OLD)
class RefusesAListedPrompt(_Gets):
    """Refuses a listed prompt, but not like an unknown one."""

    def gets(self, request: Json, name: str, values: Any) -> bool:
        return name == EDIT and bool(values) and self.reject(request, -32602, "no such file")


class _Fills(_Gets):
    """Puts the argument task into its text."""

    def gets(self, request: Json, name: str, values: Any) -> bool:
        if name != EDIT or not isinstance(values, dict):
            return False
        if not all(isinstance(values.get(one), str) for one in ("path", "task")):
            return False
        return self.fill(request, values)

    def fill(self, request: Json, values: Json) -> bool:
        """Answer."""
        return self.write(request, f"Edit {values['path']}: {values['task']}")


controls("prompts-inputs-outputs-validated", of=_Fills)(
    EchoesItsArgument="Puts its argument into its text unchanged."
)
mutants("prompts-inputs-outputs-validated", of=_Fills)(
    EvaluatesTemplates=has(
        "Renders the text of a prompt twice.",
        fill=lambda self, request, values: self.write(
            request, values["task"].replace("{{7*7}}", "49")
        ),
    )
)
mutants("prompts-inputs-outputs-validated", of=_Fills, revision=MODERN)(
    IncludesAnyFile=has(
        "Includes a file if its argument is a path.",
        fill=lambda self, request, values: self.write(request, _read(values["task"])),
    )
)
mutants("prompts-inputs-outputs-validated", of=_Fills, outcome="note")(
    IncludesTheFileOfItsArgument=has(
        "Includes the file of its argument path, wherever it is.",
        fill=lambda self, request, values: self.write(request, _read(values["path"])),
    )
)
mutants("prompts-inputs-outputs-validated", of=_Fills, revision=OLD)(
    HangsOnNul=has(
        "Does not answer if a value contains NUL.",
        fill=lambda self, request, values: (
            "\x00" in values["task"] or _Fills.fill(self, request, values)
        ),
    )
)


@mutant("prompts-inputs-outputs-validated", revision=OLD, outcome="warn", startup=6.0)
class ReadsNulLate(_Fills):
    """Stops reading for eight seconds when a value contains NUL, once."""

    slept = False

    def fill(self, request: Json, values: Json) -> bool:
        if "\x00" in values["task"] and not self.slept:
            self.slept = True
            time.sleep(8.0)
        return super().fill(request, values)


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return path
