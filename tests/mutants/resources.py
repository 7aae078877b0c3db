"""Servers that break a rule of server/resources: what is listed and read."""

import base64
import os
import time
from typing import Any, ClassVar

from tests.mutants.kit import MODERN, Fault, Json, Out, control, mutant, params, refusal

OLD = "2024-11-05"
UNSCHEMED = "2025-03-26"
README = "workspace:///README.md"
MORE = "workspace:///more"


class Resources(Fault):
    """Changes the declaration, the list and the contents of its resources."""

    def said(self, message: Any, request: Json) -> Out:
        method = request.get("method")
        if not isinstance(message, dict) or "result" not in message:
            return message
        result = message["result"]
        if method in {"initialize", "server/discover"}:
            self.declare(result["capabilities"])
        elif method == "resources/list":
            self.list(result)
        elif method == "resources/templates/list":
            self.templates(result)
        elif method == "resources/read":
            self.read(result)
        return message

    def declare(self, capabilities: Json) -> None:
        """Change the capabilities."""

    def list(self, result: Json) -> None:
        """Change a list of resources."""

    def templates(self, result: Json) -> None:
        """Change a list of templates."""

    def read(self, result: Json) -> None:
        """Change what is read."""


class OneMore(Resources):
    """Has one additional resource."""

    uri = MORE
    more: ClassVar[Json] = {"text": "more\n"}

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if (
            isinstance(message, dict)
            and message.get("method") == "resources/read"
            and params(message).get("uri") == self.uri
        ):
            contents = {"uri": self.uri, **self.more}
            self.answer(message, {"contents": [contents], "ttlMs": 0, "cacheScope": "private"})
            return None
        return line

    def list(self, result: Json) -> None:
        result["resources"].append({"uri": self.uri, "name": "more"})


class MoreTemplates(Resources):
    """Has additional templates without completions."""

    made: ClassVar[tuple[str, ...]] = ()

    def heard(self, line: bytes, message: Any) -> bytes | None:
        reference = params(message).get("ref") if isinstance(message, dict) else None
        if isinstance(reference, dict) and reference.get("uri") in self.made:
            self.answer(message, {"completion": {"values": []}})
            return None
        return line

    def templates(self, result: Json) -> None:
        result["resourceTemplates"] += [{"uriTemplate": one, "name": one} for one in self.made]


# --- declaring and listing


@mutant("resources-capability-declared", "subscriptions-ack-subset=warn", revision=MODERN)
class HidesItsResources(Resources):
    """Has resources without declaring them."""

    def declare(self, capabilities: Json) -> None:
        del capabilities["resources"]


@mutant("resources-capability-declared", revision=OLD)
class HidesItsTemplates(Resources):
    """Declares and lists no resources, and has templates."""

    def declare(self, capabilities: Json) -> None:
        del capabilities["resources"]

    def list(self, result: Json) -> None:
        result["resources"].clear()


@mutant("resources-list-result-shape")
class ListsItems(Resources):
    """Names its list of resources items."""

    def list(self, result: Json) -> None:
        result["items"] = result.pop("resources")


@mutant("resources-list-result-shape", revision=MODERN)
class ListsResourcesByUri(Resources):
    """Gives an object of resources, by URI."""

    def list(self, result: Json) -> None:
        result["resources"] = {item["uri"]: item for item in result["resources"]}


class _RefusesTheList(Fault):
    """Refuses to list its resources."""

    code = -32603

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if isinstance(message, dict) and message.get("method") == "resources/list":
            self.refuse(message, self.code, "Nothing to list")
            return None
        return line


@mutant("resources-list-must-answer", revision=MODERN)
class FailsToListNothing(_RefusesTheList):
    """Reports an internal error in place of a list of resources."""


@mutant("resources-list-must-answer", revision=MODERN)
class HasNoListOfResources(_RefusesTheList):
    """Declares resources and has no resources/list."""

    code = -32601


@mutant("resources-list-not-per-connection", revision=MODERN, outcome="warn")
class ListsAResourceOfItsProcess(OneMore):
    """Has a resource with a different URI in each process."""

    def __init__(self) -> None:
        super().__init__()
        self.uri = f"{MORE}-{os.getpid()}"


@mutant("resources-list-not-per-connection", revision=MODERN)
class RemovesAReadResourceFromTheList(Resources):
    """Removes a resource from the list after it was read on the connection."""

    def list(self, result: Json) -> None:
        read = {params(one).get("uri") for one in self.asked.values()}
        result["resources"] = [item for item in result["resources"] if item["uri"] not in read]


@control("resources-list-not-per-connection", revision=MODERN)
class ListsALiveFeed(OneMore):
    """Has a resource with another URI in each list."""

    def list(self, result: Json) -> None:
        result["resources"].append({"uri": f"{MORE}-{time.monotonic_ns()}", "name": "more"})


@mutant("resources-definition-shape")
class ListsAResourceWithoutAName(Resources):
    """Leaves out the name of a resource."""

    def list(self, result: Json) -> None:
        for item in result["resources"]:
            del item["name"]


@mutant("resources-definition-shape", revision=MODERN)
class DescribesAResourceWithNull(Resources):
    """Writes the missing description of a resource as null."""

    def list(self, result: Json) -> None:
        result["resources"][0]["description"] = None


@mutant("resources-definition-shape", revision=OLD, outcome="warn")
class GivesAFractionalSize(Resources):
    """Gives the size of a resource as 1.5."""

    def list(self, result: Json) -> None:
        result["resources"][0]["size"] = 1.5


@mutant("resources-uri-unique")
class ListsAResourceTwice(Resources):
    """Lists one resource at both ends of the list."""

    def list(self, result: Json) -> None:
        result["resources"].append(dict(result["resources"][0]))


@mutant("resources-listed-resource-readable")
class ListsAMissingFile(Resources):
    """Lists a file that does not exist."""

    def list(self, result: Json) -> None:
        result["resources"].insert(0, {"uri": "workspace:///ghost.txt", "name": "ghost.txt"})


# --- URIs


@mutant("resources-uri-has-scheme")
class ListsARelativePath(OneMore):
    """Gives a path as the URI of a resource."""

    uri = "notes/more:1.txt"


@mutant("resources-uri-has-scheme", revision=MODERN)
class ListsAnEmptyUri(Resources):
    """Lists a readable resource with an empty URI."""

    def read(self, result: Json) -> None:
        result["contents"][0]["uri"] = ""


@mutant("resources-uri-has-scheme", revision=UNSCHEMED)
class UnderscoresItsSchemeEarly(OneMore):
    """Has a scheme with an underscore, in a revision without a rule for custom schemes."""

    uri = "my_notes://more"


@mutant("resources-uri-has-scheme", outcome="warn")
class LeavesASpaceInAUri(OneMore):
    """Has a URI with a space in it."""

    uri = "workspace:///some more.txt"


@mutant("resources-custom-scheme-rfc3986")
class UnderscoresItsScheme(OneMore):
    """Has a scheme with an underscore."""

    uri = "my_notes://more"


@mutant("resources-custom-scheme-rfc3986", revision=MODERN)
class UnderscoresTheSchemeOfATemplate(MoreTemplates):
    """Has a template whose scheme has an underscore."""

    made = ("my_notes://{day}",)


@control("resources-uri-has-scheme", "resources-custom-scheme-rfc3986")
class HasASchemeOfItsOwn(OneMore):
    """Has a custom scheme with every allowed character, and no authority."""

    uri = "x-my.notes+2:more"


# --- templates


@mutant("resources-templates-list-shape")
class NamesItsTemplatesTemplates(Resources):
    """Names the list of templates templates."""

    def templates(self, result: Json) -> None:
        result["templates"] = result.pop("resourceTemplates")


@mutant("resources-template-definition-shape", revision=MODERN)
class ListsATemplateWithoutAName(Resources):
    """Leaves the name of a template out."""

    def templates(self, result: Json) -> None:
        del result["resourceTemplates"][0]["name"]


@mutant("resources-template-rfc6570")
class LeavesABraceOpen(MoreTemplates):
    """Has a template with an unclosed brace."""

    made = ("workspace:///{day",)


@mutant("resources-template-rfc6570", revision=MODERN)
class OmitsAVariableName(MoreTemplates):
    """Has a template with empty braces."""

    made = ("workspace:///{}",)


@mutant("resources-template-rfc6570", outcome="warn")
class LeavesABlankUnencoded(MoreTemplates):
    """Has a template with a blank beside its expression."""

    made = ("workspace:///my files/{day}",)


@control("resources-template-rfc6570")
class UsesEveryOperator(MoreTemplates):
    """Has templates with operators, with modifiers and without braces."""

    made = ("a:{+b,c*}{?d:3,e}{&f}{#g}", "a:b", "a:{/b}{;c}{.d%20e}")


class _Typed(Resources):
    """Gives its template a MIME type."""

    kind = "text/plain"

    def templates(self, result: Json) -> None:
        result["resourceTemplates"][0]["mimeType"] = self.kind


@mutant("resources-template-mime-type-uniform")
class TypesAllItsFiles(_Typed):
    """Gives its template the type Markdown for all files."""

    kind = "text/markdown"


@control("resources-template-mime-type-uniform", revision=MODERN)
class ReadsPlainTextOnly(_Typed):
    """Gives its template the type plain text, and reads all files with it and a charset."""

    def read(self, result: Json) -> None:
        for item in result["contents"]:
            item["mimeType"] = "Text/Plain; charset=utf-8"


# --- contents


@mutant("resources-read-result-shape")
class ReadsAnObject(Resources):
    """Returns its single contents as an object."""

    def read(self, result: Json) -> None:
        result["contents"] = result["contents"][0]


@mutant("resources-read-result-shape", revision=MODERN)
class ReadsContent(Resources):
    """Names its contents content."""

    def read(self, result: Json) -> None:
        result["content"] = result.pop("contents")


@mutant("resources-contents-text-or-blob")
class ReadsNothing(OneMore):
    """Has a resource with neither text nor blob."""

    more: ClassVar[Json] = {"mimeType": "text/plain"}


@mutant("resources-contents-text-or-blob", revision=MODERN)
class ReadsWithoutAUri(Resources):
    """Leaves the URI out of its contents."""

    def read(self, result: Json) -> None:
        del result["contents"][0]["uri"]


@mutant("resources-contents-text-or-blob", outcome="warn")
class ReadsTextAndBlob(OneMore):
    """Returns a text as a blob as well."""

    more: ClassVar[Json] = {"text": "more", "blob": "bW9yZQ=="}


@mutant("resources-text-only-for-text")
class ReadsAnImageAsText(OneMore):
    """Returns an image as text."""

    more: ClassVar[Json] = {"text": "GIF89a", "mimeType": "image/gif"}


@mutant("resources-text-only-for-text", revision=MODERN)
class ReadsBytesAsText(OneMore):
    """Returns bytes with NUL as text."""

    more: ClassVar[Json] = {"text": "PK\0\0", "mimeType": "application/zip"}


@mutant("resources-binary-encoded")
class EncodesInHexadecimal(OneMore):
    """Gives a blob in hexadecimal, with colons."""

    more: ClassVar[Json] = {"blob": "89:50:4e:47"}


@mutant("resources-binary-encoded", revision=MODERN)
class EncodesAsADataUri(OneMore):
    """Gives a blob as a data: URI."""

    more: ClassVar[Json] = {"blob": "data:image/png;base64,iVBORw0KGgo="}


@mutant("resources-binary-encoded", outcome="warn")
class BreaksItsBase64(OneMore):
    """Breaks a blob into lines."""

    more: ClassVar[Json] = {"blob": base64.encodebytes(bytes(100)).decode()}


@control("resources-binary-encoded", "resources-contents-text-or-blob")
class ReadsABlob(OneMore):
    """Has an image, a text as a blob, and an empty blob."""

    more: ClassVar[Json] = {"blob": "", "mimeType": "image/png"}


# --- what does not exist


class _NotFound(Fault):
    """Handles unknown resources in its own way."""

    def said(self, message: Any, request: Json) -> Out:
        error = message.get("error") if isinstance(message, dict) else None
        unknown = isinstance(error, dict) and error.get("message") == "Resource not found"
        if request.get("method") == "resources/read" and unknown:
            return self.instead(request)
        return message  # type: ignore[no-any-return]

    def instead(self, request: Json) -> Out:
        """Return what is answered."""
        return refusal(request, -32603, "Internal error")


@mutant("resources-not-found-code-legacy")
class FailsOnAnUnknownResource(_NotFound):
    """Answers an unknown resource with an internal error."""


@mutant("resources-not-found-code", revision=MODERN)
class FailsOnAnUnknownResourceStateless(_NotFound):
    """Answers an unknown resource with an internal error, in 2026-07-28."""


class _Unread(_NotFound):
    """Cannot read resources at all."""

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == "resources/read" and "result" in message:
            return refusal(request, -32603, "Internal error")
        return super().said(message, request)


@mutant("resources-not-found-code", revision=MODERN, outcome="warn")
class FailsOnEveryResource(_Unread):
    """Answers every resources/read with an internal error."""


@mutant("resources-not-found-no-empty-contents", revision=MODERN)
class ReturnsNothingForAnUnknownResource(_NotFound):
    """Returns empty contents for an unknown resource."""

    def instead(self, request: Json) -> Out:
        self.answer(request, {"contents": [], "ttlMs": 0, "cacheScope": "private"})
        return None


class _TakesAnything(Fault):
    """Answers malformed URIs."""

    method = "resources/read"
    uri: ClassVar[Any] = "not a uri"

    def heard(self, line: bytes, message: Any) -> bytes | None:
        mine = isinstance(message, dict) and message.get("method") == self.method
        if mine and "uri" in params(message) and params(message)["uri"] == self.uri:
            self.take(message)
            return None
        return line

    def take(self, request: Json) -> None:
        """Answer it."""
        contents = {"uri": README, "text": "any text"}
        self.answer(request, {"contents": [contents], "ttlMs": 0, "cacheScope": "private"})


@mutant("resources-validate-uris")
class ReadsAMalformedUri(_TakesAnything):
    """Returns contents for a text that is not a URI."""


@mutant("resources-validate-uris", revision=MODERN)
class HangsOnANumericUri(_TakesAnything):
    """Never answers a read of a number."""

    uri: ClassVar[Any] = 7

    def take(self, request: Json) -> None:
        del request


@mutant("resources-validate-uris", outcome="warn")
class SubscribesToAnEmptyUri(_TakesAnything):
    """Accepts a subscription to an empty URI."""

    method = "resources/subscribe"
    uri: ClassVar[Any] = ""

    def take(self, request: Json) -> None:
        self.answer(request, {})
