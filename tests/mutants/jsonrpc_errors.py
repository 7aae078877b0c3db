"""Servers that break a rule of basic/jsonrpc: the shape of errors, and what has to be refused."""

import os
from typing import Any, ClassVar

from tests.mutants.kit import (
    MODERN,
    Fault,
    Json,
    Out,
    controls,
    has,
    is_modern,
    mutant,
    mutants,
    params,
    puts,
)


class RewritesErrors(Fault):
    """Changes the error member of each response that has one."""

    def said(self, message: Any, request: Json) -> Out:
        if "error" in message:
            message["error"] = self.rewritten(message["error"])
        return message  # type: ignore[no-any-return]

    def rewritten(self, error: Json) -> Any:
        """Return the error as it is written."""
        return error


mutants("jsonrpc-error-shape", of=RewritesErrors)(
    SendsErrorsAsText=has(
        "Writes the text of an error in place of the error object.",
        rewritten=lambda self, error: error["message"],
    ),
    SendsErrorsWithoutACode=has(
        "Writes error objects with only a message.",
        rewritten=lambda self, error: {"message": error["message"]},
    ),
)
mutants("jsonrpc-error-shape", of=RewritesErrors, revision=MODERN)(
    SendsErrorsWithoutAMessage=has(
        "Writes error objects with only a code.",
        rewritten=lambda self, error: {
            member: error[member] for member in error if member != "message"
        },
    )
)
mutants("jsonrpc-error-shape", of=RewritesErrors, outcome="warn")(
    SendsEmptyMessages=has("Leaves the message of its errors empty.", rewritten=puts("message", ""))
)
mutants("jsonrpc-error-code-integer", of=RewritesErrors)(
    SendsCodesAsText=has(
        "Writes error codes as strings.",
        rewritten=lambda self, error: {**error, "code": str(error["code"])},
    )
)
mutants(
    "jsonrpc-error-code-integer",
    of=RewritesErrors,
    elsewhere=(
        "meta-required-fields",
        "resources-not-found-code",
        "subscriptions-filter-required=warn",
        "versioning-unsupported-version-error",
    ),
)(
    SendsStatelessCodesAsText=has(
        "Writes error codes as strings, without a session.",
        MODERN,
        rewritten=lambda self, error: {**error, "code": str(error["code"])},
    )
)
mutants("jsonrpc-error-code-integer", of=RewritesErrors, outcome="warn")(
    SendsCodesAsFloats=has(
        "Writes error codes with a decimal point.",
        rewritten=lambda self, error: {**error, "code": float(error["code"])},
    )
)


@mutant("jsonrpc-error-message-concise")
class SendsStackTraces(RewritesErrors):
    """Puts the stack trace of the exception into the message."""

    def rewritten(self, error: Json) -> Any:
        trace = 'Traceback (most recent call last):\n  File "server.py", line 7, in handle'
        return {**error, "message": f"{error['message']}\n{trace}"}


@mutant("jsonrpc-error-message-concise", revision=MODERN)
class SendsLongMessages(RewritesErrors):
    """Lists every method it has in the message of an error."""

    def rewritten(self, error: Json) -> Any:
        return {**error, "message": error["message"] + "; known: " + "tools/list, " * 40}


class RefusesUnknownMethods(Fault):
    """Handles unknown methods in its own way."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if isinstance(message, dict) and str(message.get("method")).startswith("x-"):
            self.on_unknown(message)
            return None
        return line

    def on_unknown(self, request: Json) -> None:
        """Answer it."""


mutants("jsonrpc-method-not-found", of=RefusesUnknownMethods)(
    RefusesUnknownMethodsAsBadParams=has(
        "Answers an unknown method with -32602.",
        on_unknown=lambda self, request: self.refuse(
            request, -32602, "Invalid request parameters", ""
        ),
    )
)
mutants("jsonrpc-method-not-found", of=RefusesUnknownMethods, revision=MODERN)(
    AcceptsUnknownMethods=has(
        "Answers an unknown method with an empty result.",
        on_unknown=lambda self, request: self.answer(request, {}),
    )
)


class HasOnlyTools(Fault):
    """Declares only tools and handles the lists of prompts and resources in its own way."""

    HIDDEN: ClassVar = ("prompts", "resources")

    def heard(self, line: bytes, message: Any) -> bytes | None:
        method = str(message.get("method")) if isinstance(message, dict) else ""
        feature, _, rest = method.partition("/")
        if feature in self.HIDDEN and rest.endswith("list"):
            self.on_undeclared(message, "resourceTemplates" if "/" in rest else feature)
            return None
        return line

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == "server/discover" and "result" in message:
            for feature in self.HIDDEN:
                message["result"]["capabilities"].pop(feature, None)
        return message  # type: ignore[no-any-return]

    def on_undeclared(self, request: Json, feature: str) -> None:
        """Answer it."""
        self.refuse(request, -32601, f"Method not found: {request['method']}")


controls(
    "jsonrpc-unadvertised-method-not-found",
    of=HasOnlyTools,
    revision=MODERN,
    breaks=("subscriptions-ack-subset=warn",),
)(RefusesUndeclaredLists="Answers the lists of undeclared features with -32601.")


@mutant("jsonrpc-unadvertised-method-not-found", "subscriptions-ack-subset=warn", revision=MODERN)
class RefusesUndeclaredListsAsInternalErrors(HasOnlyTools):
    """Answers the lists of undeclared features with -32603."""

    def on_undeclared(self, request: Json, feature: str) -> None:
        self.refuse(request, -32603, f"no {feature}")


mutants(
    "jsonrpc-unadvertised-method-not-found",
    "subscriptions-ack-subset=warn",
    of=HasOnlyTools,
    revision=MODERN,
    outcome="note",
)(
    ListsNothingForUndeclaredFeatures=has(
        "Answers the lists of undeclared features with an empty list.",
        on_undeclared=lambda self, request, feature: self.answer(
            request, {feature: [], "ttlMs": 0, "cacheScope": "public"}
        ),
    )
)


class OffersAPrompt(Fault):
    """The reference server with one prompt, ``greet``, without arguments."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        method = message.get("method") if isinstance(message, dict) else None
        if method == "prompts/list" and "cursor" in params(message):
            self.refuse(message, -32602, "Unknown cursor")
        elif method == "prompts/list":
            self.answer(message, {"prompts": [{"name": "greet"}], **self.hints(message)})
        elif method == "prompts/get" and params(message).get("name") != "greet":
            self.on_nameless(message)
        elif method == "prompts/get":
            said = {"role": "user", "content": {"type": "text", "text": "Say hello."}}
            self.answer(message, {"messages": [said]})
        else:
            return line
        return None

    def hints(self, request: Json) -> Json:
        """Return the caching hints a stateless list carries."""
        return {"ttlMs": 0, "cacheScope": "public"} if is_modern(request) else {}

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") in {"initialize", "server/discover"} and "result" in message:
            message["result"]["capabilities"]["prompts"] = {}
        return message  # type: ignore[no-any-return]

    def on_nameless(self, request: Json) -> None:
        """Answer a prompts/get without a name, or with one that is not ours."""
        self.refuse(request, -32602, "Invalid params: name")


controls("jsonrpc-invalid-params", of=OffersAPrompt)(
    RefusesNamelessPrompts="Answers prompts/get without a name with -32602."
)


@mutant("jsonrpc-invalid-params")
class RendersNamelessPrompts(OffersAPrompt):
    """Answers prompts/get without a name with no messages."""

    def on_nameless(self, request: Json) -> None:
        if "name" in params(request):
            super().on_nameless(request)
        else:
            self.answer(request, {"messages": []})


@mutant("jsonrpc-invalid-params", revision=MODERN, outcome="warn")
class FailsOnNamelessPrompts(OffersAPrompt):
    """Answers prompts/get without a name with -32603."""

    def on_nameless(self, request: Json) -> None:
        if "name" in params(request):
            super().on_nameless(request)
        else:
            self.refuse(request, -32603, "'name'")


class DropsOddParams(Fault):
    """Never answers a request with some ill-typed params."""

    method: ClassVar[str] = "tools/list"
    member: ClassVar[str] = "cursor"
    kinds: ClassVar[tuple[type[Any], ...]] = (int, dict)

    def heard(self, line: bytes, message: Any) -> bytes | None:
        asked = isinstance(message, dict) and message.get("method") == self.method
        odd = asked and isinstance(params(message).get(self.member), self.kinds)
        return self.odd(line, message) if odd else line

    def odd(self, line: bytes, message: Json) -> bytes | None:
        """Handle such a request."""
        return None


mutants("jsonrpc-ill-typed-params", of=DropsOddParams)(
    DropsNumbersAsCursors=has("Never answers a list with a number as cursor.", kinds=(int,)),
    ExitsOnAnObjectAsUri=has(
        "Exits when it reads a resource whose uri is an object.",
        MODERN,
        method="resources/read",
        member="uri",
        odd=lambda *_: os._exit(1),
    ),
)
mutants("jsonrpc-ill-typed-params", of=DropsOddParams, outcome="warn")(
    ReadsNothingAsUri=has(
        "Answers resources/read by no contents if the uri is no text.",
        method="resources/read",
        member="uri",
        kinds=(dict, list),
        odd=lambda self, line, message: self.answer(message, {"contents": []}),
    )
)
