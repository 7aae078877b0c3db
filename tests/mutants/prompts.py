"""Servers that break a rule of server/prompts."""

import os
from pathlib import Path
from typing import Any, ClassVar

from tests.mutants.kit import (
    MODERN,
    Fault,
    Json,
    Out,
    control,
    is_modern,
    mutant,
    params,
    refusal,
)

OLD = "2024-11-05"
CHANGED = "notifications/prompts/list_changed"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
GUIDE = "text_editor_guide"
EDIT = "edit_file"
PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def _text(text: str) -> Json:
    return {"role": "user", "content": {"type": "text", "text": text}}


class _Prompts(Fault):
    """Changes what it declares, lists and renders."""

    def said(self, message: Any, request: Json) -> Out:
        method = request.get("method")
        if not isinstance(message, dict) or "result" not in message:
            return message
        if method in {"initialize", "server/discover"}:
            self.declare(message["result"]["capabilities"])
        elif method == "prompts/list":
            self.list(message["result"])
        elif method == "prompts/get" and params(request).get("name") == GUIDE:
            self.render(message["result"])
        return message

    def declare(self, capabilities: Json) -> None:
        """Change the capabilities."""

    def list(self, result: Json) -> None:
        """Change a list."""

    def render(self, result: Json) -> None:
        """Change the guide."""


class _OneMore(_Prompts):
    """Has one more prompt, ``more``, which needs no arguments."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if isinstance(message, dict) and message.get("method") == "prompts/get":
            name = params(message).get("name")
            if isinstance(name, str) and name.startswith("more"):
                self.answer(message, {"messages": [_text("more")]})
                return None
        return line

    def list(self, result: Json) -> None:
        result["prompts"].append({"name": "more", "description": "One more."})


# --- declaring and listing


class _Undeclared(_Prompts):
    """Declares no prompts."""

    def declare(self, capabilities: Json) -> None:
        del capabilities["prompts"]


@mutant("prompts-capability-declared")
class ListsUndeclaredPrompts(_Undeclared):
    """Lists prompts it did not declare."""


@mutant("prompts-capability-declared", revision=MODERN)
class ListsUndeclaredPromptsStateless(_Undeclared):
    """Lists prompts it did not declare, in 2026-07-28."""


@control("prompts-capability-declared")
class ListsNoUndeclaredPrompt(_Undeclared):
    """Gives an empty list where it declared no prompts."""

    def list(self, result: Json) -> None:
        result["prompts"] = []


@mutant("prompts-list-result-shape")
class ListsPromptsByName(_Prompts):
    """Gives its prompts as an object, by name."""

    def list(self, result: Json) -> None:
        result["prompts"] = {one["name"]: one for one in result["prompts"]}


@mutant("prompts-list-result-shape", revision=OLD)
class LeavesAnEmptyListOut(_Prompts):
    """Leaves prompts out of the result when it has none."""

    def list(self, result: Json) -> None:
        del result["prompts"]


class _CannotList(_Prompts):
    """Declares prompts and does not list them."""

    CODE: ClassVar[int] = -32601

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == "prompts/list" and is_modern(request):
            return refusal(request, self.CODE, "Not now")
        return super().said(message, request)


@mutant("prompts-list-must-answer", revision=MODERN)
class HasNoListOfPrompts(_CannotList):
    """Declares prompts and has no prompts/list."""


@mutant("prompts-list-must-answer", revision=MODERN)
class FailsToListPrompts(_CannotList):
    """Answers prompts/list with an internal error."""

    CODE = -32603


@mutant("prompts-list-not-per-connection", revision=MODERN)
class HasAPromptForEachConnection(_OneMore):
    """Lists a prompt named after its process."""

    def list(self, result: Json) -> None:
        result["prompts"].append({"name": f"more-{os.getpid()}"})


@mutant("prompts-list-not-per-connection", revision=MODERN)
class UnlocksAPrompt(_OneMore):
    """Lists one more prompt once another was rendered on the connection."""

    def list(self, result: Json) -> None:
        if any(asked.get("method") == "prompts/get" for asked in self.asked.values()):
            super().list(result)


@mutant("prompts-definition-shape")
class DescribesPromptsAsNull(_Prompts):
    """Writes out the description a prompt does not have, as null."""

    def list(self, result: Json) -> None:
        result["prompts"][0]["description"] = None


@mutant("prompts-definition-shape", revision=OLD)
class ListsArgumentsAsNames(_Prompts):
    """Lists the arguments of a prompt as strings."""

    def list(self, result: Json) -> None:
        result["prompts"][0]["arguments"] = ["topic"]


@mutant("prompts-definition-shape", revision=MODERN)
class SaysNoForRequired(_Prompts):
    """Writes required as a string."""

    def list(self, result: Json) -> None:
        result["prompts"][2]["arguments"][0]["required"] = "no"


@mutant("prompts-name-unique")
class ListsAPromptTwice(_Prompts):
    """Lists the same prompt twice."""

    def list(self, result: Json) -> None:
        result["prompts"].append(dict(result["prompts"][0]))


# --- changes


class _Changes(_OneMore):
    """Declares listChanged; lists one more prompt while it is ``grown``."""

    grown = False
    lists = 0

    def declare(self, capabilities: Json) -> None:
        capabilities["prompts"] = {"listChanged": True}

    def list(self, result: Json) -> None:
        self.lists += 1
        if not self.grown and self.is_time():
            self.grown = True
            self.changed()
        if self.grown:
            super().list(result)

    def is_time(self) -> bool:
        """Whether the list grows now: with the third time it is asked for."""
        return self.lists == 3

    def changed(self) -> None:
        """Act on the change."""


@mutant("prompts-list-changed-notification-legacy")
class ChangesItsPromptsInSilence(_Changes):
    """Declares listChanged and does not say that the list has changed."""


@control("prompts-list-changed-notification-legacy", revision=OLD)
class AnnouncesItsPrompts(_Changes):
    """Says that the list has changed."""

    def changed(self) -> None:
        self.tell({"jsonrpc": "2.0", "method": CHANGED})


def _wants_prompts(message: Json) -> bool:
    wanted = params(message).get("notifications")
    return isinstance(wanted, dict) and wanted.get("promptsListChanged") is True


class _Streams(_Changes):
    """Lists one more prompt on the second list of a stream that asks for changes."""

    stream: Any = None

    def __init__(self) -> None:
        super().__init__()
        self.promised: set[Any] = set()

    def heard(self, line: bytes, message: Any) -> bytes | None:
        method = message.get("method") if isinstance(message, dict) else None
        wanted = {"promptsListChanged": True}
        if method == "subscriptions/listen" and _wants_prompts(message):
            self.promised.add(message["id"])
        if method == "subscriptions/listen" and params(message).get("notifications") == wanted:
            self.stream, self.lists = message["id"], 0
            self.notify(ACKNOWLEDGED, {"notifications": wanted})
            self.opened()
            return None
        if method == "notifications/cancelled" and params(message).get("requestId") == self.stream:
            self.stream, self.grown = None, False
            return None
        return super().heard(line, message)

    def said(self, message: Any, request: Json) -> Out:
        if isinstance(message, dict) and message.get("method") == ACKNOWLEDGED:
            body = message["params"]
            if body["_meta"]["io.modelcontextprotocol/subscriptionId"] in self.promised:
                body["notifications"]["promptsListChanged"] = True
        return super().said(message, request)

    def notify(self, method: str, body: Json) -> None:
        """Write a notification on the stream."""
        own = {"_meta": {"io.modelcontextprotocol/subscriptionId": self.stream}}
        self.tell({"jsonrpc": "2.0", "method": method, "params": {**own, **body}})

    def is_time(self) -> bool:
        return self.stream is not None and self.lists == 2

    def opened(self) -> None:
        """Act on a stream that was opened."""


@mutant("prompts-list-changed-notification", revision=MODERN)
class ChangesUnderASilentStream(_Streams):
    """Declares listChanged and does not tell a stream that the list has changed."""


@control("prompts-list-changed-notification", revision=MODERN)
class TellsTheStream(_Streams):
    """Tells a stream that the list has changed."""

    def changed(self) -> None:
        self.notify(CHANGED, {})


@control("prompts-list-changed-notification", revision=MODERN)
class TellsTheStreamLate(_Streams):
    """Gathers changes for a while before it tells a stream of them."""

    def changed(self) -> None:
        self.later(0.5, lambda: self.notify(CHANGED, {}))


@mutant("prompts-respect-capability-negotiation", revision=MODERN)
class TellsWhatItDidNotPromise(_Streams):
    """Tells a stream of changes without having declared listChanged."""

    def declare(self, capabilities: Json) -> None:
        """Declare nothing more."""

    def list(self, result: Json) -> None:
        """Change nothing."""

    def opened(self) -> None:
        self.notify(CHANGED, {})


# --- what is rendered


@mutant("prompts-get-result-shape")
class RendersADescriptionOfNull(_Prompts):
    """Writes out the description of a rendered prompt as null."""

    def render(self, result: Json) -> None:
        result["description"] = None


@mutant("prompts-get-result-shape", revision=MODERN)
class RendersOneMessageBare(_Prompts):
    """Gives its one message in place of a list."""

    def render(self, result: Json) -> None:
        result["messages"] = result["messages"][0]


@mutant("prompts-message-shape")
class SpeaksAsTheSystem(_Prompts):
    """Gives a message the role system."""

    def render(self, result: Json) -> None:
        result["messages"][0]["role"] = "system"


@mutant("prompts-message-shape", revision=OLD)
class GivesContentAsAList(_Prompts):
    """Gives the content of a message as a list of blocks."""

    def render(self, result: Json) -> None:
        result["messages"][0]["content"] = [result["messages"][0]["content"]]


@mutant("prompts-message-shape", revision=MODERN)
class GivesContentAsText(_Prompts):
    """Gives the content of a message as a bare string."""

    def render(self, result: Json) -> None:
        result["messages"][0]["content"] = "Use the editor."


class _Shows(_Prompts):
    """Renders one block of content."""

    BLOCK: ClassVar[Json] = {}

    def render(self, result: Json) -> None:
        result["messages"] = [{"role": "user", "content": self.BLOCK}]


@control("prompts-image-base64-mime", revision=OLD)
class ShowsAnImage(_Shows):
    """Renders a prompt with an image."""

    BLOCK: ClassVar[Json] = {"type": "image", "data": PNG, "mimeType": "image/png"}


@mutant("prompts-image-base64-mime")
class ShowsAnImageAsADataUri(_Shows):
    """Gives an image as a data: URI."""

    BLOCK: ClassVar[Json] = {
        "type": "image",
        "data": f"data:image/png;base64,{PNG}",
        "mimeType": "image/png",
    }


@mutant("prompts-image-base64-mime", revision=OLD)
class ShowsAnImageAsHex(_Shows):
    """Gives the bytes of an image in hexadecimal, with colons."""

    BLOCK: ClassVar[Json] = {"type": "image", "data": "89:50:4e:47", "mimeType": "image/png"}


@mutant("prompts-image-base64-mime", revision=MODERN)
class NamesAnImageByItsExtension(_Shows):
    """Gives the extension of an image as its MIME type."""

    BLOCK: ClassVar[Json] = {"type": "image", "data": PNG, "mimeType": "png"}


@mutant("prompts-image-base64-mime", revision=MODERN, outcome="warn")
class BreaksAnImageIntoLines(_Shows):
    """Breaks the base64 of an image into lines."""

    BLOCK: ClassVar[Json] = {
        "type": "image",
        "data": f"{PNG[:76]}\n{PNG[76:]}",
        "mimeType": "image/png",
    }


@control("prompts-audio-base64-mime")
class PlaysASound(_Shows):
    """Renders a prompt with a sound whose type has a parameter."""

    BLOCK: ClassVar[Json] = {
        "type": "audio",
        "data": "UklGRg==",
        "mimeType": "audio/ogg; codecs=opus",
    }


@mutant("prompts-audio-base64-mime")
class PlaysAFileName(_Shows):
    """Gives the name of a file as the data of a sound."""

    BLOCK: ClassVar[Json] = {"type": "audio", "data": "hello.wav", "mimeType": "audio/wav"}


@mutant("prompts-audio-base64-mime", revision=MODERN, outcome="warn")
class PlaysWithoutPadding(_Shows):
    """Leaves the padding of base64 away."""

    BLOCK: ClassVar[Json] = {"type": "audio", "data": "UklGRg", "mimeType": "audio/wav"}


class _Embeds(_Prompts):
    """Embeds a resource."""

    RESOURCE: ClassVar[Json] = {}

    def render(self, result: Json) -> None:
        content = {"type": "resource", "resource": self.RESOURCE}
        result["messages"] = [{"role": "user", "content": content}]


@control("prompts-embedded-resource-fields", revision=MODERN)
class EmbedsBytes(_Embeds):
    """Embeds a resource that is not listed, as bytes."""

    RESOURCE: ClassVar[Json] = {"uri": "demo:logo", "mimeType": "image/png", "blob": PNG}


@mutant("prompts-embedded-resource-fields")
class EmbedsAPath(_Embeds):
    """Embeds a file under its path."""

    RESOURCE: ClassVar[Json] = {"uri": "notes/a.txt", "mimeType": "text/plain", "text": "one"}


@mutant("prompts-embedded-resource-fields", revision=MODERN)
class EmbedsRawBytes(_Embeds):
    """Embeds a blob that is no base64."""

    RESOURCE: ClassVar[Json] = {"uri": "demo:logo", "mimeType": "image/png", "blob": "%PNG%"}


@mutant("prompts-embedded-resource-fields", revision=OLD, outcome="warn")
class EmbedsWithoutAType(_Embeds):
    """Embeds a text without a MIME type."""

    RESOURCE: ClassVar[Json] = {"uri": "demo:notes", "text": "one"}


# --- what is asked for


class _Gets(Fault):
    """Answers some prompts/get by itself."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if isinstance(message, dict) and message.get("method") == "prompts/get":
            own = params(message)
            name, values = own.get("name"), own.get("arguments", {})
            if isinstance(name, str) and self.gets(message, name, values):
                return None
        return line

    def gets(self, request: Json, name: str, values: Any) -> bool:
        """Answer a request, and say that it was answered."""
        del request, name, values
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


@mutant("prompts-unknown-name-error")
class FailsOnAnUnknownPrompt(_Gets):
    """Answers an unknown prompt with -32603."""

    def gets(self, request: Json, name: str, values: Any) -> bool:
        return _is_unknown(name) and self.reject(request, -32603, f"KeyError: {name}")


@mutant("prompts-unknown-name-error", revision=MODERN)
class RendersAnyPrompt(_Gets):
    """Renders an apology for an unknown prompt."""

    def gets(self, request: Json, name: str, values: Any) -> bool:
        return _is_unknown(name) and self.write(request, "There is no such prompt.")


@mutant("prompts-missing-argument-error")
class RendersBlanks(_Gets):
    """Leaves blanks where a required argument is missing."""

    def gets(self, request: Json, name: str, values: Any) -> bool:
        return name == EDIT and not values and self.write(request, "Edit the file .")


@mutant("prompts-missing-argument-error", revision=MODERN)
class FailsOnAMissingArgument(_Gets):
    """Answers -32603 where a required argument is missing."""

    def gets(self, request: Json, name: str, values: Any) -> bool:
        return name == EDIT and not values and self.reject(request, -32603, "KeyError: path")


@control("prompts-missing-argument-error", revision=MODERN)
class AsksForAMissingArgument(_Gets):
    """Asks a client that can answer for a required argument that is missing."""

    def gets(self, request: Json, name: str, values: Any) -> bool:
        asked = params(request)
        declared = asked.get("_meta", {}).get("io.modelcontextprotocol/clientCapabilities", {})
        if name != EDIT or values or "inputResponses" in asked or "roots" not in declared:
            return False
        wanted = {"roots": {"method": "roots/list", "params": {}}}
        self.answer(request, {"resultType": "input_required", "inputRequests": wanted})
        return True


@mutant("prompts-get-omitted-arguments")
class InsistsOnArguments(_Gets):
    """Rejects a request without arguments for a prompt that takes none."""

    def gets(self, request: Json, name: str, values: Any) -> bool:
        if name != GUIDE or "arguments" in params(request):
            return False
        return self.reject(request, -32602, "arguments: expected object, received undefined")


@mutant("prompts-listed-prompt-renders")
class ListsAPromptItLost(_Prompts):
    """Lists a prompt that it does not have any more."""

    def list(self, result: Json) -> None:
        result["prompts"].append({"name": "retired"})


@control("prompts-listed-prompt-renders", revision=OLD)
class RefusesItsOwnValues(_Gets):
    """Refuses a listed prompt, though not as one it does not know."""

    def gets(self, request: Json, name: str, values: Any) -> bool:
        return name == EDIT and bool(values) and self.reject(request, -32602, "no such file")


@mutant("prompts-validate-arguments")
class TakesAnythingForText(_Gets):
    """Puts a value of any type into a prompt."""

    def gets(self, request: Json, name: str, values: Any) -> bool:
        odd = not isinstance(values, dict) or any(not isinstance(v, str) for v in values.values())
        return name == EDIT and odd and self.write(request, f"Edit {values}.")


class _Fills(_Gets):
    """Puts what is given as task into its text."""

    def gets(self, request: Json, name: str, values: Any) -> bool:
        if name != EDIT or not isinstance(values, dict):
            return False
        if not all(isinstance(values.get(one), str) for one in ("path", "task")):
            return False
        return self.fill(request, values)

    def fill(self, request: Json, values: Json) -> bool:
        """Answer."""
        return self.write(request, f"Edit {values['path']}: {values['task']}")


@control("prompts-inputs-outputs-validated")
class EchoesWhatItIsGiven(_Fills):
    """Puts what it is given into its text, as it is."""


@mutant("prompts-inputs-outputs-validated")
class EvaluatesTemplates(_Fills):
    """Renders the text of a prompt twice."""

    def fill(self, request: Json, values: Json) -> bool:
        return self.write(request, values["task"].replace("{{7*7}}", "49"))


@mutant("prompts-inputs-outputs-validated", revision=MODERN)
class IncludesAnyFile(_Fills):
    """Includes a file whose path it is given as a task."""

    def fill(self, request: Json, values: Json) -> bool:
        return self.write(request, _read(values["task"]))


@mutant("prompts-inputs-outputs-validated", outcome="note")
class IncludesTheFileItIsAskedFor(_Fills):
    """Includes the file its argument path names, wherever it lies."""

    def fill(self, request: Json, values: Json) -> bool:
        return self.write(request, _read(values["path"]))


@mutant("prompts-inputs-outputs-validated", revision=OLD)
class ChokesOnControlCharacters(_Fills):
    """Does not answer where a value has a NUL in it."""

    def fill(self, request: Json, values: Json) -> bool:
        return "\x00" in values["task"] or super().fill(request, values)


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return path
