"""HTTP servers that break a rule of http/headers."""

import json
from typing import Any, ClassVar

from tests.mutants.http_kit import Extra, HttpFault, WithoutHandshake, meta_version, named
from tests.mutants.kit import (
    LEGACY,
    META,
    MODERN,
    AskingTool,
    Fault,
    Json,
    ModernOnly,
    Out,
    control,
    controls,
    has,
    mutant,
    mutants,
)

VERSION = "MCP-Protocol-Version"


controls("headers-version-invalid", "headers-version-absent", of=HttpFault)(
    HttpWithSessions="Keeps every rule on headers with a session."
)


class ServesSomeVersions(HttpFault):
    """Does not check the version header of some requests."""

    def _session(self) -> Any:
        if self.header(VERSION) is not None and self.serves(self.header(VERSION) or ""):
            self.set_header(VERSION, LEGACY)
        return super()._session()

    def serves(self, version: str) -> bool:
        """Whether the version of this request is not checked."""
        raise NotImplementedError


mutants("headers-version-invalid", of=ServesSomeVersions)(
    ServesNotificationsOfEveryVersion=has(
        "Ignores the version header of a notification.",
        serves=lambda self, *_: self.command == "POST" and b'"id"' not in self.received,
    ),
    OpensStreamsOfEveryVersion=has(
        "Ignores the version header of a GET.", serves=lambda self, *_: self.command == "GET"
    ),
    EndsSessionsOfEveryVersion=has(
        "Ignores the version header of a DELETE.",
        "2025-06-18",
        serves=lambda self, *_: self.command == "DELETE",
    ),
)


@control("headers-version-invalid", revision=LEGACY)
class HasNoStreamsInLaterRevisions(HttpFault):
    """Answers GET and DELETE of a later version by 405."""

    def answering(self, status: int, body: bytes, extra: Extra) -> tuple[int, bytes, Extra]:
        later = status == 400 and (self.header(VERSION) or "") > LEGACY
        if later and self.command != "POST":
            return 405, body, {**extra, "Allow": "POST"}
        return status, body, extra


@control(revision="2025-06-18")
class SpeaksOlderRevisions(Fault):
    """Answers a handshake of 2025-11-25, or of no revision, by 2025-06-18."""

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == "initialize" and "result" in message:
            offered = message["result"]["protocolVersion"]
            message["result"]["protocolVersion"] = min(offered, "2025-06-18")
        return message  # type: ignore[no-any-return]


mutants("headers-version-invalid", of=HttpFault, revision="2025-06-18")(
    ServesARefusedRevision=has(
        "Serves requests whose version header is a revision that its handshake refuses.",
        behind="SpeaksOlderRevisions",
    )
)


@mutant("headers-version-absent", revision=LEGACY)
class WantsTheVersion(HttpFault):
    """Refuses a request of a session without the version header."""

    def _session(self) -> Any:
        if self.header(VERSION) is None:
            self.set_header(VERSION, "absent")
        return super()._session()


controls(
    "headers-version-mismatch-rejected",
    "headers-version-missing-rejected",
    "headers-version-unsupported-status",
    "headers-method-mismatch-rejected",
    "headers-method-missing-rejected",
    "headers-method-named-rejected",
    "headers-value-case",
    "headers-name-case",
    "headers-name-mismatch-rejected",
    "headers-name-missing-rejected",
    "headers-name-decoded",
    "headers-name-decoded-mismatch",
    "headers-invalid-characters",
    "headers-mismatch-status",
    "headers-mismatch-code",
    of=WithoutHandshake,
    revision=MODERN,
)(HttpWithoutSessions="Keeps every rule on headers without a session.")
controls(of=ModernOnly, revision=MODERN)(SpeaksModernOnly="Has no handshake.")


class Corrects(HttpFault):
    """Corrects headers of stateless requests before they are compared with the body."""

    def _post(self, line: bytes, messages: Any) -> None:
        if meta_version(messages[0]) is not None:
            self.correct(messages[0])
        super()._post(line, messages)

    def correct(self, message: Json) -> None:
        """Change the headers."""


@mutant("headers-version-mismatch-rejected", revision=MODERN)
class IgnoresTheVersionHeader(Corrects):
    """Serves a request whose version header differs from its body."""

    def correct(self, message: Json) -> None:
        if self.header(VERSION) not in {None, meta_version(message)}:
            message["params"]["_meta"][META + "protocolVersion"] = self.header(VERSION)


@mutant("headers-version-missing-rejected", revision=MODERN)
class NeedsNoVersionHeader(Corrects, WithoutHandshake):
    """Serves a request without the version header, and knows no handshake."""

    def correct(self, message: Json) -> None:
        if self.header(VERSION) is None:
            self.set_header(VERSION, meta_version(message))


mutants("headers-version-unsupported-status", of=HttpFault, revision=MODERN)(
    AnswersAnUnsupportedVersionWith200=has(
        "Sends the error about an unsupported version with the status 200.",
        answering=lambda self, status, body, extra: (
            200 if b"-32022" in body else status,
            body,
            extra,
        ),
    )
)


@mutant("headers-method-mismatch-rejected", revision=MODERN)
class IgnoresTheMethodHeader(Corrects):
    """Serves a request whose Mcp-Method is another method."""

    def correct(self, message: Json) -> None:
        said = self.header("Mcp-Method")
        if said is not None and said.lower() != str(message["method"]).lower():
            self.set_header("Mcp-Method", message["method"])


@mutant("headers-method-mismatch-rejected", revision=MODERN)
class IgnoresTheMethodHeaderInAnyCase(Corrects):
    """Does not compare Mcp-Method."""

    def correct(self, message: Json) -> None:
        if self.header("Mcp-Method") is not None:
            self.set_header("Mcp-Method", message["method"])


mutants("headers-method-mismatch-rejected", of=Corrects, revision=MODERN)(
    IgnoresTheMethodHeaderOfLists=has(
        "Serves a list whose Mcp-Method is another method.",
        correct=lambda self, message: (
            str(message["method"]).endswith("/list")
            and self.header("Mcp-Method") is not None
            and self.set_header("Mcp-Method", message["method"])
        ),
    ),
)
mutants("headers-method-named-rejected", of=Corrects, revision=MODERN)(
    IgnoresTheMethodHeaderOfCalls=has(
        "Serves a call whose Mcp-Method is another method.",
        correct=lambda self, message: (
            message["method"] == "tools/call"
            and self.header("Mcp-Method") is not None
            and self.set_header("Mcp-Method", message["method"])
        ),
    ),
    NeedsNoMethodHeaderOfReads=has(
        "Serves a read without Mcp-Method.",
        correct=lambda self, message: (
            message["method"] == "resources/read"
            and self.header("Mcp-Method") is None
            and self.set_header("Mcp-Method", message["method"])
        ),
    ),
)
mutants("headers-method-missing-rejected", of=Corrects, revision=MODERN)(
    NeedsNoMethodHeaderOfLists=has(
        "Serves a list without Mcp-Method.",
        correct=lambda self, message: (
            str(message["method"]).endswith("/list")
            and self.header("Mcp-Method") is None
            and self.set_header("Mcp-Method", message["method"])
        ),
    )
)


@mutant("headers-method-missing-rejected", revision=MODERN)
class NeedsNoMethodHeader(Corrects):
    """Serves a request without Mcp-Method."""

    def correct(self, message: Json) -> None:
        if self.header("Mcp-Method") is None:
            self.set_header("Mcp-Method", message["method"])


@mutant("headers-value-case", revision=MODERN)
class ComparesMethodsInAnyCase(Corrects):
    """Compares Mcp-Method without regard to case."""

    def correct(self, message: Json) -> None:
        if (self.header("Mcp-Method") or "").lower() == str(message["method"]).lower():
            self.set_header("Mcp-Method", message["method"])


@mutant("headers-value-case", revision=MODERN)
class ComparesNamesInAnyCase(Corrects):
    """Compares Mcp-Name without regard to case."""

    def correct(self, message: Json) -> None:
        if (self.header("Mcp-Name") or "").lower() == str(named(message)).lower():
            self.set_header("Mcp-Name", named(message))


@mutant("headers-version-unsupported-status", revision=MODERN)
class AnswersAnOlderVersionWith200(WithoutHandshake):
    """Has no handshake, and sends the error about 2025-11-25, and no other, with 200."""

    def answering(self, status: int, body: bytes, extra: Extra) -> tuple[int, bytes, Extra]:
        older = status == 400 and self.header(VERSION) == LEGACY
        return 200 if older else status, body, extra


@mutant("headers-name-case", revision=MODERN)
class WantsHeaderNamesAsWritten(Corrects):
    """Knows the standard headers in one spelling only."""

    def correct(self, message: Json) -> None:
        if "Mcp-Method" not in [name for name, _ in self.headers.items()]:
            self.set_header("Mcp-Method", None)


@mutant("headers-name-mismatch-rejected", revision=MODERN)
class IgnoresTheNameHeader(Corrects):
    """Serves a call whose plain Mcp-Name is another name."""

    def correct(self, message: Json) -> None:
        said = self.header("Mcp-Name")
        if said is not None and said.isascii() and not said.startswith("=?"):
            self.set_header("Mcp-Name", named(message))


@mutant("headers-name-missing-rejected", revision=MODERN)
class NeedsNoNameHeader(Corrects):
    """Serves a call without Mcp-Name."""

    def correct(self, message: Json) -> None:
        if self.header("Mcp-Name") is None and named(message) is not None:
            self.set_header("Mcp-Name", named(message))


@mutant("headers-name-decoded", revision=MODERN)
class ComparesEncodedNames(Corrects):
    """Compares an encoded Mcp-Name as it is written."""

    def correct(self, message: Json) -> None:
        if (self.header("Mcp-Name") or "").startswith("=?base64?"):
            self.set_header("Mcp-Name", "as-written")


@mutant("headers-value-case", revision=MODERN)
class DecodesInAnyCase(Corrects):
    """Decodes an Mcp-Name with =?BASE64? before it, which is a plain value."""

    def correct(self, message: Json) -> None:
        said = self.header("Mcp-Name") or ""
        if said.startswith("=?BASE64?"):
            self.set_header("Mcp-Name", said.replace("BASE64", "base64"))


@mutant("headers-name-decoded-mismatch", revision=MODERN)
class TrustsEncodedNames(Corrects):
    """Does not compare an encoded Mcp-Name."""

    def correct(self, message: Json) -> None:
        if (self.header("Mcp-Name") or "").startswith("=?base64?"):
            self.set_header("Mcp-Name", named(message))


@mutant("headers-invalid-characters", revision=MODERN)
class DropsInvalidCharacters(Corrects):
    """Drops invalid characters from Mcp-Name before it compares it."""

    def correct(self, message: Json) -> None:
        said = self.header("Mcp-Name")
        if said is not None and not said.isascii():
            self.set_header("Mcp-Name", said.encode("ascii", "ignore").decode())


@mutant("headers-mismatch-status", revision=MODERN)
class AnswersMismatchesWith422(HttpFault):
    """Rejects a request because of a header with 422."""

    def answering(self, status: int, body: bytes, extra: Extra) -> tuple[int, bytes, Extra]:
        return 422 if b"-32020" in body else status, body, extra


@mutant("headers-mismatch-status", revision=MODERN)
class AnswersWrongNamesWith422(AnswersMismatchesWith422):
    """Rejects a request because of its name, and no other, with 422."""

    def answering(self, status: int, body: bytes, extra: Extra) -> tuple[int, bytes, Extra]:
        named = b"tools/call" in self.received or b"resources/read" in self.received
        return super().answering(status, body, extra) if named else (status, body, extra)


mutants("headers-mismatch-code", of=HttpFault, revision=MODERN)(
    RejectsMismatchesAsInvalidRequests=has(
        "Rejects a request because of a header with the code -32600.",
        answering=lambda self, status, body, extra: (
            status,
            body.replace(b"-32020", b"-32600"),
            extra,
        ),
    )
)


@control("jsonrpc-invalid-params", revision=MODERN)
class RefusesReadsWithoutAName(HttpFault):
    """Refuses resources/read without uri, because Mcp-Name is missing."""

    def answering(self, status: int, body: bytes, extra: Extra) -> tuple[int, bytes, Extra]:
        nameless = b'"resources/read"' in self.received and b'"uri"' not in self.received
        if nameless and b"-32602" in body:
            return 400, body.replace(b"-32602", b"-32020"), extra
        return status, body, extra


@control(revision=MODERN)
class MarksArguments(AskingTool):
    """Has a tool that may be called, with two required annotated arguments and an optional one."""

    TOOL: ClassVar[Json] = {
        **AskingTool.TOOL,
        "inputSchema": {
            "type": "object",
            "properties": {
                "region": {"type": "string", "enum": ["eu-west"], "x-mcp-header": "Region"},
                "count": {"type": "integer", "minimum": 42, "x-mcp-header": "Count"},
                "place": {"type": "string", "x-mcp-header": "Place"},
                "filter": {
                    "type": "object",
                    "properties": {
                        "level": {"type": "string", "enum": ["high"], "x-mcp-header": "Level"}
                    },
                    "required": ["level"],
                },
            },
            "required": ["region", "count", "filter"],
        },
    }


PARAMS = (
    "headers-param-mismatch-rejected",
    "headers-param-missing-rejected",
    "headers-param-not-expected",
    "headers-param-decoded",
    "headers-param-invalid-characters",
    "headers-param-integer",
)


@control(*PARAMS, revision=MODERN)
class ComparesArguments(Corrects, behind="MarksArguments"):
    """Keeps every rule on headers of arguments."""

    def correct(self, message: Json) -> None:
        params = message.get("params")
        arguments = params.get("arguments") if isinstance(params, dict) else None
        if isinstance(arguments, dict) and "region" in arguments:
            self.change(arguments)

    def change(self, arguments: Json) -> None:
        """Change the headers of a call of the tool."""

    def replace_if(self, condition: bool, header: str, value: object) -> None:
        """Replace a header."""
        if condition:
            self.set_header(header, None if value is None else str(value))


@control("tools-validate-inputs", revision=MODERN)
class RefusesObjectsForTheHeader(ComparesArguments):
    """Refuses an object for an annotated argument, because its header is missing."""

    def answering(self, status: int, body: bytes, extra: Extra) -> tuple[int, bytes, Extra]:
        asked = json.loads(self.received) if self.command == "POST" else {}
        given = (asked.get("params") or {}).get("arguments")
        given = given if isinstance(given, dict) else {}
        if any(isinstance(given.get(name), dict) for name in ("region", "count", "place")):
            error = {"code": -32020, "message": "the header of an argument is missing"}
            answer = {"jsonrpc": "2.0", "id": asked["id"], "error": error}
            return 400, json.dumps(answer).encode(), extra
        return status, body, extra


@mutant("headers-param-mismatch-rejected", revision=MODERN)
class IgnoresArgumentHeaders(ComparesArguments):
    """Serves a call whose plain argument header has another value."""

    def change(self, arguments: Json) -> None:
        said = self.header("Mcp-Param-Region") or ""
        plain = said.isascii() and said != "" and not said.startswith("=?")
        self.replace_if(plain, "Mcp-Param-Region", arguments["region"])


@mutant("headers-param-mismatch-rejected", revision=MODERN)
class TrustsEncodedArguments(ComparesArguments):
    """Does not compare an encoded argument header."""

    def change(self, arguments: Json) -> None:
        encoded = (self.header("Mcp-Param-Region") or "").startswith("=?base64?")
        self.replace_if(encoded, "Mcp-Param-Region", arguments["region"])


@mutant("headers-param-mismatch-rejected", revision=MODERN)
class IgnoresHeadersOfNestedArguments(ComparesArguments):
    """Serves a call whose header of a nested argument has another value."""

    def change(self, arguments: Json) -> None:
        said = self.header("Mcp-Param-Level") or ""
        differs = said.isascii() and said.lower() != "high" and said != ""
        self.replace_if(differs, "Mcp-Param-Level", "high")


@mutant("headers-value-case", revision=MODERN)
class ComparesArgumentsInAnyCase(ComparesArguments):
    """Compares the header of an argument without regard to case."""

    def change(self, arguments: Json) -> None:
        alike = (self.header("Mcp-Param-Region") or "").lower() == arguments["region"]
        self.replace_if(alike, "Mcp-Param-Region", arguments["region"])


@mutant("headers-param-not-expected", revision=MODERN)
class WantsHeadersOfNull(ComparesArguments):
    """Refuses a call with null for an argument without its header."""

    def change(self, arguments: Json) -> None:
        null = arguments.get("place", "") is None
        self.replace_if(null, "Mcp-Param-Place", "null")


@mutant("headers-param-missing-rejected", revision=MODERN)
class NeedsNoArgumentHeaders(ComparesArguments):
    """Serves a call without the header of an argument."""

    def change(self, arguments: Json) -> None:
        absent = self.header("Mcp-Param-Region") is None
        self.replace_if(absent, "Mcp-Param-Region", arguments["region"])


@mutant("headers-param-not-expected", revision=MODERN)
class WantsEveryArgumentHeader(ComparesArguments):
    """Refuses a call without the header of an argument that it does not have.

    It does so once its tools were listed after a call: otherwise no call would ever succeed.
    """

    progress: ClassVar[list[str]] = []
    always: ClassVar[bool] = False

    def correct(self, message: Json) -> None:
        if message["method"] in {"tools/call", "tools/list"}:
            self.progress.append(message["method"])
        super().correct(message)

    def change(self, arguments: Json) -> None:
        listed = "tools/call tools/list" in " ".join(self.progress)
        ordinary = (
            self.header("Mcp-Param-Region") == arguments["region"]
            and self.header("Mcp-Param-Count") == str(arguments["count"])
            and self.header("Mcp-Param-Level") == "high"
            and "place" not in arguments
        )
        self.replace_if((listed or self.always) and ordinary, "Mcp-Param-Place", "wanted")


mutants("headers-param-not-expected", of=WantsEveryArgumentHeader, revision=MODERN)(
    RefusesEachCall=has(
        "Refuses each call, for want of the header of an argument that it does not have.",
        always=True,
    )
)


@mutant("headers-param-decoded", revision=MODERN)
class ComparesEncodedArguments(ComparesArguments):
    """Compares an encoded argument header as it is written."""

    def change(self, arguments: Json) -> None:
        encoded = (self.header("Mcp-Param-Region") or "").startswith("=?base64?")
        self.replace_if(encoded, "Mcp-Param-Region", "as-written")


@mutant("headers-param-decoded", revision=MODERN)
class WantsPythonValues(ComparesArguments):
    """Compares the header of an optional argument with its value as Python prints it."""

    def change(self, arguments: Json) -> None:
        given = arguments.get("place")
        right = given is not None and self.header("Mcp-Param-Place") == given
        self.replace_if(right, "Mcp-Param-Place", repr(given))


@mutant("headers-param-invalid-characters", revision=MODERN)
class DropsInvalidCharactersOfArguments(ComparesArguments):
    """Drops invalid characters from an argument header before it compares it."""

    def change(self, arguments: Json) -> None:
        strange = not (self.header("Mcp-Param-Region") or "").isascii()
        self.replace_if(strange, "Mcp-Param-Region", arguments["region"])


@mutant("headers-param-integer", revision=MODERN)
class ComparesIntegersAsText(ComparesArguments):
    """Compares the header of an integer as text."""

    def change(self, arguments: Json) -> None:
        said = self.header("Mcp-Param-Count")
        other = said is not None and said.isascii() and "=?" not in said
        differs = other and said != str(arguments["count"])
        self.replace_if(differs, "Mcp-Param-Count", "as text")
