"""Servers that break a rule of server/resources: what is listed and read."""

import base64
import os
import time
from typing import Any, ClassVar

from tests.mutants.kit import (
    MODERN,
    Fault,
    Json,
    Out,
    control,
    controls,
    drops,
    has,
    mutant,
    mutants,
    params,
    puts,
    refusal,
)

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


mutants(
    "resources-capability-declared", "subscriptions-ack-subset=warn", of=Resources, revision=MODERN
)(HidesItsResources=has("Has resources without declaring them.", declare=drops("resources")))
mutants("resources-capability-declared", of=Resources, revision=OLD)(
    HidesItsTemplates=has(
        "Declares and lists no resources, and has templates.",
        declare=drops("resources"),
        list=lambda self, result: result["resources"].clear(),
    )
)
mutants("resources-list-result-shape", of=Resources)(
    ListsItems=has(
        "Names its list of resources items.",
        list=lambda self, result: result.update(items=result.pop("resources")),
    )
)


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


mutants("resources-list-must-answer", of=_RefusesTheList, revision=MODERN)(
    FailsToListNothing="Reports an internal error in place of a list of resources."
)


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


mutants("resources-definition-shape", of=Resources, revision=MODERN)(
    DescribesAResourceWithNull=has(
        "Writes the missing description of a resource as null.",
        list=puts("resources", 0, "description", None),
    )
)
mutants("resources-definition-shape", of=Resources, revision=OLD, outcome="warn")(
    GivesAFractionalSize=has(
        "Gives the size of a resource as 1.5.", list=puts("resources", 0, "size", 1.5)
    )
)
mutants("resources-uri-unique", of=Resources)(
    ListsAResourceTwice=has(
        "Lists one resource at both ends of the list.",
        list=lambda self, result: result["resources"].append(dict(result["resources"][0])),
    )
)


@mutant("resources-listed-resource-readable")
class ListsAMissingFile(Resources):
    """Lists a file that does not exist."""

    def list(self, result: Json) -> None:
        result["resources"].insert(0, {"uri": "workspace:///ghost.txt", "name": "ghost.txt"})


mutants("resources-uri-has-scheme", of=OneMore)(
    ListsARelativePath=has("Gives a path as the URI of a resource.", uri="notes/more:1.txt"),
    UnderscoresItsSchemeEarly=has(
        "Has a scheme with an underscore, in a revision without a rule for custom schemes.",
        UNSCHEMED,
        uri="my_notes://more",
    ),
)
mutants("resources-uri-has-scheme", of=Resources, revision=MODERN)(
    ListsAnEmptyUri=has(
        "Lists a readable resource with an empty URI.", read=puts("contents", 0, "uri", "")
    )
)
mutants("resources-uri-has-scheme", of=OneMore, outcome="warn")(
    LeavesASpaceInAUri=has("Has a URI with a space in it.", uri="workspace:///some more.txt")
)
mutants("resources-custom-scheme-rfc3986", of=OneMore)(
    UnderscoresItsScheme=has("Has a scheme with an underscore.", uri="my_notes://more")
)
mutants("resources-custom-scheme-rfc3986", of=MoreTemplates, revision=MODERN)(
    UnderscoresTheSchemeOfATemplate=has(
        "Has a template whose scheme has an underscore.", made=("my_notes://{day}",)
    )
)
controls("resources-uri-has-scheme", "resources-custom-scheme-rfc3986", of=OneMore)(
    HasASchemeOfItsOwn=has(
        "Has a custom scheme with every allowed character, and no authority.",
        uri="x-my.notes+2:more",
    )
)
mutants("resources-templates-list-shape", of=Resources)(
    NamesItsTemplatesTemplates=has(
        "Names the list of templates templates.",
        templates=lambda self, result: result.update(templates=result.pop("resourceTemplates")),
    )
)
mutants("resources-template-definition-shape", of=Resources, revision=MODERN)(
    ListsATemplateWithoutAName=has(
        "Leaves the name of a template out.", templates=drops("resourceTemplates", 0, "name")
    )
)
mutants("resources-template-rfc6570", of=MoreTemplates)(
    LeavesABraceOpen=has("Has a template with an unclosed brace.", made=("workspace:///{day",)),
    OmitsAVariableName=has("Has a template with empty braces.", MODERN, made=("workspace:///{}",)),
)
mutants("resources-template-rfc6570", of=MoreTemplates, outcome="warn")(
    LeavesABlankUnencoded=has(
        "Has a template with a blank beside its expression.", made=("workspace:///my files/{day}",)
    )
)
controls("resources-template-rfc6570", of=MoreTemplates)(
    UsesEveryOperator=has(
        "Has templates with operators, with modifiers and without braces.",
        made=("a:{+b,c*}{?d:3,e}{&f}{#g}", "a:b", "a:{/b}{;c}{.d%20e}"),
    )
)


class _Typed(Resources):
    """Gives its template a MIME type."""

    kind = "text/plain"

    def templates(self, result: Json) -> None:
        result["resourceTemplates"][0]["mimeType"] = self.kind


mutants("resources-template-mime-type-uniform", of=_Typed)(
    TypesAllItsFiles=has(
        "Gives its template the type Markdown for all files.", kind="text/markdown"
    )
)


@control("resources-template-mime-type-uniform", revision=MODERN)
class ReadsPlainTextOnly(_Typed):
    """Gives its template the type plain text, and reads all files with it and a charset."""

    def read(self, result: Json) -> None:
        for item in result["contents"]:
            item["mimeType"] = "Text/Plain; charset=utf-8"


mutants("resources-read-result-shape", of=Resources)(
    ReadsAnObject=has(
        "Returns its single contents as an object.",
        read=lambda self, result: result.update(contents=result["contents"][0]),
    )
)
mutants("resources-read-result-shape", of=Resources, revision=MODERN)(
    ReadsContent=has(
        "Names its contents content.",
        read=lambda self, result: result.update(content=result.pop("contents")),
    )
)
mutants("resources-contents-text-or-blob", of=OneMore)(
    ReadsNothing=has("Has a resource with neither text nor blob.", more={"mimeType": "text/plain"})
)
mutants("resources-contents-text-or-blob", of=Resources, revision=MODERN)(
    ReadsWithoutAUri=has("Leaves the URI out of its contents.", read=drops("contents", 0, "uri"))
)
mutants("resources-contents-text-or-blob", of=OneMore, outcome="warn")(
    ReadsTextAndBlob=has(
        "Returns a text as a blob as well.", more={"text": "more", "blob": "bW9yZQ=="}
    )
)
mutants("resources-text-only-for-text", of=OneMore)(
    ReadsAnImageAsText=has(
        "Returns an image as text.", more={"text": "GIF89a", "mimeType": "image/gif"}
    ),
    ReadsBytesAsText=has(
        "Returns bytes with NUL as text.",
        MODERN,
        more={"text": "PK\0\0", "mimeType": "application/zip"},
    ),
)
mutants("resources-binary-encoded", of=OneMore)(
    EncodesInHexadecimal=has(
        "Gives a blob in hexadecimal, with colons.", more={"blob": "89:50:4e:47"}
    ),
    EncodesAsADataUri=has(
        "Gives a blob as a data: URI.", MODERN, more={"blob": "data:image/png;base64,iVBORw0KGgo="}
    ),
)
mutants("resources-binary-encoded", of=OneMore, outcome="warn")(
    BreaksItsBase64=has(
        "Breaks a blob into lines.", more={"blob": base64.encodebytes(bytes(100)).decode()}
    )
)
controls("resources-binary-encoded", "resources-contents-text-or-blob", of=OneMore)(
    ReadsABlob=has(
        "Has an image, a text as a blob, and an empty blob.",
        more={"blob": "", "mimeType": "image/png"},
    )
)


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


mutants("resources-not-found-code-legacy", of=_NotFound)(
    FailsOnAnUnknownResource="Answers an unknown resource with an internal error."
)
mutants("resources-not-found-code", of=_NotFound, revision=MODERN)(
    FailsOnAnUnknownResourceStateless=(
        "Answers an unknown resource with an internal error, in 2026-07-28."
    )
)


class _Unread(_NotFound):
    """Cannot read resources at all."""

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == "resources/read" and "result" in message:
            return refusal(request, -32603, "Internal error")
        return super().said(message, request)


mutants("resources-not-found-code", of=_Unread, revision=MODERN, outcome="warn")(
    FailsOnEveryResource="Answers every resources/read with an internal error."
)


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


mutants("resources-validate-uris", of=_TakesAnything)(
    ReadsAMalformedUri="Returns contents for a text that is not a URI."
)


@mutant("resources-validate-uris", revision=MODERN)
class HangsOnANumericUri(_TakesAnything, uri=7):
    """Never answers a read of a number."""

    def take(self, request: Json) -> None:
        del request


mutants("resources-validate-uris", of=_TakesAnything, outcome="warn")(
    SubscribesToAnEmptyUri=has(
        "Accepts a subscription to an empty URI.",
        method="resources/subscribe",
        uri="",
        take=lambda self, request: self.answer(request, {}),
    )
)
