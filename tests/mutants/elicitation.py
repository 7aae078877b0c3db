"""Servers that break a rule of questions/elicitation in a session."""

import os
from typing import Any, ClassVar

from tests.mutants.asking import Asks
from tests.mutants.kit import AskingTool, Json, control, controls, has, mutant, mutants, notifies
from tests.mutants.schema_requests import CHOICES, LINK, formed

ELICIT = "elicitation/create"
COMPLETED = "notifications/elicitation/complete"
WHO: Json = {**formed(who={"type": "string"})}
WHO["requestedSchema"]["required"] = ["who"]


class Elicits(Asks):
    """A tool that elicits input if the client can, and waits for the answer.

    Attributes:
        asks: the params of what it asks, one after the other.
    """

    asks: ClassVar[list[Json]] = [WHO]

    def questions(self) -> list[tuple[str, Json]]:
        return [(ELICIT, one) for one in self.asks]


@control(
    "elicitation-validates-content",
    "elicitation-handles-refusal-legacy",
    "elicitation-string-format",
    "elicitation-default-types",
    "elicitation-form-no-credentials",
)
class ElicitsCorrectly(Elicits):
    """Elicits a form with every kind of field, and handles every answer correctly."""

    asks: ClassVar[list[Json]] = [
        {
            "message": "Who is it for?",
            "requestedSchema": {
                "type": "object",
                "required": ["who"],
                "properties": {
                    "who": {"type": "string", "minLength": 1},
                    "mail": {"type": "string", "format": "email", "default": "user@example.com"},
                    "size": {"type": "integer", "minimum": 1, "maximum": 5, "default": 5},
                    **CHOICES,
                },
            },
        }
    ]


controls(
    "elicitation-string-format", "elicitation-default-types", of=Elicits, revision="2025-06-18"
)(
    ElicitsCorrectlyInTheFirstRevision=has(
        "Elicits a form of the first revision with elicitation.",
        asks=[
            formed(
                mail={"type": "string", "format": "email", "default": 7},
                sure={"type": "boolean", "default": True},
            )
        ],
    )
)


class _Links(Elicits, asks=[LINK]):
    """Elicits a visit of a URL, and announces its completion."""

    def on_answer(self, request: Json, message: Json) -> None:
        self.complete(LINK["elicitationId"])
        super().on_answer(request, message)

    def complete(self, own: str) -> None:
        """Report that an elicitation is complete."""
        self.emit({"jsonrpc": "2.0", "method": COMPLETED, "params": {"elicitationId": own}})


controls(
    "elicitation-url-params-2025-11-25",
    "elicitation-url-valid",
    "elicitation-url-https",
    "elicitation-url-no-sensitive-data",
    "elicitation-complete-known-id",
    "elicitation-id-unique",
    "elicitation-mode-supported",
    of=_Links,
)(
    LinksCorrectly=has(
        "Elicits visits of two URLs, one of them on this machine.",
        asks=[LINK, {**LINK, "elicitationId": "f", "url": "http://localhost:8080/?state=0123"}],
    )
)


class _Requires(AskingTool):
    """Refuses a client in URL mode with an error that lists URLs."""

    listed: ClassVar[list[Json]] = [LINK]

    def on_ask(self, request: Json) -> None:
        if self.able():
            self.refuse(request, -32042, "Sign in first", {"elicitations": self.listed})
        else:
            super().on_ask(request)

    def able(self) -> bool:
        """Whether the client can open a URL."""
        return "url" in self.client.get("elicitation", {})


controls(
    "elicitation-url-required-error-shape",
    "elicitation-url-required-error-only-when-required",
    of=_Requires,
)(RequiresAUrl="Answers that the user has to visit a URL first.")


@mutant("elicitation-not-in-revision", revision="2025-03-26")
class ElicitsBeforeElicitation(Elicits):
    """Elicits from a client with sampling in a revision without elicitation."""

    def able(self, method: str, params: Json) -> bool:
        return "sampling" in self.client and "elicitation" not in self.client

    def on_answer(self, request: Json, message: Json) -> None:
        self.rest[request["id"]] = []
        self.go_on(request)


mutants("elicitation-mode-supported", of=_Links)(
    LinksWithoutUrlMode=has(
        "Elicits a visit of a URL from every client with elicitation.",
        able=lambda self, *_: "elicitation" in self.client,
    )
)
mutants("elicitation-mode-supported", of=Elicits)(
    ElicitsFormsWithoutFormMode=has(
        "Elicits a form from every client with elicitation.",
        able=lambda self, *_: "elicitation" in self.client,
    )
)
mutants("elicitation-mode-supported", of=_Requires, outcome="note")(
    RequiresAUrlOfEveryClient=has(
        "Answers every client that the user has to visit a URL first.", able=lambda *_: True
    )
)
mutants("elicitation-form-params-shape", of=Elicits)(
    ElicitsAnArray=has(
        "Elicits a form that is not an object.",
        asks=[{"message": "?", "requestedSchema": {"type": "array", "properties": {}}}],
    )
)
mutants("elicitation-form-schema-primitive-2025-06-18", of=Elicits, revision="2025-06-18")(
    ElicitsSeveralChoicesTooEarly=has(
        "Elicits several choices in a revision without such fields.",
        asks=[formed(some=CHOICES["some"])],
    )
)
mutants("elicitation-form-schema-primitive", of=Elicits)(
    ElicitsAUnion=has(
        "Gives a field a union type.",
        asks=[formed(who={"anyOf": [{"type": "string"}, {"type": "null"}]})],
    )
)
mutants("elicitation-string-format", of=Elicits, revision="2025-06-18")(
    ElicitsAnUnknownFormat=has(
        "Elicits a string in an undefined format, with an enum.",
        asks=[
            formed(
                phone={"type": "string", "format": "phone"},
                kind={"type": "string", "format": "kind", "enum": ["home", "work"]},
            )
        ],
    )
)
mutants("elicitation-default-types", of=Elicits)(
    GivesANullDefault=has(
        "Gives a text field the default null.",
        asks=[formed(who={"type": "string", "default": None})],
    )
)
mutants("elicitation-default-types", of=Elicits, outcome="warn")(
    GivesDefaultsOutsideTheOptions=has(
        "Gives a multiple choice a default that is not an option.",
        asks=[formed(some={**CHOICES["some"], "default": ["a", "z"]})],
    ),
    GivesADefaultAboveTheMaximum=has(
        "Gives a number field a default above its maximum.",
        asks=[formed(size={"type": "number", "maximum": 5, "default": 6})],
    ),
    GivesAFractionalDefaultForAnInteger=has(
        "Gives an integer field a fraction as its default.",
        asks=[formed(size={"type": "integer", "default": 0.5})],
    ),
)
mutants("elicitation-no-sensitive-information-2025-06-18", of=Elicits, revision="2025-06-18")(
    ElicitsAPassword=has("Elicits a password.", asks=[formed(userPassword={"type": "string"})])
)
mutants("elicitation-form-no-credentials", of=Elicits)(
    ElicitsAKey=has(
        "Elicits an API key under a harmless name.",
        asks=[formed(value={"type": "string", "title": "Your API key"})],
    )
)
mutants("elicitation-form-no-clickable-urls", of=Elicits)(
    WritesAUrlIntoAForm=has(
        "Puts a URL into the description of a field.",
        asks=[formed(code={"type": "string", "description": "See https://a.example/code"})],
    )
)
mutants("elicitation-url-valid", of=_Links)(
    LinksToAPathInAForm=has(
        "Gives a path as the URL of an elicitation.", asks=[{**LINK, "url": "/sign-in"}]
    ),
    LinksToNoHost=has("Gives a URL without a host.", asks=[{**LINK, "url": "https:///sign-in"}]),
)
mutants("elicitation-url-https", of=_Links)(
    LinksWithoutHttps=has(
        "Gives an http URL of another machine.", asks=[{**LINK, "url": "http://a.example/"}]
    )
)
mutants("elicitation-url-no-sensitive-data", of=_Links)(
    LinksWithAPassword=has(
        "Gives a URL with a user and a password.",
        asks=[{**LINK, "url": "https://user:pass@a.example/"}],
    )
)


@mutant("elicitation-url-no-sensitive-data")
class LinksWithItsCredential(_Links):
    """Gives a URL with the credential of the server."""

    def __init__(self) -> None:
        super().__init__()
        secret = os.environ.get("MCP_TOUCHSTONE_API_KEY", "")
        self.link = {**LINK, "url": f"https://a.example/?id={secret}"}

    def questions(self) -> list[tuple[str, Json]]:
        return [(ELICIT, self.link)]


mutants("elicitation-url-no-sensitive-data", of=_Links, outcome="note")(
    LinksWithAToken=has(
        "Gives a URL with a parameter named token.",
        asks=[{**LINK, "url": "https://a.example/?token=1"}],
    )
)
mutants("elicitation-id-unique", of=_Links)(
    LinksUnderOneId=has(
        "Gives two URLs the same elicitationId.", asks=[LINK, {**LINK, "url": "https://b.example/"}]
    )
)
mutants("elicitation-url-required-error-only-when-required", of=_Requires)(
    RequiresNoUrl=has("Answers with error -32042 and an empty list.", listed=[])
)
mutants("elicitation-url-required-error-shape", of=_Requires)(
    RequiresAForm=has(
        "Lists a form among the required URLs.", listed=[LINK, {**WHO, "elicitationId": "g"}]
    )
)
mutants("elicitation-complete-known-id", of=_Links)(
    CompletesAnUnknownElicitation=has(
        "Announces the completion of an unknown elicitation.",
        complete=lambda self, own: _Links.complete(self, f"{own}-other"),
    )
)


@mutant("elicitation-complete-known-id", outcome="warn")
class CompletesAnEarlierElicitation(_Links):
    """Announces the completion of an elicitation of an earlier process, before it elicits."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if notifies(message) and message["method"] == "notifications/initialized":
            self.complete("of-an-earlier-process")
        return super().heard(line, message)


mutants("elicitation-complete-known-id", of=_Links)(
    CompletesWithoutAnId=has(
        "Announces a completion without an elicitationId.",
        complete=lambda self, own: self.emit({"jsonrpc": "2.0", "method": COMPLETED, "params": {}}),
    )
)


@mutant("elicitation-handles-refusal-legacy")
class HangsWhenDeclined(Elicits):
    """Never answers a call whose elicitation was declined."""

    def on_answer(self, request: Json, message: Json) -> None:
        if message.get("result", {}).get("action") != "decline":
            super().on_answer(request, message)


@mutant("elicitation-handles-refusal-legacy")
class HangsOnANumberAsContent(Elicits):
    """Never answers a call whose elicitation was accepted with a number as content."""

    def on_answer(self, request: Json, message: Json) -> None:
        if not isinstance(message.get("result", {}).get("content"), int):
            super().on_answer(request, message)


@mutant("elicitation-handles-refusal-legacy", revision="2025-06-18")
class HangsWhenDismissed(Elicits):
    """Never answers a call whose elicitation was dismissed."""

    def on_answer(self, request: Json, message: Json) -> None:
        if message.get("result", {}).get("action") != "cancel":
            super().on_answer(request, message)


mutants("elicitation-handles-refusal-legacy", of=Elicits)(
    HangsOnAnError=has(
        "Never answers a call whose elicitation got an error.",
        on_answer=lambda self, request, message: (
            Elicits.on_answer(self, request, message) if "error" not in message else None
        ),
    )
)


@mutant("elicitation-validates-content", revision="2025-06-18")
class AcceptsAnIncompleteForm(Elicits):
    """Accepts a form without a required field."""

    def fits(self, answer: Json, asked: Json) -> bool:
        asked = {**asked, "requestedSchema": {}}
        return "content" in answer and super().fits(answer, asked)


mutants("elicitation-validates-content", of=Elicits)(
    AcceptsAnyType=has(
        "Accepts a form with values of any type.",
        fits=lambda self, answer, *_: "who" in str(answer.get("content")),
    ),
    AcceptsConsentWithoutContent=has(
        "Accepts consent without the content of the form.",
        fits=lambda self, answer, asked: (
            "content" not in answer or Elicits.fits(self, answer, asked)
        ),
    ),
)
