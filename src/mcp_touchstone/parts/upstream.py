"""Our server behind a gateway: it offers every feature, with each member that one may have.

Its answers are fixed, so that what arrives through a gateway can be compared with them.
"""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Final

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.parts.part import INVALID_PARAMS, Json, Part
from mcp_touchstone.wire.framing import id_key, object_in, value_in

OWN: Final = "com.example.upstream/"
"""Prefix of the names that only our server uses."""

UNKNOWN: Final = "com.example.upstream/known"
"""A method that only our server has, and the end of that of its notification."""

REFUSED: Final = -32050
"""Code of an error of ours; the protocol leaves it to servers."""

REFUSALS: Final[Mapping[int, Mapping[str, str]]] = {
    401: {"WWW-Authenticate": 'Bearer realm="upstream", error="invalid_token"'},
    **{status: {} for status in (403, 429, 500, 503)},
}
"""Status by which our server refuses a call over HTTP that asks for it -> headers."""

CACHE: Final = {"ttlMs": 61_000, "cacheScope": "private"}
LONGEST: Final = 16 << 20
"""Greatest size of a text that is asked for, in characters."""

HELD: Final = 60.0
"""Seconds after which a held call is answered, if nobody cancels it."""

LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
WATCHED: Final = "test://upstream/watched"


def _marked(name: str) -> Json:
    """Return members that no specification has, and the metadata of a thing."""
    return {
        "_meta": {f"{OWN}of": name, f"{OWN}nested": {"list": [1, 2.5, None, "ü"]}},
        "x-upstream": {"kept": [name]},
    }


META: Final = {f"{OWN}of": "a message", f"{OWN}nested": {"list": [1, None, "ü"]}}
"""Metadata of a notification or a request."""

NULL: Final = "<null>"
"""A text of ``upstream.toml`` that is read as null: TOML has none."""

MANY: Final = 10_000
"""Tools in the long list."""

PAGE: Final = 1_000
"""Tools in each page of it."""


def tool(name: str, about: str, arguments: Mapping[str, Any]) -> Json:
    """Return a tool with optional arguments."""
    schema = {"type": "object", "properties": dict(arguments)}
    return {"name": name, "description": about, "inputSchema": schema}


def _filled(value: Any) -> Any:
    """Return data of the file with what its marks stand for."""
    if isinstance(value, list):
        return [_filled(one) for one in value]
    if not isinstance(value, dict):
        return None if value == NULL else value
    found = {name: _filled(one) for name, one in value.items()}
    if "arguments" in found and "description" in found and isinstance(found["arguments"], dict):
        arguments = {name: {"type": kind} for name, kind in found.pop("arguments").items()}
        found = tool(found["name"], found["description"], arguments)
    mark, meta = found.pop("marked", None), found.pop("with_meta", False)
    return {**found, **(_marked(mark) if mark else {}), **({"_meta": META} if meta else {})}


DATA: Final[Json] = _filled(tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8")))
TOOLS: Final[tuple[Json, ...]] = tuple(DATA["tools"])
RESOURCES: Final[tuple[Json, ...]] = tuple(DATA["resources"])
INSTRUCTIONS: Final = "Use everything — first.\nThen stop."


def text_in(request: Json, member: str) -> str:
    """Return a param that names something; empty if it is no text."""
    named = value_in(request, "params", member)
    return named if isinstance(named, str) else ""


def refusal_of(request: Json) -> int:
    """Return the status by which a request wants to be refused over HTTP; 0 for none."""
    named = value_in(request, "params", "name") == "refuse"
    status = object_in(request, "params", "arguments").get("status")
    return next((one for one in REFUSALS if named and one == status), 0)


class Upstream(Part):
    """A server with every feature, for a gateway; it speaks both eras."""

    modern = True
    both = True
    capabilities: ClassVar[Json] = DATA["capabilities"]
    pages: ClassVar[Mapping[str, tuple[str, tuple[tuple[Json, ...], ...]]]] = {
        "tools/list": ("tools", (TOOLS[:5], TOOLS[5:])),
        "prompts/list": ("prompts", (tuple(DATA["prompts"]),)),
        "resources/list": ("resources", (RESOURCES[:2], RESOURCES[2:])),
        "resources/templates/list": ("resourceTemplates", (tuple(DATA["templates"]),)),
    }
    """Method of a list -> its member, and the items of each page."""
    results: ClassVar[Mapping[str, Json]] = {
        "prompts/get": DATA["prompt"],
        UNKNOWN: {"known": [True, None]},
        "completion/complete": DATA["completion"],
        "resources/subscribe": {},
        "resources/unsubscribe": {},
        "logging/setLevel": {},
    }
    calls: ClassVar[Mapping[str, Json]] = {
        "everything": DATA["everything"],
        "fail": DATA["failed"],
        "nothing": {"content": []},
    }
    """Name of a tool -> its result, whatever its arguments."""
    contents: ClassVar[Mapping[str, list[Json]]] = {
        uri: [part for part in DATA["contents"] if part["uri"].startswith(uri)]
        for uri in (one["uri"] for one in RESOURCES)
    }
    """URI of a resource -> what is read there."""

    def lists(self) -> Mapping[str, tuple[str, tuple[tuple[Json, ...], ...]]]:
        """Return the lists as they are now, like ``pages``."""
        return self.pages

    def discovered(self) -> Json:
        """Return the capabilities of the stateless era."""
        return self.capabilities

    def opening(self) -> Json:
        """Return the result of initialize, with instructions."""
        return {**super().opening(), "instructions": INSTRUCTIONS}

    def serve(self, request: Json) -> None:
        """Answer a request."""
        method, is_open = request["method"], self.is_open(request)
        if method == "server/discover" and self.modern and is_open:
            about = {"supportedVersions": list(rev.MODERN), "capabilities": self.discovered()}
            self.answer(request, {**about, "instructions": INSTRUCTIONS, **CACHE})
        elif method in self.lists() and is_open:
            self._list(request)
        elif method == "resources/read" and is_open:
            self._read(request)
        else:
            super().serve(request)

    def _list(self, request: Json) -> None:
        member, pages = self.lists()[request["method"]]
        cursor = value_in(request, "params", "cursor")
        known = [None, *(f"page/{n + 1}?=é==" for n in range(1, len(pages)))]
        if cursor not in known:
            self.refuse(request, INVALID_PARAMS, "Unknown cursor", cursor=cursor)
            return
        at = known.index(cursor)
        further = {"nextCursor": known[at + 1]} if at + 1 < len(pages) else {}
        found = {member: list(pages[at]), **further, **_marked(member)}
        self.answer(request, {**found, **(CACHE if self.modern else {})})

    def _read(self, request: Json) -> None:
        uri = text_in(request, "uri")
        if uri not in self.contents:
            code = INVALID_PARAMS if self.modern else -32002
            self.refuse(request, code, "Resource not found", uri=uri)
            return
        found = {"contents": self.contents[uri], **_marked("read")}
        self.answer(request, {**found, **(CACHE if self.modern else {})})

    def call(self, request: Json) -> None:
        """Answer tools/call."""
        name = text_in(request, "name")
        given = object_in(request, "params", "arguments")
        does = {
            "echo": self._echo,
            "big": self._big,
            "hold": self._hold,
            "later": self._answer_later,
            "progress": self._progress,
            "log": self._log,
            "change": self._change,
            "ask": self._ask,
        }
        if name in self.calls:
            self.answer(request, self.calls[name])
        elif name in does:
            does[name](request, given)
        elif name == "refuse":
            self.refuse(request, REFUSED, "No — ünïcode", why={"of": ["upstream", 1.5]})
        elif name == "leave":
            self.leave()
        else:
            self.refuse(request, INVALID_PARAMS, f"Unknown tool: {name}")

    def leave(self) -> None:
        """End, as a server that crashes."""
        self.gone = 3

    def _echo(self, request: Json, given: Json) -> None:
        self.begun(request, given.get("mark"))
        text = str(given.get("text", ""))
        structured = {"text": text, "length": len(text), "mark": given.get("mark")}
        self.answer(request, {**self.text(text), "structuredContent": structured})

    def _big(self, request: Json, given: Json) -> None:
        size = given.get("size")
        size = min(size, LONGEST) if isinstance(size, int) and size > 0 else 1
        self.answer(request, self.text(("0123456789abcde\n" * (size // 16 + 1))[:size]))

    def begun(self, request: Json, mark: object) -> None:
        """Report that a call has begun, if it has a token."""
        token = object_in(request, "params", "_meta").get("progressToken")
        if id_key(token) is not None:
            about = {"progressToken": token, "progress": 0, "message": f"{mark} has begun"}
            self.say({"method": "notifications/progress", "params": about})

    def _hold(self, request: Json, given: Json) -> None:
        self.begun(request, given.get("mark"))
        self.later(HELD, lambda: self.answer(request, self.text(f"held {given.get('mark')}")))

    def _answer_later(self, request: Json, given: Json) -> None:
        after = given.get("after")
        seconds = min(after, 5000) / 1000 if isinstance(after, int) else 0.2
        self.begun(request, given.get("mark"))
        done = self.text(f"later {given.get('mark')}")
        self.later(seconds, lambda: self.answer(request, done))

    def _progress(self, request: Json, given: Json) -> None:
        token = object_in(request, "params", "_meta").get("progressToken")
        steps = given.get("steps")
        steps = min(steps, 100) if isinstance(steps, int) else 3
        for number in range(1, steps + 1) if id_key(token) is not None else ():
            what = {"progressToken": token, "progress": number - 0.5, "total": steps}
            about = {"message": f"{given.get('mark')} ünïcode {number}", "_meta": META}
            self.say({"method": "notifications/progress", "params": {**what, **about}})
        self.answer(request, self.text(f"progress {given.get('mark')}"))

    def _log(self, request: Json, given: Json) -> None:
        asks = f"{rev.META}logLevel" in object_in(request, "params", "_meta")
        for level in LEVELS if asks or not self.modern else ():
            data = {"mark": given.get("mark"), "level": level, "deep": [None, {"ü": 1}]}
            params = {"level": level, "logger": "upstream", "data": data, "_meta": META}
            self.say({"method": "notifications/message", "params": params})
        self.answer(request, self.text(f"logged {given.get('mark')}"))

    def _change(self, request: Json, given: Json) -> None:
        if not self.modern:  # there a subscription has its own stream
            only = given.get("only")
            for kind in ("tools", "prompts", "resources"):
                if only is None or only == kind:
                    self.say({"method": f"notifications/{kind}/list_changed"})
            if only is None:
                params = {"uri": WATCHED}
                self.say({"method": "notifications/resources/updated", "params": params})
        self.answer(request, self.text("changed"))

    def _ask(self, request: Json, given: Json) -> None:
        what = str(given.get("what"))
        question = DATA["questions"].get(what)
        if question is None:
            self.refuse(request, INVALID_PARAMS, "Unknown question")
            return
        method, params = question["method"], question["params"]

        def then(said: Any) -> None:
            told = {"asked": method, "mark": given.get("mark"), "said": said}
            self.answer(request, {**self.text(str(given.get("mark"))), "structuredContent": told})

        if not self.modern:
            self.ask(
                method,
                lambda message: then({k: message[k] for k in ("result", "error") if k in message}),
                **params,
            )
            return
        answers = object_in(request, "params", "inputResponses")
        if "question" in answers:
            state = value_in(request, "params", "requestState")
            then({"result": answers["question"], "state": state})
            return
        wanted = {"question": question}
        state = f"state/{given.get('mark')}?=é"
        round_ = {"resultType": "input_required", "inputRequests": wanted, "requestState": state}
        self.answer(request, round_)


@cache
def _many() -> tuple[tuple[Json, ...], ...]:
    """Return the pages of the long list; they take 5 MB, and few runs need them."""
    names = [f"tool-{number:05}" for number in range(MANY)]
    pages = (names[first : first + PAGE] for first in range(0, MANY, PAGE))
    return tuple(tuple(tool(name, "One of many.", {}) for name in page) for page in pages)


class Many(Upstream):
    """The same with a long list of tools."""

    def lists(self) -> Mapping[str, tuple[str, tuple[tuple[Json, ...], ...]]]:
        """Return the lists, with many tools."""
        return {**super().lists(), "tools/list": ("tools", _many())}
