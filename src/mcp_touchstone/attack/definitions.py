"""What an attack on trust holds: the definitions a server lists, and what its tools then do."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from mcp_touchstone import repository
from mcp_touchstone.arguments import BRIEF, Places, candidates, words
from mcp_touchstone.attack import wording
from mcp_touchstone.attack.binder import OWN, Binder
from mcp_touchstone.attack.bindings import CHANGING, Operation
from mcp_touchstone.attack.field import CONTROL
from mcp_touchstone.attack.siege import Siege
from mcp_touchstone.attack.snapshot import changes, take
from mcp_touchstone.attack.ways import DANGER
from mcp_touchstone.clause import Breach
from mcp_touchstone.dossier import LISTS, Spoken, is_read_only
from mcp_touchstone.session import Role
from mcp_touchstone.talk import Broken

LISTED: Final = {"tools": "tools", "prompts": "prompts", "templates": "resources"}
"""List whose definitions are looked at -> capability it belongs to."""

PROBES: Final = 50
"""Requests between two looks: a server that waits for its moment waits for some."""

SHOWN: Final = 3


Items = dict[str, dict[str, Any]]
"""``tools/read_file`` -> its definition."""


class Definitions:
    """Looks at what a server says of itself, and at what it does."""

    def __init__(self, siege: Siege) -> None:
        """Open the connection and list everything once."""
        self.siege = siege
        siege.begin()
        self.first = self._listed()

    def _listed(self) -> Items:
        found: Items = {}
        for feature, capability in LISTED.items():
            method, member = LISTS[feature]
            if capability in self.siege.spoken.capabilities:
                for page in self.siege.pages(method):
                    for item in (page.result or {}).get(member) or []:
                        if isinstance(item, dict) and isinstance(item.get("name"), str):
                            found[f"{feature}/{item['name']}"] = item
        return found

    def _said(self) -> Items:
        """Give the definitions, and what the server says of itself when it is opened."""
        spoken = self.siege.spoken
        own = {
            "instructions": spoken.result.get("instructions"),
            "serverInfo": spoken.server_info,
        }
        return {"(the server)": own, **self.first}

    # --- words

    def hides(self, threat: str) -> None:
        """Judge whether a text hides something from who reads it."""
        grave: list[str] = []
        light: list[str] = []
        for name, item in self._said().items():
            for where, text in wording.texts(item):
                if what := wording.hidden(text):
                    grave.append(f"{name!r} {where}: {what}")
                elif wording.far_away(text):
                    light.append(f"{name!r} {where}: text behind a long blank")
        self._told(
            threat, grave, light, "all that a model reads, a person sees", f"{self._many} looked at"
        )

    def commands(self, threat: str) -> None:
        """Judge whether a text tells a model what to do behind its user's back."""
        found = [
            f"{name!r} {where} {what}"
            for name, item in self._said().items()
            for where, text in wording.texts(item)
            if (what := wording.commanded(where, text))
        ]
        self._told(threat, found, [], "definitions define", f"{self._many} looked at")

    def resemble(self, threat: str) -> None:
        """Judge whether a name passes for another."""
        names = [name.partition("/")[2] for name in self.first if name.startswith("tools/")]
        grave = [f"{name!a} mixes scripts" for name in names if wording.mixed(name)]
        light: list[str] = []
        seen: dict[str, str] = {}
        for name in names:
            other = seen.setdefault(wording.skeleton(name), name)
            if other != name:
                alike = f"{other!a} and {name!a} look alike"
                (light if name.isascii() and other.isascii() else grave).append(alike)
        self._told(threat, grave, light, "each name is told from all others", f"{len(names)} names")

    @property
    def _many(self) -> str:
        return f"{len(self.first)} definitions"

    def _told(
        self, threat: str, grave: list[str], light: list[str], expected: str, passed: str
    ) -> None:
        found = grave or light
        more = f"; {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        self.siege.conclude(
            threat,
            "; ".join(found[:SHOWN]) + more,
            expected=expected,
            passed=passed,
            mild=None if grave else Breach.WARN,
            because="honest definitions may hold it too",
        )

    # --- definitions that change

    def drift(self, threat: str) -> None:
        """List again after calls and after a restart, and compare what has the same name."""
        if not self.siege.judges(threat):
            return
        line = len(self.siege.wire.transcript)
        used = self._use()
        later = self._changed(self._listed())
        told = [f"{name!r} after {used} requests: {what}" for name, what in later]
        announced = any(
            message.role is Role.NOTIFICATION and str(message.method).endswith("/list_changed")
            for entry in self.siege.since(line)
            for message in entry.messages
        )
        if not told:
            self.siege.renew()
            told = [
                f"{name!r} in another process: {what}"
                for name, what in self._changed(self._listed())
            ]
        self.siege.conclude(
            threat,
            "; ".join(told[:SHOWN]),
            expected="what was agreed to stays as it was",
            passed=f"{self._many}, the same after {used} requests and in another process",
            mild=Breach.NOTE if announced else None,
            because="the server said that its list has changed",
        )

    def _changed(self, now: Items) -> list[tuple[str, str]]:
        found = []
        for name, before in self.first.items():
            after = now.get(name)
            if after is not None and wording.canonical(after) != wording.canonical(before):
                members = [m for m in {*before, *after} if before.get(m) != after.get(m)]
                found.append((name, f"another {', '.join(sorted(members))}"))
        return found

    def _use(self) -> int:
        """Use the server as far as that is safe; give how many requests it took."""
        siege, wire, root = self.siege, self.siege.wire, str(self.siege.field.root)
        count = 0
        for binding in siege.bindings.of(Operation.READ, Operation.LIST):
            path = CONTROL if binding.operation is Operation.READ else "."
            method, params = binding.call(binding.spelled(path, root), root)
            wire.request(method, params, required=False)
            count += 1
        for tool in siege.spoken.harmless[:SHOWN]:
            wire.request("tools/call", {"name": tool, "arguments": {}}, required=False)
            count += 1
        for _ in range(PROBES):
            wire.probe(required=False)
        return count + PROBES

    # --- annotations

    def lies(self, threat: str) -> None:
        """Call what is annotated read-only, and judge whether anything is not as it was."""
        if not self.siege.judges(threat):
            return
        tools = [tool for tool in self._tools() if is_read_only(tool)]
        if not tools:
            self.siege.unseen(threat, "no tool is annotated read-only")
            return
        told = []
        for tool in tools:
            told += self._done_by(tool)
        self.siege.conclude(
            threat,
            "; ".join(told[:SHOWN]),
            expected="what says it only reads changes nothing",
            passed=f"{len(tools)} tools annotated read-only changed nothing",
        )

    def _tools(self) -> Iterable[dict[str, Any]]:
        named = [item for name, item in self.first.items() if name.startswith("tools/")]
        return (tool for tool in named if not DANGER & {*words(tool["name"])})

    def _done_by(self, tool: Mapping[str, Any]) -> list[str]:
        siege, field = self.siege, self.siege.field
        before, staged = take(field.root, OWN.match), repository.staged(field.root)
        spoken = Spoken(siege.spoken.opening, {"tools": [tool]})
        found = Binder(lambda: siege.wire, field).find(spoken)
        places = Places(folder=str(field.root), file=CONTROL, seconds=BRIEF)
        for made in candidates(tool.get("inputSchema"), places)[:1]:
            siege.wire.request(
                "tools/call", {"name": tool["name"], "arguments": made}, required=False
            )
        if siege.wire.gone:
            raise Broken(f"the server left when {tool['name']} was called")
        after = take(field.root, OWN.match, before)
        told = [f"{tool['name']} can {b.operation} files" for b in found.of(*CHANGING)]
        own = {".", "probe"}
        if repository.staged(field.root) == staged:
            own.add(f"{repository.FOLDER}/index")
        near = [change for change in changes(before, after) if change.path not in own]
        told += [f"{tool['name']}: {change}" for change in (*near, *field.damage())]
        field.mend()
        return told
