"""Servers that break a rule of basic/lifecycle on how a session begins."""

import os
from typing import Any, ClassVar

from tests.mutants.kit import (
    LEGACY,
    META,
    MODERN,
    Fault,
    Json,
    Out,
    controls,
    drops,
    has,
    is_modern,
    mutant,
    mutants,
    params,
    puts,
)

OLD = "2025-03-26"
MIDDLE = "2025-06-18"


class Introduction(Fault):
    """The reference server with another answer to initialize."""

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == "initialize" and "result" in message:
            return self.introduce(message, message["result"], params(request))
        return message  # type: ignore[no-any-return]

    def introduce(self, message: Json, result: Json, asked: Json) -> Out:
        """Change the result of initialize; give the message to send."""
        raise NotImplementedError


class OnlyHandshakes(Introduction):
    """A server without a stateless revision."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if isinstance(message, dict) and is_modern(message):
            self.refuse(message, -32601, "Method not found")
            return None
        return line


@mutant("lifecycle-initialize-first")
class AnnouncesItsToolsAtStart(Fault):
    """Sends tools/list_changed before any message of the client."""

    def start(self) -> None:
        self.emit({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})


mutants("lifecycle-initialize-first", of=Fault, outcome="warn")(
    PingsAtStart=has(
        "Pings before any message of the client.",
        start=lambda self: self.emit({"jsonrpc": "2.0", "id": "early", "method": "ping"}),
    )
)


@mutant("lifecycle-initialize-first", outcome="warn")
class DiesOfAnEarlyRequest(Fault):
    """Exits if the first request is not initialize, ping or stateless."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        early = not any(r.get("method") == "initialize" for r in self.asked.values())
        stateless = "_meta" in params(message) if isinstance(message, dict) else False
        if early and not stateless and message.get("method") == "tools/list":
            os._exit(1)
        return line


mutants("lifecycle-initialize-response", of=Introduction)(
    OmitsServerInfo=has(
        "Leaves serverInfo out of its initialize result.", introduce=drops("result", "serverInfo")
    )
)
mutants("lifecycle-initialize-response", of=OnlyHandshakes)(
    OmitsTheVersion=has(
        "Leaves protocolVersion out of its initialize result.",
        introduce=drops("result", "protocolVersion"),
    )
)


@mutant("lifecycle-initialize-result-shape")
class GivesTheVersionAsANumber(OnlyHandshakes):
    """Gives protocolVersion as a number."""

    def introduce(self, message: Json, result: Json, asked: Json) -> Out:
        result["protocolVersion"] = int(result["protocolVersion"].replace("-", ""))
        return message


mutants("lifecycle-initialize-result-shape", of=Introduction, revision="2024-11-05")(
    ListsItsInstructions=has(
        "Gives instructions as an array of sentences.",
        introduce=puts("result", "instructions", ["Read files."]),
    )
)
mutants("lifecycle-capabilities-shape", of=Introduction)(
    DeclaresLoggingAsTrue=has(
        "Declares a capability as true in place of an object.",
        introduce=puts("result", "capabilities", "logging", True),
    ),
    DeclaresAFlagAsText=has(
        'Declares listChanged as "false".',
        OLD,
        introduce=puts("result", "capabilities", "tools", "listChanged", "false"),
    ),
)
mutants("lifecycle-server-info-shape", of=Introduction)(
    GivesItsOwnVersionAsANumber=has(
        "Gives the version in serverInfo as a number.",
        introduce=puts("result", "serverInfo", "version", 1.0),
    )
)


@mutant("lifecycle-server-info-shape", outcome="warn", revision=OLD)
class HasAnEmptyVersion(Introduction):
    """Gives an empty version in serverInfo, and a title that this revision does not have."""

    def introduce(self, message: Json, result: Json, asked: Json) -> Out:
        result["serverInfo"] |= {"version": "", "title": 7}
        return message


@mutant("lifecycle-version-echo")
class SwapsTwoRevisions(Introduction):
    """Answers 2025-03-26 for 2024-11-05, and the reverse."""

    def introduce(self, message: Json, result: Json, asked: Json) -> Out:
        swap = {"2024-11-05": OLD, OLD: "2024-11-05"}
        named = result["protocolVersion"]
        if asked["protocolVersion"] == named:
            result["protocolVersion"] = swap.get(named, named)
        return message


@mutant("lifecycle-version-counteroffer")
class AgreesToAnyRevision(Introduction):
    """Agrees to any requested revision."""

    def introduce(self, message: Json, result: Json, asked: Json) -> Out:
        result["protocolVersion"] = asked["protocolVersion"]
        return message


class RefusesRevisions(Introduction):
    """Answers an unknown revision with an error."""

    data: ClassVar[Json] = {}

    def introduce(self, message: Json, result: Json, asked: Json) -> Out:
        if result["protocolVersion"] == asked["protocolVersion"]:
            return message
        error: Json = {"code": -32602, "message": "Unsupported protocol version"}
        if self.data:
            error["data"] = {**self.data, "requested": asked["protocolVersion"]}
        return {"jsonrpc": "2.0", "id": message["id"], "error": error}


mutants("lifecycle-version-counteroffer", of=RefusesRevisions, revision=MIDDLE)(
    RefusesUnknownRevisions="Answers an unknown revision with an error without data."
)
mutants("lifecycle-version-counteroffer", of=RefusesRevisions, outcome="warn")(
    RefusesUnknownRevisionsWithAList=has(
        "Answers an unknown revision with the error of the specification's example.",
        data={"supported": ["2025-11-25"]},
    )
)


@mutant("lifecycle-version-counteroffer", revision=OLD)
class OffersAnUnsupportedRevision(Introduction):
    """Offers a revision that it refuses when it is requested."""

    def introduce(self, message: Json, result: Json, asked: Json) -> Out:
        if result["protocolVersion"] != asked["protocolVersion"]:
            result["protocolVersion"] = "2025-12-01"
            if asked["protocolVersion"] == "2025-12-01":
                result["protocolVersion"] = LEGACY
        return message


@mutant("lifecycle-version-counteroffer-latest")
class OffersItsOldestRevision(Introduction):
    """Offers 2024-11-05 for an unknown revision."""

    def introduce(self, message: Json, result: Json, asked: Json) -> Out:
        if result["protocolVersion"] != asked["protocolVersion"]:
            result["protocolVersion"] = "2024-11-05"
        return message


class Picky(Fault):
    """The reference server with a closed list of client capabilities."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if not isinstance(message, dict) or "id" not in message:
            return line
        meta = params(message).get("_meta")
        given = meta if isinstance(meta, dict) else {}
        declared = params(message).get("capabilities") or given.get(META + "clientCapabilities")
        odd = set(declared or ()) - {"roots", "sampling", "elicitation", "experimental"}
        if odd:
            self.refuse(message, -32602, f"unknown capability {min(odd)}")
            return None
        return line


mutants("lifecycle-open-client-capabilities", of=Picky, revision="2024-11-05")(
    KnowsAllCapabilities="Validates client capabilities with additional properties forbidden.",
    KnowsAllCapabilitiesOfARequest=has(
        "Validates the client capabilities of each request with additional properties forbidden.",
        MODERN,
    ),
)


class Incomplete(Fault):
    """The reference server with a fault for an incomplete initialize."""

    lacks = "clientInfo"

    def heard(self, line: bytes, message: Any) -> bytes | None:
        handshake = isinstance(message, dict) and message.get("method") == "initialize"
        if handshake and self.lacks not in params(message):
            self.fall()
            return None
        return line

    def fall(self) -> None:
        """Have the accident."""
        os._exit(1)


mutants("lifecycle-negotiation-failures", of=Incomplete)(
    DiesWithoutClientInfo="Exits at an initialize without clientInfo."
)


@mutant("lifecycle-negotiation-failures", revision="2024-11-05")
class HangsWithoutCapabilities(Incomplete, lacks="capabilities"):
    """Never answers an initialize without capabilities."""

    def fall(self) -> None:
        pass


controls("lifecycle-negotiation-failures", of=Incomplete)(
    ExitsWithoutClientInfo=has(
        "Exits cleanly at an initialize without clientInfo.", fall=lambda *_: os._exit(0)
    )
)
