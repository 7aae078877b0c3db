"""Secrets in the environment, in arguments and in contents, and details of the machine in errors.

Secrets are random and made for the run: one in the environment, others in the form of keys in
arguments and contents. A secret may be returned to the caller that sent it, but not be logged.
"""

import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from mcp_touchstone.security.suite import (
    BRIEF,
    CONTROL,
    DANGER,
    NOBODY,
    Area,
    AttackSession,
    Breach,
    Call,
    Entry,
    Operation,
    Places,
    Reply,
    Source,
    attack,
    brief,
    candidates,
    is_read_only,
    lexical,
    now,
    required,
    shown,
    words,
)


@attack(
    "secrets-environment", "secrets-logs", "secrets-errors", fixtures=("base", "links"), lasts=True
)
def keeps_secrets(session: AttackSession) -> None:
    """No result, error or log contains data that is not meant for it."""
    leaks = Leaks(session)
    leaks.errors("secrets-errors")
    leaks.logs("secrets-logs")
    leaks.environment("secrets-environment")


READ: Final = 5
"""Resources that are read, and prompts as well."""

ALPHABET: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
SLOW: Final = 2.0
"""Seconds of a call above which its tool is not called again."""

EXCERPT: Final = 300
"""Characters of a line of stderr that are shown."""

NEEDLE: Final = 16
"""Characters of a secret that distinguish it from all others."""

TRACES: Final[tuple[re.Pattern[str], ...]] = tuple(
    re.compile(pattern)
    for pattern in (
        r"Traceback \(most recent call last\)",
        r'File "[^"\n]+", line \d+, in ',
        r"\n\s+at [^\n]*:\d+:\d+\)?(\n|$)",
        r"\n\s+at [\w.$]+\([\w]+\.(java|kt|scala):\d+\)",
        r"\n\s+at [\w.<>`]+\([^\n]*\) in [^\n]+:line \d+",
        r"goroutine \d+ \[running\]",
        r"thread '[^'\n]+' panicked at ",
    )
)
"""Patterns of stack traces in the languages of servers."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A text that looks like a key, and the random part of it.

    Attributes:
        text: the text to send.
        needle: the part to search for.
        id: the id of its payload.
    """

    text: str
    needle: str
    id: str


class Leaks:
    """Makes safe calls to a server, and searches its answers and logs."""

    def __init__(self, session: AttackSession) -> None:
        """Open the connection."""
        self.session = session
        self._slow: set[str] = set()
        session.begin()

    # --- the environment

    def environment(self, threat: str) -> None:
        """Make valid and invalid requests; judge whether the environment comes back."""
        if not self.session.judge.covers(threat):
            return
        wire, tree = self.session.wire, self.session.tree
        count = self._use()
        wire.quiet()
        leaks: list[tuple[str, Entry | None, bool]] = []
        for entry in wire.transcript:
            if entry.source is Source.THEM and tree.canaries.found(entry.raw, {Area.ENVIRONMENT}):
                asked = self._asked(entry)
                says = bool({*words(asked)} & {"env", "environment", "variables"})
                leaks.append((asked or "a message nobody asked for", entry, says))
        for line in wire.process.pipes.stderr_tail.splitlines():
            if tree.canaries.found(line, {Area.ENVIRONMENT}):
                leaks.append((f"its stderr: {_excerpt(line)}", None, False))
                break
        grave = [one for one in leaks if not one[2]] or leaks
        self.session.judge.conclude(
            threat,
            f"a variable of its environment is in {grave[0][0]}" if grave else "",
            expected="the environment of the server stays with it",
            if_passed=f"{count} requests of all kinds",
            at=grave[0][1] if grave else None,
            mild=Breach.NOTE if grave and grave[0][2] else None,
            because="its name says that it shows the environment",
        )

    def _asked(self, entry: Entry) -> str:
        """Return the tool, or else the method, that a line answers."""
        for message in entry.messages:
            if message.answers is not None:
                value = self.session.wire.transcript[message.answers].value or {}
                params = value.get("params") or {}
                return str(params.get("name") or value.get("method") or "")
        return ""

    def _use(self) -> int:
        session, wire = self.session, self.session.wire
        before = len(wire.transcript)
        session.examples.exercise()
        for resource in session.spoken.named("resources", "uri")[:READ]:
            wire.request("resources/read", {"uri": resource["uri"]}, required=False)
        for name in session.spoken.plain_prompts[:READ]:
            wire.request("prompts/get", {"name": name}, required=False)
        root = str(session.tree.root)
        for binding in session.bindings.of(Operation.READ, Operation.LIST):
            for path in (CONTROL, ".", "no such file", "x" * 5000, "\0"):
                method, params = binding.call(binding.spelled(path, root), root)
                wire.request(method, params, required=False)
        places = Places(folder=root, file=CONTROL, seconds=BRIEF)
        for tool in self._safe():
            for made in [*candidates(tool.get("inputSchema"), places)[:1], {"path": 1}, {}]:
                self._call(tool["name"], made)
        for method in (*session.spoken.declared_list_methods, "no/such/method"):
            wire.request(method, {"cursor": "no such cursor"}, required=False)
        wire.request("tools/call", {"name": NOBODY, "arguments": {}}, required=False)
        return len(wire.transcript) - before

    def _call(self, name: str, arguments: dict[str, Any]) -> None:
        """Call a tool unless an earlier call of it was slow."""
        if name in self._slow:
            return
        begun = now()
        call = {"name": name, "arguments": arguments}
        self.session.wire.request("tools/call", call, required=False)
        if now() - begun > SLOW:
            self._slow.add(name)

    def _safe(self) -> Iterator[dict[str, Any]]:
        for tool in self.session.spoken.named("tools"):
            if is_read_only(tool) and not DANGER & {*words(tool["name"])}:
                yield tool

    # --- logs

    def logs(self, threat: str) -> None:
        """Send secrets in arguments and contents; judge whether logs contain them."""
        if not self.session.judge.covers(threat):
            return
        wire = self.session.wire
        kept = [_secret(row.recipe, row.text, row.id) for row in self._shapes()]
        for secret in kept:
            for method, params in self._telling(secret.text):
                wire.request(method, params, required=False)
        wire.quiet()
        line, found = self._logged(kept)
        self.session.judge.conclude(
            threat,
            found,
            expected="logs contain no data that is read, written or sent",
            if_passed=f"{len(kept)} secrets in arguments and contents",
            at=line,
        )

    def _shapes(self) -> Iterator[Any]:
        for row in self.session.payloads("leak.log", via="content"):
            if "{secret}" in row.text:
                self.session.payloads.fire(row.id)
                yield row

    def _telling(self, text: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield calls with a secret as content or as an unexpected argument."""
        session = self.session
        root = str(session.tree.root)
        yield "tools/call", {"name": NOBODY, "arguments": {"api_key": text}}
        makers = [one for one in session.bindings.of(Operation.CREATE) if one.gives_content]
        for binding in makers[:2]:
            name = f"made-{secrets.token_hex(4)}.txt"
            yield binding.call(binding.spelled(name, root), root, content=text + "\n")
            for reader in session.bindings.of(Operation.READ)[:1]:
                yield reader.call(reader.spelled(name, root), root)
            gone = f"no-folder/{name}/x"
            yield binding.call(binding.spelled(gone, root), root, content=text + "\n")
        for reader in session.bindings.of(Operation.READ)[:2]:
            method, params = reader.call(reader.spelled("no such file", root), root)
            if "arguments" in params:
                params = {**params, "arguments": {**params["arguments"], "token": text}}
            yield method, params

    def _logged(self, kept: list[Secret]) -> tuple[Entry | None, str]:
        wire = self.session.wire
        stderr = wire.process.pipes.stderr()
        for secret in kept:
            line = next((one for one in stderr.splitlines() if secret.needle in one), "")
            if line:
                found = f"a secret ({secret.id}) that was sent to it is in its stderr"
                return None, f"{found}: {_excerpt(line)}"
            for entry in wire.transcript:
                logged = any(m.method == "notifications/message" for m in entry.messages)
                if entry.source is Source.THEM and logged and secret.needle in entry.text:
                    return entry, f"a secret ({secret.id}) is in what it logs to the client"
        return None, ""

    # --- errors

    def errors(self, threat: str) -> None:
        """Make calls fail in many ways; judge whether errors reveal the inside of the server."""
        if not self.session.judge.covers(threat):
            return
        wire, tree = self.session.wire, self.session.tree
        root, above = str(tree.root), str(tree.path)
        leaks: list[tuple[str, Call, Reply]] = []
        count = 0
        for call in self._failing():
            reply = wire.request(call[0], call[1], required=False)
            count += 1
            if reply.succeeded:
                continue
            text = "\n".join(_strings(reply.value))
            if any(pattern.search(text) for pattern in TRACES):
                leaks.append(("a stack trace", call, reply))
            sent = brief(call[1], 100_000)
            named = list(_named(root, call))
            for path in re.findall(re.escape(above) + r"(?:/[\w.-]+)*", text):
                known = [path in sent, _holds(root, path), *(_holds(path, one) for one in named)]
                if not any(known):
                    where = path.replace(above, "…")
                    leaks.append((f"{where}, which the call does not name", call, reply))
        found = ""
        if leaks:
            what, call, _ = leaks[0]
            more = f"; {len(leaks) - 1} more errors show it too" if leaks[1:] else ""
            found = f"the error of {shown(call)} holds {what}{more}"
        self.session.judge.conclude(
            threat,
            found,
            expected="errors describe the fault of the call and disclose nothing about the machine",
            if_passed=f"{count} calls that fail",
            at=leaks[0][2] if leaks else None,
        )

    def _failing(self) -> Iterator[tuple[str, dict[str, Any]]]:
        session = self.session
        root = str(session.tree.root)
        for binding in session.bindings.of(Operation.READ):
            for row in session.payloads("leak.error", via="path"):
                session.payloads.fire(row.id)
                path = row.text
                for name, value in session.tree.names.items():
                    path = path.replace("{" + name + "}", value)
                yield binding.call(binding.spelled(path, root), root)
        for tool in [*self._safe(), {"name": NOBODY}]:
            needed = tool["name"] == NOBODY or required(tool.get("inputSchema"))
            for made in ({"path": 1}, {"path": ["x"]}, {"path": {"a": None}}) if needed else ():
                yield "tools/call", {"name": tool["name"], "arguments": made}
        yield "no/such/method", {}


def _excerpt(line: bytes | str) -> str:
    """Return the start of a line of the server in ASCII."""
    text = line.decode("utf-8", "replace") if isinstance(line, bytes) else line
    return ascii(text[:EXCERPT])


def _named(root: str, call: Call) -> Iterator[str]:
    """Yield the paths that the texts of a call name, also after a scheme; links are not read."""
    for text in _strings(call[1]):
        for below in (text, text.partition("://")[2].lstrip("/")):
            yield lexical(below, root)


def _holds(folder: str, path: str) -> bool:
    """Return whether a path is a folder or is inside it."""
    return path == folder or path.startswith(folder + "/")


def _secret(recipe: str, text: str, id: str) -> Secret:  # noqa: A002  (as payloads call it)
    """Make the secret of a recipe: ``secret:sk-:40``, ``secret:jwt``, ``secret:pem``."""
    _, _, rest = recipe.partition(":")
    head, _, count = rest.rpartition(":")
    length = int(count) if count.isdigit() else 48
    random = "".join(secrets.choice(ALPHABET) for _ in range(max(length, NEEDLE)))
    if rest == "pem":
        made = f"-----BEGIN PRIVATE KEY-----\n{random}\n-----END PRIVATE KEY-----"
    elif rest == "jwt":
        made = f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.{random}"
    else:
        made = head + random
    return Secret(text.replace("{secret}", made), random[:NEEDLE], id)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for below in value.values():
            yield from _strings(below)
    elif isinstance(value, list):
        for below in value:
            yield from _strings(below)
