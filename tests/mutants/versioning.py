"""Servers that break a rule of basic/versioning."""

import os
from copy import deepcopy
from typing import Any, ClassVar

from tests.mutants.kit import (
    LEGACY,
    META,
    MODERN,
    AskingTool,
    Fault,
    Json,
    ModernOnly,
    Out,
    adds,
    control,
    controls,
    drops,
    encode,
    has,
    meta,
    mutant,
    mutants,
    on,
    params,
    puts,
    refusal,
)

VERSION = META + "protocolVersion"


def asks_for(request: Any) -> Any:
    """Return the version a stateless request names; None where it names none."""
    return meta(request).get(VERSION) if isinstance(request, dict) else None


def under(line: bytes, message: Any, version: str) -> bytes:
    """Rewrite a stateless request to name another version."""
    if asks_for(message) is None:
        return line
    message["params"]["_meta"][VERSION] = version
    return encode(message).rstrip(b"\n")


def is_unknown(version: Any) -> bool:
    """Return whether a version is named that is none of ours."""
    return version is not None and not str(version).startswith("202")


def as_legacy(message: Any) -> Any:
    """Return a result without what only stateless results have."""
    if "result" not in message:
        return message
    new = ("resultType", "_meta", "ttlMs", "cacheScope")
    result = {name: value for name, value in message["result"].items() if name not in new}
    return {**message, "result": result}


mutants("versioning-unsupported-version-error", of=Fault, revision=MODERN)(
    ChecksTheVersionInDiscoverOnly=has(
        "Serves every other method under any version.",
        heard=lambda self, line, message: (
            under(line, message, MODERN)
            if isinstance(message, dict) and message.get("method") != "server/discover"
            else line
        ),
    ),
    ServesAnUnknownVersionAsAHandshakeRevision=has(
        "Answers requests under an unknown version with results of the older revisions.",
        heard=lambda self, line, message: (
            under(line, deepcopy(message), MODERN) if is_unknown(asks_for(message)) else line
        ),
        said=lambda self, message, request: (
            as_legacy(message) if is_unknown(asks_for(request)) else message
        ),
    ),
    RefusesAnUnknownVersionAsInvalidParams=has(
        "Refuses an unknown version with -32602.",
        said=lambda self, message, request: (
            refusal(request, -32602, "Invalid params: unknown protocolVersion")
            if "error" in message and message["error"]["code"] == -32022
            else message
        ),
    ),
)
mutants("versioning-unsupported-version-error", of=ModernOnly, revision=MODERN)(
    ServesAHandshakeRevisionWithoutAHandshake=has(
        "Supports only 2026-07-28, and serves stateless requests under 2025-11-25 too.",
        heard=lambda self, line, message: (
            under(line, message, MODERN)
            if asks_for(message) == LEGACY
            else ModernOnly.heard(self, line, message)
        ),
    )
)


class _Refuses(Fault):
    """Changes the data of -32022."""

    def said(self, message: Any, request: Json) -> Out:
        if "error" in message and message["error"]["code"] == -32022:
            self.spoil(message["error"])
        return message  # type: ignore[no-any-return]

    def spoil(self, error: Json) -> None:
        """Change the error."""


@mutant("versioning-unsupported-version-data", revision=MODERN)
class RefusesAVersionWithoutData(_Refuses):
    """Names its versions only in the message of -32022."""

    def spoil(self, error: Json) -> None:
        del error["data"]
        error["message"] += f", use {MODERN}"


mutants("versioning-unsupported-version-data", of=_Refuses, revision=MODERN)(
    OmitsTheRequestedVersion=has(
        "Leaves requested out of the data of -32022.", spoil=drops("data", "requested")
    ),
    OffersTheVersionItRefuses=has(
        "Lists the rejected version among the supported ones.",
        spoil=lambda self, error: error["data"]["supported"].append(error["data"]["requested"]),
    ),
)


@mutant("versioning-per-request-independence", revision=MODERN)
class ExitsAfterARejectedVersion(Fault):
    """Answers an unknown version with -32022 and exits."""

    def said(self, message: Any, request: Json) -> Out:
        if "error" in message and message["error"]["code"] == -32022:
            self.emit(message)
            os._exit(0)
        return message  # type: ignore[no-any-return]


class _Lists(Fault):
    """Lists further versions in its discover result."""

    more: ClassVar[tuple[str, ...]] = ()

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == "server/discover" and "result" in message:
            message["result"]["supportedVersions"] += self.more
        return message  # type: ignore[no-any-return]


mutants("versioning-supported-list-truthful", of=_Lists, revision=MODERN)(
    ListsAVersionItRefuses=has("Lists a future version, which it refuses.", more=("2027-03-26",))
)


@mutant("versioning-supported-list-truthful", revision=MODERN)
class ListsADroppedHandshakeRevision(_Lists):
    """Lists every handshake revision, and has dropped the oldest."""

    more = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if isinstance(message, dict) and params(message).get("protocolVersion") == "2024-11-05":
            message["params"]["protocolVersion"] = LEGACY
            return encode(message).rstrip(b"\n")
        return line


mutants("versioning-supported-list-truthful", of=_Refuses, revision=MODERN)(
    OffersAVersionItRefuses=has(
        "Offers a version in the data of -32022 that it refuses as well.",
        spoil=adds("data", "supported", "2027-03-26"),
    )
)
controls("versioning-supported-list-truthful", of=_Lists, revision=MODERN)(
    ListsBothEras=has(
        "Lists every revision it supports, including those of the handshake.",
        more=("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"),
    )
)
controls(
    "versioning-initialize-rejected",
    "versioning-initialize-names-versions",
    "versioning-unsupported-version-error",
    "meta-required-fields",
    of=ModernOnly,
    revision=MODERN,
)(SpeaksNoHandshakeRevision="Refuses a handshake and names its versions.")
mutants("versioning-initialize-rejected", of=ModernOnly, revision=MODERN)(
    ExitsOnAHandshake=has(
        "Exits at an initialize without an answer.", on_initialize=lambda *_: os._exit(1)
    )
)
mutants("versioning-initialize-names-versions", of=ModernOnly, revision=MODERN)(
    RefusesAHandshakeWithoutAHint=has(
        "Refuses initialize as an unknown method without naming its versions.",
        on_initialize=lambda self, request: self.refuse(
            request, -32601, "Method not found: initialize"
        ),
    )
)


@mutant(
    "versioning-dual-era-modern-request", "lifecycle-stateless-no-prior-context", revision=MODERN
)
class WantsAHandshakeUnlessDiscovered(Fault):
    """Treats a stateless request as a legacy one before server/discover."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        opened = any(
            request.get("method") in {"initialize", "server/discover"}
            for request in self.asked.values()
        )
        if not opened and isinstance(message, dict) and "id" in message:
            self.refuse(message, -32600, "Server not initialized")
            return None
        return line


mutants("versioning-dual-era-initialize", of=Fault, revision=MODERN)(
    RefusesAHandshakeForAStatelessRevision=has(
        "Answers an initialize with 2026-07-28 with an error.",
        said=lambda self, message, request: (
            refusal(request, -32602, f"{MODERN} has no handshake")
            if params(request).get("protocolVersion") == MODERN and "result" in message
            else message
        ),
    )
)


@control(
    "versioning-dual-era-modern-request",
    "versioning-dual-era-initialize",
    "discover-implemented",
    revision=MODERN,
)
class LocksToItsFirstEra(Fault):
    """Supports, in each process, only the era of the first request."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        first = next(iter(self.asked.values()), {}).get("method")
        method = message.get("method") if isinstance(message, dict) else None
        if first == "initialize" and asks_for(message) is not None:
            self.refuse(message, -32600, "This process speaks the handshake revisions")
            return None
        if first != "initialize" and method == "initialize":
            self.refuse(message, -32600, f"This process speaks {MODERN}")
            return None
        return line


class _Extended(Fault):
    """Advertises extensions."""

    extensions: ClassVar[Json] = {"com.example/jobs": {}}

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == "server/discover" and "result" in message:
            message["result"]["capabilities"]["extensions"] = self.extensions
        return super().said(message, request)


controls(
    "versioning-extension-identifiers",
    "versioning-extension-fallback",
    of=_Extended,
    revision=MODERN,
)(
    HasExtensions=has(
        "Advertises two extensions and does not use them.",
        extensions={"com.example/jobs": {}, "com.example.tools/search": {"fuzzy": True}},
    )
)
mutants("versioning-extension-identifiers", of=_Extended, revision=MODERN)(
    NamesAnExtensionWithoutAPrefix=has("Names its extension search.", extensions={"search": {}}),
    NamesAnExtensionByItsAddress=has(
        "Names its extension by a URL.", extensions={"https://example.com/search": {}}
    ),
    SaysTrueForAnExtension=has(
        "Gives true for the settings of an extension.", extensions={"com.example/search": True}
    ),
)
mutants("versioning-extension-fallback", of=(_Extended, AskingTool), revision=MODERN)(
    AnswersWithATypeOfAnExtension=has(
        "Answers a tool call with a type of result that the client did not declare.",
        on_ask=lambda self, request: self.answer(request, {"resultType": "job", "jobId": "1"}),
    )
)


@mutant("versioning-extension-fallback", revision=MODERN)
class NotifiesWithAnExtension(_Extended, AskingTool):
    """Sends a notification of its extension for a tool call."""

    def on_ask(self, request: Json) -> None:
        note = {"jobId": "1"}
        self.emit({"jsonrpc": "2.0", "method": "notifications/jobs", "params": note})
        super().on_ask(request)


mutants("versioning-deprecated-features", of=Fault, revision=MODERN)(
    OffersLogging=has(
        "Advertises logging, which is deprecated.",
        said=on("server/discover", puts("capabilities", "logging", {})),
    )
)
